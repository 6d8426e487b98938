use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use perfval_api::meta::RUN_LABEL;
use serde_json::json;

use super::build;

/// A pod.
#[derive(Clone, Debug)]
pub struct PodBuilder(pub(super) Pod);

impl PodBuilder {
    /// A running pod on a node that asks for nothing.
    pub fn on(node: &str, name: &str) -> Self {
        Self(build(json!({
            "metadata": { "name": name, "namespace": "other" },
            "spec": { "nodeName": node, "containers": [{ "name": "main", "resources": {} }] },
            "status": { "phase": "Running" },
        })))
    }

    /// Asks for an amount of a resource.
    #[must_use]
    pub fn requests(mut self, resource: &str, amount: &str) -> Self {
        let amounts = BTreeMap::from([(resource.to_owned(), Quantity(amount.to_owned()))]);
        for container in self.0.spec.iter_mut().flat_map(|spec| &mut spec.containers) {
            let resources = container.resources.get_or_insert_default();
            resources.requests.get_or_insert_default().extend(amounts.clone());
        }
        self
    }

    /// Has these devices of a resource, as its kubelet reports them.
    #[must_use]
    pub fn has_devices(mut self, resource: &str, ids: &[&str]) -> Self {
        let devices: Vec<_> = ids
            .iter()
            .map(|id| json!({ "resourceID": id, "health": "Healthy" }))
            .collect();
        let status = build(json!({
            "name": "main", "image": "", "imageID": "", "ready": true, "restartCount": 0,
            "allocatedResourcesStatus": [{ "name": resource, "resources": devices }],
        }));
        self.0.status.get_or_insert_default().container_statuses = Some(vec![status]);
        self
    }

    /// Carries the label of a run.
    #[must_use]
    pub fn with_run_label(mut self) -> Self {
        let labels = self.0.metadata.labels.get_or_insert_default();
        labels.insert(RUN_LABEL.to_owned(), "0011aabb".to_owned());
        self
    }

    /// Its phase.
    #[must_use]
    pub fn phase(mut self, phase: &str) -> Self {
        self.0.status.get_or_insert_default().phase = Some(phase.to_owned());
        self
    }

    /// Its extended resource was served by a claim (KEP-5004).
    #[must_use]
    pub fn served_by_claim(mut self, claim: &str, resource: &str) -> Self {
        self.0.status.get_or_insert_default().extended_resource_claim_status = Some(build(json!({
            "resourceClaimName": claim,
            "requestMappings": [{ "containerName": "main", "resourceName": resource, "requestName": "request-0" }],
        })));
        self
    }
}
