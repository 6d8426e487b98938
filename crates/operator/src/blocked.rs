//! The condition `Blocked`: the operator knows what to do, and the API server does not let it.

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use perfval_api::{PerfValidationStatus, condition, text};
use perfval_run::time;

/// Type of the condition; it is there only while it is true.
pub const BLOCKED: &str = "Blocked";

/// The status that says why; `None` if it says so already.
pub fn because(
    current: &PerfValidationStatus,
    error: &perfval_cluster::Error,
    now: DateTime<Utc>,
) -> Option<PerfValidationStatus> {
    because_of(current, error.reason(), &error.to_string(), now)
}

fn because_of(
    current: &PerfValidationStatus,
    reason: &str,
    message: &str,
    now: DateTime<Utc>,
) -> Option<PerfValidationStatus> {
    let message = text::bounded(message);
    let before = condition::find(current, BLOCKED);
    if before.is_some_and(|before| before.reason == reason && before.message == message) {
        return None;
    }
    let condition = Condition {
        type_: BLOCKED.to_owned(),
        status: "True".to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: Some(current.observed_generation).filter(|generation| *generation >= 0),
        last_transition_time: before.map_or_else(
            || time::to_kubernetes(now),
            |before| before.last_transition_time.clone(),
        ),
    };
    let mut status = no_longer(current).unwrap_or_else(|| current.clone());
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

        let blocked = because_of(
            &idle,
            "NameTaken",
            "Service pv-1-workers belongs to another owner",
            at(0),
        )
        .unwrap();
        let status = because_of(
            &blocked,
            "NameTaken",
            "Service pv-1-workers belongs to another owner",
            at(60),
        );
        assert_eq!(status, None, "the same cause is not written again");

        let other = because_of(&blocked, "Forbidden", "no right to create Jobs", at(60)).unwrap();
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
}
