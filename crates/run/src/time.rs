//! Time at the API's edge: the operator's own code uses chrono, k8s-openapi uses jiff, specs use Go durations.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

/// A Kubernetes time; whole seconds, as the API server keeps them.
pub fn to_kubernetes(time: DateTime<Utc>) -> Time {
    Time(Timestamp::from_second(time.timestamp()).unwrap_or(Timestamp::UNIX_EPOCH))
}

/// A Kubernetes time as ours.
pub fn from_kubernetes(time: &Time) -> DateTime<Utc> {
    DateTime::from_timestamp(time.0.as_second(), 0).unwrap_or(DateTime::UNIX_EPOCH)
}

/// A Go duration of the spec. Admission has checked its grammar; a CRD older than this operator may not have, and then
/// the wait must still end after ten minutes.
pub fn duration(text: &str) -> Duration {
    text.parse::<kube::core::Duration>()
        .map_or(Duration::from_mins(10), Duration::from)
}

/// `since + limit`, saturating.
pub fn after(since: DateTime<Utc>, limit: Duration) -> DateTime<Utc> {
    TimeDelta::from_std(limit)
        .ok()
        .and_then(|delta| since.checked_add_signed(delta))
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// Time left until `then`; zero if it has passed.
pub fn until(then: DateTime<Utc>, now: DateTime<Utc>) -> Duration {
    (then - now).to_std().unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations_of_the_spec_are_read() {
        let seconds = [("120s", 120), ("5m", 300), ("1h5m", 3900), ("0s", 0), ("nonsense", 600)];
        for (text, expected) in seconds {
            assert_eq!(duration(text), Duration::from_secs(expected), "{text}");
        }
    }

    #[test]
    fn a_time_survives_the_way_to_kubernetes_and_back() {
        let time = DateTime::from_timestamp(1_780_000_000, 0).unwrap();
        assert_eq!(from_kubernetes(&to_kubernetes(time)), time);
    }
}
