//! The status of a DynamoGraphDeployment, as misleading as the real one.
//!
//! `replicas` counts pods that live, not pods that are wanted. Crash loops and pods that find no node stay `pending` for ever.
//! `failed` means the last pass could not write something, and the next good pass takes it back.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::faults::Faults;
use super::shape::{Graph, Shape};

/// `status` of both versions.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphStatus {
    /// Generation of the spec that the rest of the status is about.
    pub observed_generation: Option<i64>,
    /// `initializing`, `pending`, `successful` or `failed`.
    pub state: Option<String>,
    /// One condition, `Ready`.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// Replicas per component, in v1beta1.
    pub components: Option<BTreeMap<String, ReplicaStatus>>,
    /// Replicas per service, in v1alpha1.
    pub services: Option<BTreeMap<String, ReplicaStatus>>,
}

/// Replicas of one component.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaStatus {
    /// Always `Deployment` here.
    pub component_kind: String,
    /// Names of the Deployments.
    pub component_names: Vec<String>,
    /// Pods that have not terminated.
    pub replicas: i32,
    /// Pods of the newest template.
    pub updated_replicas: i32,
    /// Pods that are Ready.
    pub ready_replicas: i32,
    /// The same, as Deployments count it.
    pub available_replicas: i32,
}

/// What one pass knows when it writes the status.
pub struct Pass<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// Generation of its spec.
    pub generation: i64,
    /// Seconds since it was created.
    pub age_seconds: u64,
    /// Its Deployments that exist, by name.
    pub deployments: &'a BTreeMap<String, Deployment>,
    /// What is to go wrong.
    pub faults: &'a Faults,
    /// Why this pass could not write all it wanted.
    pub failure: Option<String>,
    /// The status so far.
    pub previous: &'a GraphStatus,
    /// Time of a change of condition.
    pub now: Time,
}

impl Pass<'_> {
    /// The status to write.
    pub fn status(self) -> GraphStatus {
        let replicas = self.replicas();
        let (state, reason, message) = self.judge(&replicas);
        let (components, services) = match self.graph.shape {
            Shape::V1beta1 => (Some(replicas), None),
            Shape::V1alpha1 => (None, Some(replicas)),
        };
        GraphStatus {
            observed_generation: if self.faults.stale_status {
                self.previous.observed_generation.or(Some(self.generation - 1))
            } else {
                Some(self.generation)
            },
            state: Some(state.to_owned()),
            conditions: Some(vec![self.ready_condition(state == "successful", reason, message)]),
            components,
            services,
        }
    }

    fn replicas(&self) -> BTreeMap<String, ReplicaStatus> {
        let mut all = BTreeMap::new();
        for component in &self.graph.components {
            let name = self.graph.child_name(component);
            let Some(deployment) = self.deployments.get(&name) else {
                continue;
            };
            let status = deployment.status.clone().unwrap_or_default();
            let most = if self.faults.never_ready {
                0
            } else if self.faults.ready_below_spec && component.is_worker() {
                (component.replicas - 1).max(0)
            } else {
                i32::MAX
            };
            let replicas = ReplicaStatus {
                component_kind: "Deployment".to_owned(),
                component_names: vec![name],
                replicas: status.replicas.unwrap_or(0),
                updated_replicas: status.updated_replicas.unwrap_or(0),
                ready_replicas: status.ready_replicas.unwrap_or(0).min(most),
                available_replicas: status.available_replicas.unwrap_or(0).min(most),
            };
            all.insert(component.name.clone(), replicas);
        }
        all
    }

    /// State, reason and message.
    fn judge(&self, replicas: &BTreeMap<String, ReplicaStatus>) -> (&'static str, &'static str, String) {
        if let Some(failure) = &self.failure {
            return ("failed", "failed_to_reconcile_the_resources", failure.clone());
        }
        if self
            .faults
            .failed_seconds
            .is_some_and(|seconds| self.age_seconds < seconds)
        {
            return (
                "failed",
                "failed_to_reconcile_the_resources",
                "fault failed-then-heals is on".to_owned(),
            );
        }
        let waiting = self.waiting(replicas);
        if waiting.is_empty() || self.faults.ready_below_spec {
            return (
                "successful",
                "all_resources_are_ready",
                "All resources are ready".to_owned(),
            );
        }
        let state = if replicas.is_empty() { "initializing" } else { "pending" };
        let message = format!("Resources not ready: {}: {}", self.graph.name, waiting.join("; "));
        (state, "some_resources_are_not_ready", message)
    }

    fn waiting(&self, replicas: &BTreeMap<String, ReplicaStatus>) -> Vec<String> {
        let mut waiting = Vec::new();
        for component in &self.graph.components {
            let name = self.graph.child_name(component);
            let current = self.deployments.get(&name).is_some_and(is_current);
            let seen = replicas.get(&component.name).cloned().unwrap_or_default();
            let wanted = component.replicas;
            if !current
                || seen.updated_replicas < wanted
                || seen.ready_replicas < wanted
                || seen.available_replicas < wanted
            {
                waiting.push(format!(
                    "deployment/{name}: desired={wanted}, ready={}",
                    seen.ready_replicas
                ));
            }
        }
        waiting
    }

    fn ready_condition(&self, ready: bool, reason: &str, message: String) -> Condition {
        let status = if ready { "True" } else { "False" };
        let before = self
            .previous
            .conditions
            .iter()
            .flatten()
            .find(|known| known.type_ == "Ready");
        Condition {
            type_: "Ready".to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
            last_transition_time: match before {
                Some(before) if before.status == status => before.last_transition_time.clone(),
                _ => self.now.clone(),
            },
            observed_generation: None,
        }
    }
}

/// Whether the Deployment's counts are about its newest spec.
fn is_current(deployment: &Deployment) -> bool {
    deployment.status.as_ref().and_then(|status| status.observed_generation) >= deployment.metadata.generation
}
