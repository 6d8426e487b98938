//! Requests of an operator to the API server, from the audit log.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use perfval_e2e::Call;

/// Requests of an operator between two moments.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// Changes, by resource and subresource.
    pub writes: BTreeMap<String, usize>,
    /// All other requests.
    pub reads: usize,
}

impl Calls {
    /// Those of an account.
    pub fn of(calls: &[Call], user: &str, since: DateTime<Utc>, until: DateTime<Utc>) -> Self {
        let mut counted = Self::default();
        for call in calls {
            if call.user != user || !(since..until).contains(&call.answered) {
                continue;
            }
            if call.is_write() && !is_question(&call.kind) {
                *counted.writes.entry(call.kind.clone()).or_default() += 1;
            } else {
                counted.reads += 1;
            }
        }
        counted
    }

    /// All changes.
    pub fn written(&self) -> usize {
        self.writes.values().sum()
    }

    /// All requests.
    pub fn total(&self) -> usize {
        self.written() + self.reads
    }
}

/// True for objects that are created to be answered, and are not kept.
fn is_question(kind: &str) -> bool {
    kind.ends_with("reviews")
}

/// Delays of an operator's first change and first status of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reaction {
    /// From the answer to its creation to the operator's first change of it (s).
    pub first: Option<f64>,
    /// From the answer to its creation to its first status (s).
    pub status: Option<f64>,
}

/// For each new object of a kind, in the order of their creation.
pub fn reactions(calls: &[Call], user: &str, plural: &str, names: &[String]) -> Vec<Reaction> {
    let status = format!("{plural}/status");
    let of = |name: &String| {
        let about = |call: &&Call| call.name == *name;
        let created = calls
            .iter()
            .filter(about)
            .find(|call| call.verb == "create" && call.kind == plural && call.user != user)?;
        let after = |wanted: &dyn Fn(&Call) -> bool| {
            let found = calls
                .iter()
                .filter(about)
                .filter(|call| call.user == user && call.is_write());
            let mut found: Vec<_> = found.filter(|call| wanted(call)).map(|call| call.received).collect();
            found.sort();
            // Whoever watches may hear of an object before its creator does.
            let wait = *found.first()? - created.answered;
            wait.to_std().map_or(Some(0.0), |wait| Some(wait.as_secs_f64()))
        };
        Some(Reaction {
            first: after(&|call| call.kind == plural || call.kind == status),
            status: after(&|call| call.kind == status),
        })
    };
    names.iter().map(|name| of(name).unwrap_or_default()).collect()
}

/// The middle one.
pub fn median(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let mut known: Vec<f64> = values.flatten().collect();
    known.sort_by(f64::total_cmp);
    known.get(known.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta, Utc};
    use perfval_e2e::Call;

    use super::{Calls, Reaction, median, reactions};

    fn call(user: &str, verb: &str, kind: &str, name: &str, at: i64) -> Call {
        let received = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::milliseconds(at);
        Call {
            user: user.to_owned(),
            verb: verb.to_owned(),
            kind: kind.to_owned(),
            namespace: "peers".to_owned(),
            name: name.to_owned(),
            received,
            answered: received + TimeDelta::milliseconds(10),
            code: 200,
            dry_run: false,
        }
    }

    #[test]
    fn a_reaction_is_the_first_change_by_the_operator_after_the_object_was_there() {
        let log = [
            call("admin", "create", "bares", "one", 0),
            call("admin", "patch", "bares", "one", 20),
            call("bare", "get", "bares", "one", 25),
            call("bare", "patch", "bares", "one", 40),
            call("bare", "patch", "bares/status", "one", 110),
            call("admin", "create", "bares", "two", 200),
        ];
        let found = reactions(&log, "bare", "bares", &["one".to_owned(), "two".to_owned()]);
        let known = Reaction {
            first: Some(0.03),
            status: Some(0.1),
        };
        assert_eq!(found, [known, Reaction::default()]);
        assert_eq!(median(found.iter().map(|reaction| reaction.first)), Some(0.03));
        assert_eq!(median(std::iter::empty()), None);
    }

    #[test]
    fn only_the_operators_own_requests_count_and_a_question_is_no_change() {
        let log = [
            call("bare", "patch", "bares/status", "one", 0),
            call("bare", "create", "subjectaccessreviews", "", 0),
            call("bare", "list", "pods", "", 0),
            call("admin", "create", "bares", "two", 0),
            call("bare", "patch", "bares/status", "one", 5000),
        ];
        let since = DateTime::<Utc>::UNIX_EPOCH;
        let counted = Calls::of(&log, "bare", since, since + TimeDelta::seconds(1));
        assert_eq!((counted.written(), counted.reads, counted.total()), (1, 2, 3));
    }
}
