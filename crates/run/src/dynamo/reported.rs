//! What a DynamoGraphDeployment says of itself.

use std::collections::BTreeMap;

use kube::core::DynamicObject;
use serde_json::Value;

/// The one message of Dynamo's operator that no next pass of it heals.
const NO_QUEUE: &str = "failed to determine kai-scheduler queue";

/// What a deployment calls itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It may heal itself.
    Failed,
    /// This says less than it seems: it was seen with five of eight workers ready.
    Successful,
    /// Not yet either.
    Coming,
}

/// What the deployment's own status says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// Whether the status speaks of the deployment's present generation.
    pub current: bool,
    /// What it calls itself.
    pub state: State,
    /// Ready replicas of a component, where it reports them.
    pub ready: BTreeMap<String, i64>,
    /// Message of the Ready condition.
    pub message: String,
    /// Whether it fails because the queue of KAI's scheduler is missing, which no next pass of Dynamo's operator heals.
    pub lacks_queue: bool,
}

/// Reads a DynamoGraphDeployment's status. `replicas` in there counts living pods, not the wish, so it is not read.
pub fn reported(deployment: &DynamicObject) -> Reported {
    let status = &deployment.data["status"];
    let observed = status["observedGeneration"].as_i64().unwrap_or(0);
    // v1beta1 says components, v1alpha1 says services.
    let components = [&status["components"], &status["services"]]
        .into_iter()
        .find_map(Value::as_object);
    let ready = components
        .into_iter()
        .flatten()
        .filter_map(|(name, component)| Some((name.to_lowercase(), component["readyReplicas"].as_i64()?)))
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
        lacks_queue: message.contains(NO_QUEUE),
    }
}
