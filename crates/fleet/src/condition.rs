//! Conditions of the objects, and their times.

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;

/// Condition of an object. It keeps the time of its last transition while its status stays.
pub(crate) fn condition(
    (metadata, earlier): (&ObjectMeta, &[Condition]),
    type_: &str,
    (status, reason): (&str, &str),
    message: String,
    now: DateTime<Utc>,
) -> Condition {
    let earlier = earlier.iter().find(|condition| condition.type_ == type_);
    let since = earlier.filter(|earlier| earlier.status == status);
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: metadata.generation,
        last_transition_time: since.map_or_else(
            || Time(Timestamp::from_second(now.timestamp()).unwrap_or_default()),
            |since| since.last_transition_time.clone(),
        ),
    }
}

/// Number with its noun.
pub(crate) fn number(number: usize, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}

/// Time of an object's creation.
pub(crate) fn created_at(metadata: &ObjectMeta) -> DateTime<Utc> {
    let created = metadata.creation_timestamp.as_ref();
    created.map_or(DateTime::<Utc>::MAX_UTC, |Time(time)| {
        DateTime::from_timestamp(time.as_second(), 0).unwrap_or(DateTime::UNIX_EPOCH)
    })
}
