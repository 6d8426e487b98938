//! When anybody could first see that something is wrong, by the cluster's own record.

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::lab::Lab;

/// A probe fails in every pod that starts, and says nothing of it yet.
const OF_EVERY_START: &str = "Unhealthy";

/// The oldest sign in a namespace: a Warning event that is not the operator's own, a container that ended in an error, a pod
/// that cannot be scheduled.
pub async fn first(lab: &Lab, namespace: &str) -> Option<DateTime<Utc>> {
    let read = async |kind: &str| -> Vec<Value> {
        let text = lab.kubectl(&["get", kind, "-n", namespace, "-o", "json"]).await;
        let list: Value = serde_json::from_str(&text).expect("a list");
        list["items"].as_array().cloned().unwrap_or_default()
    };
    let (events, pods) = (read("events").await, read("pods").await);
    let of_events = events.iter().filter_map(of_event);
    of_events.chain(pods.iter().flat_map(of_pod)).min()
}

fn time(at: &Value) -> Option<DateTime<Utc>> {
    at.as_str()?.parse().ok()
}

fn of_event(event: &Value) -> Option<DateTime<Utc>> {
    let warns = event["type"] == "Warning" && event["reason"] != OF_EVERY_START;
    let is_ours = event["involvedObject"]["kind"] == "PerfValidation";
    let times = [
        &event["eventTime"],
        &event["firstTimestamp"],
        &event["metadata"]["creationTimestamp"],
    ];
    times.into_iter().find_map(time).filter(|_| warns && !is_ours)
}

fn of_pod(pod: &Value) -> Vec<DateTime<Utc>> {
    let list = |field: &str| pod["status"][field].as_array().cloned().unwrap_or_default();
    let unscheduled = list("conditions").into_iter().filter_map(|condition| {
        let refused = condition["type"] == "PodScheduled" && condition["reason"] == "Unschedulable";
        time(&condition["lastTransitionTime"]).filter(|_| refused)
    });
    let ended = list("containerStatuses").into_iter().flat_map(|container| {
        ["state", "lastState"].map(|state| {
            let ended = &container[state]["terminated"];
            time(&ended["finishedAt"]).filter(|_| ended["exitCode"] != 0)
        })
    });
    unscheduled.chain(ended.flatten()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(second: u32) -> String {
        format!("2026-11-23T10:00:{second:02}Z")
    }

    #[test]
    fn only_a_failure_is_a_sign() {
        let event = |kind: &str, reason: &str, of: &str| json!({"type": kind, "reason": reason, "involvedObject": {"kind": of}, "firstTimestamp": at(7)});
        let sign = of_event(&event("Warning", "Failed", "Pod"));
        assert_eq!(sign, at(7).parse().ok());
        for other in [
            event("Normal", "Pulled", "Pod"),
            event("Warning", "Unhealthy", "Pod"),
            event("Warning", "ContainerFailed", "PerfValidation"),
        ] {
            assert_eq!(of_event(&other), None, "{other}");
        }
    }

    #[test]
    fn a_pod_shows_ended_containers_and_refusals_of_the_scheduler() {
        let ended = |code: i64| json!({"terminated": {"exitCode": code, "finishedAt": at(9)}});
        let pod = |containers: Value| {
            json!({"status": {"containerStatuses": containers, "conditions": [
                {"type": "PodScheduled", "reason": "Unschedulable", "lastTransitionTime": at(3)},
                {"type": "Ready", "reason": "ContainersNotReady", "lastTransitionTime": at(1)},
            ]}})
        };
        let first = |containers: Value| {
            of_pod(&pod(containers))
                .into_iter()
                .map(|at| at.to_rfc3339())
                .collect::<Vec<_>>()
        };
        assert_eq!(first(json!([])).len(), 1);
        assert_eq!(first(json!([{"state": ended(0)}])).len(), 1);
        assert_eq!(
            first(json!([{"state": {"waiting": {}}, "lastState": ended(137)}])).len(),
            2
        );
    }
}
