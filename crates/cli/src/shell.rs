//! Commands that a person types next.

/// A text whose commands reach the cluster of these flags. A command that has the flags already keeps them once.
pub fn with_flags(text: &str, flags: &str) -> String {
    let mut parts = text.split("kubectl ");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // `kubectl` takes no flags before the name of a plug-in.
        let (program, rest) = match part.strip_prefix("perfval ") {
            Some(rest) => ("kubectl perfval", rest),
            None => ("kubectl", part),
        };
        // A command ends at its closing quote, or where the next one begins.
        let command = rest.split('`').next().unwrap_or_default();
        let has_flags = format!(" {command}").contains(flags);
        whole.extend([program, if has_flags { "" } else { flags }, " ", rest]);
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_a_text_get_the_flags_once() {
        let flags = " --context prod";
        for (text, typed) in [
            (
                "`kubectl perfval get -A` lists all",
                "`kubectl perfval --context prod get -A` lists all",
            ),
            (
                "kubectl create namespace a",
                "kubectl --context prod create namespace a",
            ),
            (
                "`kubectl perfval watch a --context prod`",
                "`kubectl perfval watch a --context prod`",
            ),
            (
                "`kubectl perfval watch a --context prod`, `kubectl delete pod b`, `kubectl perfval get`",
                "`kubectl perfval watch a --context prod`, `kubectl --context prod delete pod b`, `kubectl perfval --context prod get`",
            ),
            (
                "kubectl get nodes, then kubectl --context prod get pods",
                "kubectl --context prod get nodes, then kubectl --context prod get pods",
            ),
            ("write a name", "write a name"),
        ] {
            assert_eq!(with_flags(text, flags), typed);
            assert_eq!(with_flags(text, ""), text);
        }
    }
}
