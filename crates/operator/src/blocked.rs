//! The condition `Blocked`: the API server does not let the operator do what it has decided, or the object reaches a bug of it.

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use perfval_api::{PerfValidationSpec, PerfValidationStatus, Phase, condition, text};
use perfval_run::diagnosis::secret::Redactor;
use perfval_run::{Event, status, time};

use crate::event_words::{PANICKED, SET_ASIDE};

/// Type of the condition; it is there only while it is true.
pub const BLOCKED: &str = "Blocked";

/// The API server refuses an action for an object with this spec.
pub fn refused(error: &perfval_cluster::Error, action: &'static str, spec: &PerfValidationSpec) -> Event {
    let words = Redactor::new(spec).redact(&error.to_string());
    warning(error.reason(), action, words)
}

/// The pass of an object with this spec panicked.
pub fn panicked(said: &str, spec: &PerfValidationSpec) -> Event {
    let said = Redactor::new(spec).redact(said);
    let note = format!(
        "the operator panicked on this object: {said}; it tries again every 30 s and goes on with other objects; report the bug with \
         `kubectl perfval bundle`"
    );
    warning(PANICKED.reason, "Reconcile", note)
}

/// The process died in passes of an object.
pub fn set_aside() -> Event {
    let note = "the operator's process died twice in a row in a pass of this object, so the operator leaves it as it is; edit the spec, \
                set the annotation perfvalidation.dev/rerun, delete the object, or install another version of the operator";
    warning(SET_ASIDE.reason, "Reconcile", note.to_owned())
}

fn warning(reason: &str, action: &'static str, note: String) -> Event {
    Event {
        warning: true,
        reason: reason.to_owned(),
        action,
        note,
    }
}

/// The status with the words of an Event; `None` if it has them already.
pub fn because_of(
    current: &PerfValidationStatus,
    Event { reason, note, .. }: &Event,
    now: DateTime<Utc>,
) -> Option<PerfValidationStatus> {
    let message = text::bounded(note);
    let before = condition::find(current, BLOCKED);
    let since = before.map_or(now, |before| time::from_kubernetes(&before.last_transition_time));
    // No pass of this object summarizes it any more.
    let is_lasting = reason == SET_ASIDE.reason || time::until(now, since) >= status::BLOCKED_FOR_LONG;
    let stalls = is_lasting && !matches!(current.phase, Some(Phase::Completed | Phase::Suspended));
    let is_stalled = condition::is_true(current, condition::STALLED);
    let is_written = before.is_some_and(|before| before.reason == *reason && before.message == message);
    if is_written && (is_stalled || !stalls) {
        return None;
    }
    let condition = Condition {
        type_: BLOCKED.to_owned(),
        status: "True".to_owned(),
        reason: reason.clone(),
        message,
        observed_generation: Some(current.observed_generation).filter(|generation| *generation >= 0),
        last_transition_time: time::to_kubernetes(since),
    };
    let mut status = no_longer(current).unwrap_or_else(|| current.clone());
    if stalls {
        status::stall(&mut status, &condition, now);
    }
    status.conditions.push(condition);
    Some(status)
}

/// The status without the condition; `None` if it is not there.
pub fn no_longer(current: &PerfValidationStatus) -> Option<PerfValidationStatus> {
    condition::find(current, BLOCKED)?;
    let mut status = current.clone();
    status.conditions.retain(|condition| condition.type_ != BLOCKED);
    Some(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_780_000_000 + seconds, 0).unwrap()
    }

    #[test]
    fn the_cause_is_written_once_and_removed_once() {
        let idle = PerfValidationStatus::default();
        assert_eq!(no_longer(&idle), None, "nothing to take back");

        let taken = || {
            warning(
                "NameTaken",
                "Act",
                "Service pv-1-workers belongs to another owner".to_owned(),
            )
        };
        let blocked = because_of(&idle, &taken(), at(0)).unwrap();
        let status = because_of(&blocked, &taken(), at(60));
        assert_eq!(status, None, "the same cause is not written again");

        let forbidden = warning("Forbidden", "Act", "no right to create Jobs".to_owned());
        let other = because_of(&blocked, &forbidden, at(60)).unwrap();
        assert_eq!(other.conditions.len(), 1);
        let condition = &other.conditions[0];
        assert_eq!(
            (condition.reason.as_str(), condition.status.as_str()),
            ("Forbidden", "True")
        );
        assert_eq!(
            condition.last_transition_time,
            time::to_kubernetes(at(0)),
            "it was true all the time"
        );

        assert_eq!(no_longer(&other), Some(idle));
    }

    #[test]
    fn what_blocks_for_long_stalls_the_run_and_what_is_set_aside_does_so_at_once() {
        let idle = PerfValidationStatus::default();
        let broken = || warning("PassPanicked", "Reconcile", "the operator panicked".to_owned());
        let blocked = because_of(&idle, &broken(), at(0)).unwrap();
        assert!(!condition::is_true(&blocked, condition::STALLED));
        assert_eq!(because_of(&blocked, &broken(), at(599)), None);
        let stalled = because_of(&blocked, &broken(), at(600)).unwrap();
        for (name, value) in [("Stalled", "True"), ("Ready", "False"), ("Reconciling", "False")] {
            let found = condition::find(&stalled, name).unwrap();
            assert_eq!(
                (found.status.as_str(), found.reason.as_str()),
                (value, "PassPanicked"),
                "{name}"
            );
        }
        assert_eq!(because_of(&stalled, &broken(), at(700)), None, "it is written once");

        let aside = because_of(&idle, &set_aside(), at(0)).unwrap();
        assert!(
            condition::is_true(&aside, condition::STALLED),
            "the operator leaves it as it is"
        );
        let over = PerfValidationStatus {
            phase: Some(Phase::Completed),
            ..PerfValidationStatus::default()
        };
        let over = because_of(&over, &set_aside(), at(0)).unwrap();
        assert!(
            condition::find(&over, condition::STALLED).is_none(),
            "its verdict stays"
        );
    }
}
