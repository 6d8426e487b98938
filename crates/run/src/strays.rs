//! Objects that carry the operator's labels and should not be there any more.
//!
//! A leader that dies may have sent a create that the API server carries out only after its successor has removed the
//! run. An object whose finalizer was removed by force leaves objects that hang on a finalizer of their own. And a restore
//! of a backup creates objects without owners, which Kubernetes does not delete.

use std::time::Duration;

use chrono::{DateTime, Utc};
use perfval_api::{PerfValidation, Phase};
use perfval_sizing::Seen;

use crate::observed::ChildRef;
use crate::run::Run;
use crate::settings::Settings;
use crate::{names, time};

/// Age below which an object is left alone: it may be ahead of the watch of its owner; and the garbage collector may
/// be about to delete it.
const YOUNG: Duration = Duration::from_mins(2);

/// An object of a kind that a run removes, with our label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labelled {
    /// Kind, name and uid.
    pub id: ChildRef,
    /// Its namespace.
    pub namespace: String,
    /// Name of the object that it was made for, by its label.
    pub object: String,
    /// Id of the run that it was made for, by its label.
    pub run: String,
    /// Uid of the `PerfValidation` that controls it. Without one it has no owner, even with labels.
    pub owner: Option<String>,
    /// True if the operator created it, and it has no owner any more.
    pub abandoned: bool,
    /// Time of creation.
    pub created: Option<DateTime<Utc>>,
    /// True if it is being deleted.
    pub deleting: bool,
}

/// Reason why an object should not be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stray {
    /// Its run had confirmed that nothing was left, and will never touch it again.
    Late,
    /// Its owner does not exist any more, or it has lost it.
    Orphan,
}

/// Judges if an object is a stray. `owner`: the object that owns it; `NotAsked` if no watch has brought it; absent if
/// the API server reported that there is none.
pub fn judge(
    found: &Labelled,
    owner: &Seen<&PerfValidation>,
    settings: &Settings,
    now: DateTime<Utc>,
) -> Option<Stray> {
    match owner {
        Seen::Present(owner) => is_late(found, &Run::new(owner, settings)).then_some(Stray::Late),
        Seen::Absent if may_be_orphaned(found, now) => Some(Stray::Orphan),
        Seen::Absent | Seen::NotAsked | Seen::Unknown(_) => None,
    }
}

/// Returns true if a read of an owner that no watch has brought is worth while.
pub fn may_be_orphaned(found: &Labelled, now: DateTime<Utc>) -> bool {
    let is_old = |created: DateTime<Utc>| now >= time::after(created, YOUNG);
    // After `kubectl delete --cascade=orphan` the run still deletes what has no owner.
    let is_abandoned = found.abandoned && !found.deleting;
    (found.owner.is_some() || is_abandoned) && found.created.is_some_and(is_old)
}

/// Once the removal of a run is confirmed it stays so: an old copy of the owner is good enough to see it.
fn is_late(found: &Labelled, owner: &Run<'_>) -> bool {
    let rests = match owner.status().phase {
        Some(Phase::Completed) => owner.status().state.leftovers.is_none(),
        Some(Phase::Suspended) => true,
        _ => false,
    };
    let last = owner.status().run.as_ref().map_or(0, |run| run.number);
    let of_a_run = || {
        (1..=last)
            .rev()
            .any(|number| names::run_id(owner.uid(), number) == found.run)
    };
    rests && !owner.is_deleting() && found.owner.as_deref() == Some(owner.uid()) && of_a_run()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::observed::ChildKind;

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000, 0).unwrap()
    }

    fn found(change: impl FnOnce(&mut Labelled)) -> Labelled {
        let mut found = Labelled {
            id: ChildRef {
                kind: ChildKind::Job,
                name: "pv-1-t1".into(),
                uid: "j".into(),
            },
            namespace: "perf".into(),
            object: "h100".into(),
            run: names::run_id("u", 2),
            owner: Some("u".into()),
            abandoned: false,
            created: Some(now() - chrono::TimeDelta::minutes(3)),
            deleting: false,
        };
        change(&mut found);
        found
    }

    /// An object from a backup, which lacks the owners.
    fn restored(change: impl FnOnce(&mut Labelled)) -> Labelled {
        found(|found| {
            (found.owner, found.abandoned) = (None, true);
            change(found);
        })
    }

    fn owner(phase: &str, leftovers: Option<&str>, deleting: bool) -> PerfValidation {
        let deletion = deleting.then_some("2027-01-01T00:00:00Z");
        serde_json::from_value(json!({
            "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation",
            "metadata": {"name": "h100", "namespace": "perf", "uid": "u", "deletionTimestamp": deletion},
            "spec": {"model": {"name": "m"}, "workload": {"dynamo": {"image": "i"}}},
            "status": {
                "observedGeneration": 1, "phase": phase,
                "run": {"number": 3, "trigger": "Rerun", "generation": 1, "startedAt": "2027-01-01T00:00:00Z"},
                "operatorState": {"leftovers": leftovers},
            },
        }))
        .unwrap()
    }

    #[test]
    fn what_comes_after_a_confirmed_removal_is_late() {
        let late = |found: &Labelled, owner: &PerfValidation| {
            judge(found, &Seen::Present(owner), &Settings::default(), now()) == Some(Stray::Late)
        };
        let over = owner("Completed", None, false);
        for (case, found, owner, expected) in [
            ("of an earlier run", found(|_| {}), &over, true),
            ("of the last run", found(|f| f.run = names::run_id("u", 3)), &over, true),
            ("just made", found(|f| f.created = Some(now())), &over, true),
            ("suspended", found(|_| {}), &owner("Suspended", None, false), true),
            (
                "of a run that we do not know yet",
                found(|f| f.run = names::run_id("u", 4)),
                &over,
                false,
            ),
            (
                "of another object of the name",
                found(|f| f.owner = Some("v".into())),
                &over,
                false,
            ),
            ("of nobody", found(|f| f.owner = None), &over, false),
            ("kept", found(|_| {}), &owner("Completed", Some("Kept"), false), false),
            (
                "swept by its run",
                found(|_| {}),
                &owner("Completed", Some("Overdue"), false),
                false,
            ),
            (
                "removed by its run",
                found(|_| {}),
                &owner("CleaningUp", None, false),
                false,
            ),
            ("used", found(|_| {}), &owner("Benchmarking", None, false), false),
            ("deleted", found(|_| {}), &owner("Completed", None, true), false),
        ] {
            assert_eq!(late(&found, owner), expected, "{case}");
        }
    }

    #[test]
    fn what_has_lost_its_owner_is_an_orphan_once_that_is_known() {
        let unknown = || Seen::Unknown("list perfvalidations: 503".to_owned());
        for (case, found, owner, expected) in [
            ("gone", found(|_| {}), Seen::Absent, Some(Stray::Orphan)),
            (
                "held by a finalizer",
                found(|f| f.deleting = true),
                Seen::Absent,
                Some(Stray::Orphan),
            ),
            ("young", found(|f| f.created = Some(now())), Seen::Absent, None),
            ("of nobody", found(|f| f.owner = None), Seen::Absent, None),
            ("restored", restored(|_| {}), Seen::Absent, Some(Stray::Orphan)),
            (
                "just restored",
                restored(|f| f.created = Some(now())),
                Seen::Absent,
                None,
            ),
            (
                "removed after its owner was taken away",
                restored(|f| f.deleting = true),
                Seen::Absent,
                None,
            ),
            ("unread", found(|_| {}), unknown(), None),
            ("not asked", found(|_| {}), Seen::NotAsked, None),
        ] {
            assert_eq!(judge(&found, &owner, &Settings::default(), now()), expected, "{case}");
        }
    }
}
