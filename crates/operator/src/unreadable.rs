//! Objects that this version cannot parse: their conditions show it, and for a run an Event too. No other object is held up.

use std::collections::HashSet;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use kube::api::ObjectMeta;
use kube::core::error_boundary::InvalidObject;
use perfval_api::fleet::PerfValidationPolicy;
use perfval_api::{PerfValidation, Reason, condition, text};
use perfval_cluster::Cluster;
use perfval_run::{Event, time};
use serde_json::{Value, json};
use tracing::{error, warn};

use crate::blocked::redacted;
use crate::metrics::OperatorMetrics;

/// Pause after a status that could not be written.
const AGAIN: Duration = Duration::from_secs(30);
const OF_VALIDATION: &[(&str, &str)] = &[
    (condition::READY, "False"),
    (condition::RECONCILING, "False"),
    (condition::STALLED, "True"),
];
const OF_POLICY: &[(&str, &str)] = &[(condition::READY, "False")];

/// Reports an object in its status and by an Event. Returns the pause before another try, if the status was not written.
pub async fn report(invalid: &InvalidObject, cluster: &Cluster, metrics: &OperatorMetrics) -> Option<Duration> {
    let (namespace, name) = (&invalid.metadata.namespace, &invalid.metadata.name);
    // A parser quotes what it does not expect.
    let note = redacted(&invalid.error, None);
    error!(namespace, name, error = note, "the object is not looked after");
    metrics.failed(Reason::SpecUnreadable.as_str());
    let written = if invalid.metadata.deletion_timestamp.is_some() {
        Ok(())
    } else {
        let generation = invalid.metadata.generation.unwrap_or_default();
        let (message, now) = (text::bounded(&note), cluster.now());
        let edit = |status: &mut Value| mark(status, generation, &message, now);
        cluster.edit_status::<PerfValidation>(&invalid.metadata, edit).await
    };
    let (note, again) = match written {
        Ok(()) => (note, None),
        Err(refused) => {
            let error = redacted(&refused.to_string(), None);
            warn!(error, "its conditions are still the old ones");
            metrics.failed(refused.change().name);
            let note = format!("its status is old, and could not be changed ({error}): {note}");
            (note, Some(AGAIN))
        }
    };
    let event = Event::warning(Reason::SpecUnreadable, "Parse", note);
    let object = ObjectReference {
        api_version: Some(PerfValidation::api_version(&()).into_owned()),
        kind: Some(PerfValidation::kind(&()).into_owned()),
        name: invalid.metadata.name.clone(),
        namespace: invalid.metadata.namespace.clone(),
        uid: invalid.metadata.uid.clone(),
        // Without its version, or every change of the object would make another Event of the same.
        ..ObjectReference::default()
    };
    cluster.publish(&object, &event).await;
    again
}

/// Removes the conditions again, because the store has room for the object: the write makes the watch bring it. Returns the
/// pause before another try, if the write failed.
pub async fn take_back(object: &ObjectMeta, cluster: &Cluster) -> Option<Duration> {
    let refused = cluster.edit_status::<PerfValidation>(object, unmark).await.err()?;
    warn!(
        error = redacted(&refused.to_string(), None),
        "its conditions are still the old ones"
    );
    Some(AGAIN)
}

/// Versions of policies that show that they cannot be parsed: uid and resource version.
#[derive(Default)]
pub struct MarkedPolicies(HashSet<(Option<String>, Option<String>)>);

impl MarkedPolicies {
    /// Shows in the status of policies that the operator does not follow them. A version that shows it is not read again.
    pub async fn mark(&mut self, unreadable: &[Arc<InvalidObject>], cluster: &Cluster, metrics: &OperatorMetrics) {
        let known = mem::take(&mut self.0);
        for invalid in unreadable {
            let version = (invalid.metadata.uid.clone(), invalid.metadata.resource_version.clone());
            if known.contains(&version) || mark_policy(invalid, cluster, metrics).await {
                self.0.insert(version);
            }
        }
    }
}

/// Returns false if the status could not be written.
async fn mark_policy(invalid: &InvalidObject, cluster: &Cluster, metrics: &OperatorMetrics) -> bool {
    let generation = invalid.metadata.generation.unwrap_or_default();
    let why = redacted(&invalid.error, None);
    let message = text::bounded(&format!(
        "correct the policy, or install the operator version that wrote it; this version cannot parse it: {why}"
    ));
    let now = cluster.now();
    let edit = |status: &mut Value| set_conditions(status, OF_POLICY, (generation, message.as_str()), now);
    let written = cluster.edit_status::<PerfValidationPolicy>(&invalid.metadata, edit);
    let Err(refused) = written.await else { return true };
    warn!(
        error = redacted(&refused.to_string(), None),
        "the condition of the policy is still the old one"
    );
    metrics.failed(refused.change().name);
    false
}

/// Removes what [`mark`] has set.
fn unmark(status: &mut Value) {
    if let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) {
        conditions.retain(|condition| condition["reason"] != Reason::SpecUnreadable.as_str());
    }
}

/// Sets the conditions of a run. The message of a run that no operator has seen is from the CRD.
fn mark(status: &mut Value, generation: i64, message: &str, now: DateTime<Utc>) {
    let is_unseen = status["observedGeneration"].as_i64().is_none_or(|seen| seen < 0);
    set_conditions(status, OF_VALIDATION, (generation, message), now);
    if is_unseen {
        status["message"] = message.into();
    }
}

/// Sets conditions of a status that is not about the object as it is now. Every other field stays: a version that
/// can read the object continues from there.
fn set_conditions(status: &mut Value, values: &[(&str, &str)], (generation, message): (i64, &str), now: DateTime<Utc>) {
    if !status.is_object() {
        *status = json!({});
    }
    status["observedGeneration"] = generation.into();
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else {
        return;
    };
    for &(name, value) in values {
        let mut fresh = json!({
            "type": name,
            "status": value,
            "reason": Reason::SpecUnreadable.as_str(),
            "message": message,
            "observedGeneration": generation,
            "lastTransitionTime": time::to_kubernetes(now),
        });
        match conditions.iter_mut().find(|condition| condition["type"] == name) {
            None => conditions.push(fresh),
            Some(old) => {
                if old["status"] == value {
                    fresh["lastTransitionTime"] = old["lastTransitionTime"].take();
                }
                *old = fresh;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmark_removes_the_conditions_of_mark_and_no_others() {
        let passed = json!({"type": condition::PASSED, "status": "True", "reason": "GatesMet"});
        let mut status = json!({"observedGeneration": 1, "verdict": "Passed", "conditions": [passed]});
        mark(&mut status, 2, "no room", DateTime::UNIX_EPOCH);
        let conditions = status["conditions"].as_array().map(Vec::len);
        assert!(conditions > Some(1), "{status}");
        unmark(&mut status);
        assert_eq!(status["conditions"], json!([passed]));
        assert_eq!(status["verdict"], "Passed");
        for mut other in [json!(null), json!({"verdict": "Passed"})] {
            let before = other.clone();
            unmark(&mut other);
            assert_eq!(other, before, "nothing is to be written");
        }
    }
}
