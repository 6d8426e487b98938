//! Rule for the names of pods, claims and runs in messages: everybody in its namespace can read a status, and other
//! namespaces may belong to other tenants.

use sha2::{Digest as _, Sha256};

/// Pods, claims and runs that messages may name, as `namespace/name`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Naming {
    /// All of them.
    #[default]
    All,
    /// Those of this namespace; the others are counted.
    Only(String),
}

/// Holder of GPUs, or a run that waits for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A pod.
    Pod,
    /// A `ResourceClaim`.
    Claim,
    /// The run of a `PerfValidation`.
    Run,
}

impl Holder {
    /// Text for a number of holders in other namespaces; `None` for zero.
    pub fn foreign(self, count: usize) -> Option<String> {
        let word = self.word();
        match count {
            0 => None,
            1 => Some(format!("a {word} of another namespace")),
            _ => Some(format!("{count} {word}s of other namespaces")),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Pod => "pod",
            Self::Claim => "claim",
            Self::Run => "run",
        }
    }
}

impl Naming {
    /// Returns true if messages may name this one.
    pub fn shows(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(namespace) => name.split_once('/').is_some_and(|(of, _)| of == namespace),
        }
    }

    /// `pod team-a/train`, or `a pod of another namespace`.
    pub fn one(&self, holder: Holder, name: &str) -> String {
        let foreign = holder.foreign(1).filter(|_| !self.shows(name));
        foreign.unwrap_or_else(|| format!("{} {name}", holder.word()))
    }

    /// All of them: names first, then the number of those in other namespaces.
    pub fn all<'a>(&self, holder: Holder, names: impl IntoIterator<Item = &'a str>) -> String {
        let (shown, hidden): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| self.shows(name));
        let shown = shown.into_iter().map(str::to_owned);
        shown.chain(holder.foreign(hidden.len())).collect::<Vec<_>>().join(", ")
    }

    /// Text by which a status recognises a name later: the name, or a number that does not reveal it.
    pub fn token(&self, name: &str) -> String {
        if self.shows(name) {
            name.to_owned()
        } else {
            number(name)
        }
    }
}

/// Returns true if this is the token of a name, under any naming.
pub fn is_token_of(token: &str, name: &str) -> bool {
    token == name || token == number(name)
}

fn number(name: &str) -> String {
    format!("{:.16x}", Sha256::digest(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] = ["perf/a", "perf-2/b", "team/c", "perf/d"];

    #[test]
    fn a_namespace_sees_its_own_names_and_counts_the_others() {
        let own = Naming::Only("perf".into());
        let list = |naming: &Naming| naming.all(Holder::Pod, NAMES);
        assert_eq!(list(&Naming::All), "perf/a, perf-2/b, team/c, perf/d");
        assert_eq!(list(&own), "perf/a, perf/d, 2 pods of other namespaces");
        assert_eq!(own.all(Holder::Claim, ["team/c"]), "a claim of another namespace");
        assert_eq!(own.all(Holder::Claim, []), "");
        assert_eq!(own.one(Holder::Claim, "perf/a"), "claim perf/a");
        assert_eq!(own.one(Holder::Pod, "perf-2/b"), "a pod of another namespace");
        assert_eq!(
            own.all(Holder::Run, NAMES),
            "perf/a, perf/d, 2 runs of other namespaces"
        );
    }

    #[test]
    fn a_token_is_known_again_and_does_not_reveal_a_foreign_name() {
        let own = Naming::Only("perf".into());
        assert_eq!(own.token("perf/a"), "perf/a");
        let token = own.token("team/c");
        // Written into statuses: another version has to make the same of it.
        assert_eq!(token, "e5ae85e356df04c6");
        for token in [token, Naming::All.token("team/c")] {
            assert!(
                is_token_of(&token, "team/c") && !is_token_of(&token, "team/d"),
                "{token}"
            );
        }
    }
}
