//! Obstacles of an object: the API server refuses an action of the operator, or the object triggers a bug of the operator.

pub(crate) mod write;

use chrono::{DateTime, Utc};
use perfval_api::{Blocked, PerfValidationSpec, PerfValidationStatus, text};
use perfval_run::secret::Redactor;
use perfval_run::{Event, status};

use crate::event_words::{PANICKED, SET_ASIDE};

/// Text about an object without secrets, also for the log: the API server and webhooks quote what they refuse. The spec is unknown if
/// it cannot be read.
pub fn redacted(text: &str, spec: Option<&PerfValidationSpec>) -> String {
    let redactor = spec.map_or_else(Redactor::default, Redactor::new);
    redactor.redact(text)
}

/// Event for an action on an object with this spec that the API server refuses.
pub fn refused(error: &perfval_cluster::Error, spec: &PerfValidationSpec) -> Event {
    let words = redacted(&error.to_string(), Some(spec));
    error.change().warning(words)
}

/// The pass of an object with this spec panicked.
pub fn panicked(said: &str, spec: &PerfValidationSpec) -> Event {
    let said = redacted(said, Some(spec));
    let note = format!(
        "the operator panicked on this object: {said}; it tries again within 30 s and goes on with other objects; report the bug with \
         `kubectl perfval bundle`"
    );
    PANICKED.warning(note)
}

/// The process died in passes of an object.
pub fn set_aside() -> Event {
    let note = "the operator's process died twice in a row in a pass of this object, so the operator leaves it as it is; edit the spec, \
                set the annotation perfvalidation.dev/rerun, delete the object, or install another version of the operator";
    SET_ASIDE.warning(note)
}

/// The status with the words of an Event; `None` if it has them already.
pub fn because_of(
    current: &PerfValidationStatus,
    Event {
        reason, action, note, ..
    }: &Event,
    now: DateTime<Utc>,
) -> Option<PerfValidationStatus> {
    let mut status = current.clone();
    let since = current.state.blocked.as_ref().map_or(now, |before| before.since);
    status.state.blocked = Some(Blocked {
        reason: reason.as_str().to_owned(),
        message: text::bounded(note),
        since,
        for_good: action == SET_ASIDE.name,
    });
    status::summarize(&mut status, now);
    (status != *current).then_some(status)
}

/// The status without its obstacle; `None` if it has none.
pub fn no_longer(current: &PerfValidationStatus, now: DateTime<Utc>) -> Option<PerfValidationStatus> {
    current.state.blocked.as_ref()?;
    let mut status = current.clone();
    status.state.blocked = None;
    status::summarize(&mut status, now);
    Some(status)
}

#[cfg(test)]
mod tests {
    use perfval_api::{PerfValidation, Phase, Reason, Verdict, condition};
    use serde_json::json;

    use super::*;
    use crate::test_object;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_780_000_000 + seconds, 0).unwrap()
    }

    #[test]
    fn a_quoted_value_of_the_spec_is_hidden() {
        let mut object: PerfValidation = test_object::object(&json!({}), &json!(null));
        let variables = json!([{"name": "LICENSE_KEY", "value": "opensesame"}]);
        object.spec.dynamo_mut().env = serde_json::from_value(variables).unwrap();
        let answer = "the value opensesame is not allowed: hf_abcdefghijklmnop";
        assert_eq!(
            redacted(answer, Some(&object.spec)),
            "the value [hidden] is not allowed: [hidden]"
        );
        assert_eq!(redacted(answer, None), "the value opensesame is not allowed: [hidden]");
    }

    #[test]
    fn the_cause_is_written_once_and_removed_once() {
        let mut idle = PerfValidationStatus::default();
        status::summarize(&mut idle, at(0));
        assert_eq!(no_longer(&idle, at(0)), None, "nothing to take back");

        let taken = || {
            Event::warning(
                Reason::NameTaken,
                "Create",
                "Service pv-1-workers belongs to another owner",
            )
        };
        let blocked = because_of(&idle, &taken(), at(0)).unwrap();
        let status = because_of(&blocked, &taken(), at(60));
        assert_eq!(status, None, "the same cause is not written again");

        let forbidden = Event::warning(Reason::CallFailed, "Create", "no right to create Jobs");
        let other = because_of(&blocked, &forbidden, at(60)).unwrap();
        let reconciling = condition::find(&other, condition::RECONCILING).unwrap();
        assert_eq!(
            (
                reconciling.status.as_str(),
                reconciling.reason.as_str(),
                reconciling.message.as_str()
            ),
            ("True", "CallFailed", "Pending, blocked: no right to create Jobs")
        );
        let since = other.state.blocked.as_ref().map(|blocked| blocked.since);
        assert_eq!(since, Some(at(0)), "it was blocked all the time");

        assert_eq!(no_longer(&other, at(60)), Some(idle));
    }

    #[test]
    fn a_lasting_blockade_stalls_the_run_and_setting_aside_does_so_at_once() {
        let idle = PerfValidationStatus::default();
        let broken = || PANICKED.warning("the operator panicked");
        let blocked = because_of(&idle, &broken(), at(0)).unwrap();
        assert!(!condition::is_true(&blocked, condition::STALLED));
        assert_eq!(because_of(&blocked, &broken(), at(599)), None);
        let stalled = because_of(&blocked, &broken(), at(600)).unwrap();
        for (name, value) in [("Stalled", "True"), ("Ready", "False"), ("Reconciling", "False")] {
            let found = condition::find(&stalled, name).unwrap();
            assert_eq!(
                (found.status.as_str(), found.reason.as_str()),
                (value, "OperatorBug"),
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
            verdict: Some(Verdict::Passed),
            ..PerfValidationStatus::default()
        };
        let over = because_of(&over, &set_aside(), at(0)).unwrap();
        assert!(!condition::is_true(&over, condition::STALLED), "its verdict stays");
    }
}
