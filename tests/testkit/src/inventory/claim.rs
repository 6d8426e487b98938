use k8s_openapi::api::resource::v1::ResourceClaim;
use serde_json::{Value, json};

use super::{GPU_DRIVER, build};

/// A `ResourceClaim`.
#[derive(Clone, Debug)]
pub struct ClaimBuilder(pub(super) ResourceClaim);

impl ClaimBuilder {
    /// A claim in namespace `other` that holds nothing yet.
    pub fn named(name: &str) -> Self {
        Self(build(json!({
            "metadata": { "name": name, "namespace": "other" }, "spec": {}, "status": { "allocation": { "devices": { "results": [] } } },
        })))
    }

    /// Holds a GPU of a pool.
    #[must_use]
    pub fn holds(self, pool: &str, device: &str) -> Self {
        self.result(&json!({ "driver": GPU_DRIVER, "pool": pool, "device": device }))
    }

    /// Adds an allocation result, with request `gpu`.
    #[must_use]
    pub fn result(mut self, result: &Value) -> Self {
        let mut result = result.clone();
        result["request"] = json!("gpu");
        let status = self.0.status.get_or_insert_default();
        let devices = status
            .allocation
            .get_or_insert_default()
            .devices
            .get_or_insert_default();
        devices.results.get_or_insert_default().push(build(result));
        self
    }

    /// Sets the request of all results, such as `main/sub` of a prioritized list.
    #[must_use]
    pub fn with_request(mut self, request: &str) -> Self {
        let allocation = self.0.status.iter_mut().filter_map(|status| status.allocation.as_mut());
        let devices = allocation.filter_map(|allocation| allocation.devices.as_mut());
        for result in devices.flat_map(|devices| devices.results.iter_mut().flatten()) {
            request.clone_into(&mut result.request);
        }
        self
    }

    /// Is reserved for a pod.
    #[must_use]
    pub fn reserved(mut self) -> Self {
        let pod = build(json!({ "resource": "pods", "name": "p", "uid": "u" }));
        self.0.status.get_or_insert_default().reserved_for = Some(vec![pod]);
        self
    }

    /// Is being deleted.
    #[must_use]
    pub fn deleting(mut self) -> Self {
        self.0.metadata.deletion_timestamp = Some(build(json!("2026-11-20T10:00:00Z")));
        self
    }
}
