//! Status of a DynamoGraphDeployment.

use std::collections::BTreeMap;

use kube::core::DynamicObject;
use serde_json::Value;

/// State in a deployment's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It may heal itself.
    Failed,
    /// Weaker than its name: it was seen with five of eight workers ready.
    Successful,
    /// Neither yet.
    Coming,
}

/// Contents of the deployment's own status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// True if the status is of the deployment's present generation.
    pub current: bool,
    /// State in the status.
    pub state: State,
    /// Ready replicas of a component, where it reports them.
    pub ready: BTreeMap<String, i64>,
    /// Message of the Ready condition.
    pub message: String,
}

/// Reads a DynamoGraphDeployment's status. `replicas` in there counts living pods, not the wish, so it is not read.
pub fn reported(deployment: &DynamicObject) -> Reported {
    let status = &deployment.data["status"];
    let observed = status["observedGeneration"].as_i64().unwrap_or(0);
    // The field is `components` in v1beta1 and `services` in v1alpha1.
    let components = [&status["components"], &status["services"]]
        .into_iter()
        .find_map(Value::as_object);
    let ready = components
        .into_iter()
        .flatten()
        .filter_map(|(name, component)| {
            // Grove's PodCliqueScalingGroup has no number of ready ones; an available one is ready.
            let ready = ["readyReplicas", "availableReplicas"];
            let ready = ready.into_iter().find_map(|field| component[field].as_i64())?;
            Some((name.to_lowercase(), ready))
        })
        .collect();
    let condition = status["conditions"]
        .as_array()
        .and_then(|all| all.iter().find(|c| c["type"] == "Ready"));
    let message = condition
        .and_then(|ready| ready["message"].as_str())
        .unwrap_or("no Ready condition yet");
    Reported {
        current: observed >= deployment.metadata.generation.unwrap_or(i64::MAX),
        state: match status["state"].as_str() {
            Some("failed") => State::Failed,
            Some("successful") => State::Successful,
            _ => State::Coming,
        },
        ready,
        message: message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn from_status(status: &Value) -> Reported {
        let deployment = json!({
            "apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment",
            "metadata": {"name": "pv-3f9a1c07", "generation": 2}, "spec": {}, "status": status,
        });
        reported(&serde_json::from_value(deployment).expect("an object"))
    }

    fn ready(reason: &str, message: &str) -> Value {
        let status = if reason == "all_resources_are_ready" {
            "True"
        } else {
            "False"
        };
        json!([{"type": "Ready", "status": status, "reason": reason, "message": message},
               {"type": "TopologyLevelsAvailable", "status": "True", "reason": "x", "message": "y"}])
    }

    /// With Grove or LWS installed, components may be of their kinds: because an administrator's policy overrules the
    /// operator's annotation, or for a deployment that an older version of the operator created.
    #[test]
    fn components_of_every_kind_are_read() {
        let waiting = "Resources not ready: pv-3f9a1c07: podclique/pv-3f9a1c07-0-worker: desired=8, ready=7";
        let rows = [
            (
                "Grove's PodClique",
                json!({"componentKind": "PodClique", "componentNames": ["pv-3f9a1c07-0-worker"], "replicas": 8, "updatedReplicas": 8, "readyReplicas": 7}),
                Some(7),
            ),
            (
                "Grove's PodCliqueScalingGroup",
                json!({"componentKind": "PodCliqueScalingGroup", "componentNames": ["pv-3f9a1c07-0-worker"], "replicas": 8, "updatedReplicas": 8, "availableReplicas": 6}),
                Some(6),
            ),
            (
                "one that says neither: unknown is not zero",
                json!({"componentKind": "PodCliqueScalingGroup", "componentNames": ["pv-3f9a1c07-0-worker"], "replicas": 8}),
                None,
            ),
            (
                "LeaderWorkerSet",
                json!({"componentKind": "LeaderWorkerSet", "componentNames": ["pv-3f9a1c07-worker-0"], "replicas": 8, "updatedReplicas": 8, "readyReplicas": 8}),
                Some(8),
            ),
            (
                "Deployment",
                json!({"componentKind": "Deployment", "componentNames": ["pv-3f9a1c07-worker"], "replicas": 8, "updatedReplicas": 8, "readyReplicas": 5, "availableReplicas": 5}),
                Some(5),
            ),
        ];
        for (kind, worker, workers) in rows {
            for list in ["components", "services"] {
                let mut status = json!({
                    "observedGeneration": 2, "state": "pending",
                    "conditions": ready("some_resources_are_not_ready", waiting),
                });
                status[list] =
                    json!({"frontend": {"componentKind": "Deployment", "readyReplicas": 1}, "Worker": worker});
                let found = from_status(&status);
                assert_eq!(found.ready.get("worker").copied(), workers, "{kind} under {list}");
                assert_eq!(found.ready.get("frontend"), Some(&1), "{kind} under {list}");
                assert_eq!((found.current, found.state), (true, State::Coming), "{kind}");
                assert_eq!(found.message, waiting);
            }
        }
    }

    #[test]
    fn reasons_of_newer_operators_with_grove_are_no_end() {
        for reason in [
            "insufficient_capacity",
            "pods_not_ready",
            "updating",
            "mixed_not_ready_reasons",
            "one_of_tomorrow",
        ] {
            let found = from_status(
                &json!({"observedGeneration": 2, "state": "pending", "conditions": ready(reason, "gang of 9 pods")}),
            );
            assert_eq!(found.state, State::Coming, "{reason}");
        }
        let old = from_status(&json!({"observedGeneration": 1, "state": "successful"}));
        assert!(!old.current, "a status of the generation before");
    }
}
