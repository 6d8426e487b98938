//! A pod of another user that holds GPUs.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::lab::{Lab, eventually};

/// A pod that does nothing but holds GPUs, and is not the operator's.
pub struct Holder {
    lab: Lab,
    namespace: String,
    name: String,
    by_claim: bool,
}

impl Holder {
    /// Asks for this many GPUs by a claim of the pod's name, without waiting for them.
    ///
    /// # Panics
    /// If the API server refuses.
    pub async fn by_claim(lab: &Lab, namespace: &str, name: &str, gpus: usize) -> Self {
        let request = json!({"name": "gpus", "exactly": {
            "deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": gpus}});
        let claim: ResourceClaim = read(json!({
            "metadata": {"name": name}, "spec": {"devices": {"requests": [request]}},
        }));
        let claims: Api<ResourceClaim> = Api::namespaced(lab.client.clone(), namespace);
        let created = claims.create(&PostParams::default(), &claim).await;
        created.unwrap_or_else(|error| panic!("create claim {name}: {error}"));
        let spec = json!({"resourceClaims": [{"name": "gpus", "resourceClaimName": name}]});
        Self::create(lab, namespace, name, spec, json!({"claims": [{"name": "gpus"}]}), true).await
    }

    /// Asks a device plugin for this many GPUs, without waiting for them.
    ///
    /// # Panics
    /// If the API server refuses.
    pub async fn by_device_plugin(lab: &Lab, namespace: &str, name: &str, gpus: usize) -> Self {
        let resources = json!({"limits": {"nvidia.com/gpu": gpus.to_string()}});
        Self::create(lab, namespace, name, json!({}), resources, false).await
    }

    async fn create(lab: &Lab, namespace: &str, name: &str, mut spec: Value, resources: Value, by_claim: bool) -> Self {
        spec["terminationGracePeriodSeconds"] = json!(0);
        spec["containers"] = json!([{"name": "hold", "image": "localhost/pause:lab", "imagePullPolicy": "Never",
            "resources": resources}]);
        let pod: Pod = read(json!({"metadata": {"name": name}, "spec": spec}));
        let pods: Api<Pod> = Api::namespaced(lab.client.clone(), namespace);
        let created = pods.create(&PostParams::default(), &pod).await;
        created.unwrap_or_else(|error| panic!("create pod {name}: {error}"));
        Self {
            lab: lab.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            by_claim,
        }
    }

    /// Waits until the scheduler has given it what it asked for.
    ///
    /// # Panics
    /// If that does not happen.
    #[must_use]
    pub async fn holding(self) -> Self {
        let pods: Api<Pod> = Api::namespaced(self.lab.client.clone(), &self.namespace);
        eventually(&format!("{} has its GPUs", self.name), LIMIT, || async {
            let pod = pods.get(&self.name).await.map_err(|error| error.to_string())?;
            let bound = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
            bound.ok_or_else(|| format!("{:?}", pod.status.and_then(|status| status.conditions)))
        })
        .await;
        self
    }

    /// The devices that its claim holds.
    ///
    /// # Panics
    /// If it has no claim.
    pub async fn devices(&self) -> BTreeSet<String> {
        let claims: Api<ResourceClaim> = Api::namespaced(self.lab.client.clone(), &self.namespace);
        let claim = claims.get(&self.name).await.expect("its claim");
        let devices = claim
            .status
            .and_then(|status| status.allocation?.devices?.results)
            .unwrap_or_default();
        devices.into_iter().map(|result| result.device).collect()
    }

    /// Ends it; its GPUs are free afterwards.
    ///
    /// # Panics
    /// If it stays.
    pub async fn leave(self) {
        let (pod, claim) = (format!("pod/{}", self.name), format!("resourceclaim/{}", self.name));
        let mut arguments = vec!["delete", "-n", &self.namespace, "--timeout=60s", &pod];
        if self.by_claim {
            arguments.push(&claim);
        }
        self.lab.kubectl(&arguments).await;
    }
}

/// A pod that needs no image pull is bound within a second; a busy machine takes longer.
const LIMIT: Duration = Duration::from_mins(1);

fn read<T: for<'de> serde::Deserialize<'de>>(manifest: Value) -> T {
    serde_json::from_value(manifest).expect("a manifest")
}
