//! A release as its files lie in `dist/`, in place of the addresses from which README's commands fetch them.

use std::path::Path;

/// Repository, as release and pages name it.
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");
/// Where README installs the plug-in.
const BIN: &str = "/usr/local/bin";

/// Commands of the pages with files of `dist` (absolute) for those on the network. The lab has no GPU for the sample of the
/// page, so `sample` stands in. The walk is root already, and installs the plug-in into `bin`.
pub fn offline(commands: &[String], dist: &Path, sample: &Path, bin: &Path) -> Vec<String> {
    // Of a version in development, `just release` makes the release to which it leads.
    let version = env!("CARGO_PKG_VERSION").trim_end_matches("-dev");
    let dist = dist.display().to_string();
    let files = format!("{REPOSITORY}/releases/download/v{version}/");
    let tag = REPOSITORY.replace("github.com", "raw.githubusercontent.com");
    let replaced = [
        (format!("curl -fsSL {files}"), format!("curl -fsSL file://{dist}/")),
        (files, format!("{dist}/")),
        (
            "oci://ghcr.io/perfvalidation/charts/perfvalidation-operator".into(),
            format!("{dist}/perfvalidation-operator-{version}.tgz"),
        ),
        (
            format!("{tag}/v{version}/config/samples/minimal.yaml"),
            sample.display().to_string(),
        ),
        ("sudo ".into(), String::new()),
        (BIN.into(), bin.display().to_string()),
    ];
    let offline = |command: &String| {
        replaced
            .iter()
            .fold(command.clone(), |command, (from, to)| command.replace(from, to))
    };
    commands.iter().map(offline).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::offline;
    use crate::pages::Pages;

    #[test]
    fn no_command_of_the_first_page_needs_the_network_or_a_clone() {
        let pages = Pages::read(Path::new("../..")).expect("every command");
        let first = &pages.release;
        for commands in [&first.helm, &first.kubectl, &first.plug_in, &first.run] {
            let (dist, sample, bin) = (Path::new("/dist"), Path::new("/demo.yaml"), Path::new("/bin"));
            for command in offline(commands, dist, sample, bin) {
                let command = command.replace("file://", "");
                for place in ["://", "sudo", "config/", "charts/", "/usr/local"] {
                    assert!(!command.contains(place), "{command}");
                }
            }
        }
    }
}
