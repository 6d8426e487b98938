//! The proof that a run left nothing: objects, pods, claims, GPUs.

use std::collections::BTreeSet;

use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use kube::Api;
use kube::api::ListParams;

use crate::lab::Lab;

/// Kinds that a run creates. The results ConfigMap and the model cache are meant to stay.
const KINDS: [&str; 7] = [
    "jobs.batch",
    "dynamographdeployments.nvidia.com",
    "services",
    "networkpolicies.networking.k8s.io",
    "resourceclaimtemplates.resource.k8s.io",
    "pods",
    "resourceclaims.resource.k8s.io",
];

/// Everything that still carries the name of a validation.
///
/// # Panics
/// If the cluster cannot be read.
pub async fn leftovers(lab: &Lab, namespace: &str, name: &str) -> Vec<String> {
    labelled(lab, namespace, &format!("perfvalidation.dev/name={name}")).await
}

/// Everything in a namespace that carries the name of any validation.
///
/// # Panics
/// If the cluster cannot be read.
pub async fn leftovers_of_all(lab: &Lab, namespace: &str) -> Vec<String> {
    labelled(lab, namespace, "perfvalidation.dev/name").await
}

async fn labelled(lab: &Lab, namespace: &str, selector: &str) -> Vec<String> {
    let mut left = Vec::new();
    for kind in KINDS {
        let arguments = ["get", kind, "-n", namespace, "-l", selector, "-o", "name"];
        match lab.try_kubectl(&arguments).await {
            Ok(names) => left.extend(names.lines().map(str::to_owned)),
            // A kind that the cluster does not serve holds nothing.
            Err(error) if error.contains("the server doesn't have a resource type") => {}
            Err(error) => panic!("get {kind}: {error}"),
        }
    }
    left
}

/// The node's GPUs and which of them are held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpus {
    /// All devices.
    pub all: usize,
    /// Devices held by a claim.
    pub held: BTreeSet<String>,
    /// The first device in the order in which the scheduler walks the slice.
    pub first: String,
}

impl Gpus {
    /// Counts the GPUs of the lab's node.
    ///
    /// # Panics
    /// If the cluster cannot be read.
    pub async fn count(lab: &Lab) -> Self {
        let everything = ListParams::default();
        let slices = Api::<ResourceSlice>::all(lab.client.clone())
            .list(&everything)
            .await
            .expect("list slices");
        let devices: Vec<String> = slices
            .items
            .iter()
            .filter(|slice| slice.spec.driver == "gpu.nvidia.com")
            .flat_map(|slice| slice.spec.devices.iter().flatten())
            .map(|device| device.name.clone())
            .collect();
        let claims = Api::<ResourceClaim>::all(lab.client.clone())
            .list(&everything)
            .await
            .expect("list claims");
        let held = claims
            .items
            .iter()
            .filter_map(|claim| {
                claim
                    .status
                    .as_ref()?
                    .allocation
                    .as_ref()?
                    .devices
                    .as_ref()?
                    .results
                    .as_ref()
            })
            .flatten()
            .map(|result| result.device.clone())
            .collect();
        Self {
            all: devices.len(),
            held,
            first: devices.first().cloned().unwrap_or_default(),
        }
    }

    /// Devices that no claim holds.
    pub fn free(&self) -> usize {
        self.all - self.held.len()
    }
}
