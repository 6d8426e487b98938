//! Whether the deployment is really ready: read from its status, its pods and their claims, because each misleads alone.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::core::{DynamicObject, ResourceExt as _};
use perfval_api::{DeviceStatus, WorkerStatus};
use serde_json::Value;

use crate::build::COMPONENT_LABEL;
use crate::names;

/// What the deployment's own status says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// Whether the status speaks of the deployment's present generation.
    pub current: bool,
    /// `failed`, which may heal itself.
    pub failed: bool,
    /// Ready replicas of a component, where it reports them.
    pub ready: BTreeMap<String, i64>,
    /// Message of the Ready condition.
    pub message: String,
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
    Reported {
        current: observed >= deployment.metadata.generation.unwrap_or(i64::MAX),
        failed: status["state"] == "failed",
        ready,
        message: condition
            .and_then(|ready| ready["message"].as_str())
            .unwrap_or("no Ready condition yet")
            .to_owned(),
    }
}

/// The pods of a run, told apart.
pub struct Pods<'a> {
    /// Worker pods that are not being deleted, by name.
    pub workers: Vec<&'a Pod>,
    /// Frontend pods that are not being deleted.
    pub frontends: Vec<&'a Pod>,
}

impl<'a> Pods<'a> {
    /// Tells the pods of a run apart by our component label.
    pub fn of(pods: &'a [Pod], run_id: &str) -> Self {
        let of = |component: &str| {
            let mut found: Vec<&Pod> = pods
                .iter()
                .filter(|pod| {
                    pod.labels()
                        .get(perfval_api::meta::RUN_LABEL)
                        .is_some_and(|id| id == run_id)
                })
                .filter(|pod| pod.labels().get(COMPONENT_LABEL).is_some_and(|name| name == component))
                .filter(|pod| pod.metadata.deletion_timestamp.is_none() && !is_over(pod))
                .collect();
            found.sort_by_key(|pod| pod.name_any());
            found
        };
        Self {
            workers: of(names::WORKER),
            frontends: of(names::FRONTEND),
        }
    }

    /// Frontend and workers.
    pub fn all(&self) -> impl Iterator<Item = &'a Pod> + '_ {
        self.frontends.iter().chain(&self.workers).copied()
    }

    /// Workers that are Ready.
    pub fn ready_workers(&self) -> i64 {
        count(self.workers.iter().filter(|pod| is_ready(pod)).count())
    }

    /// Whether a frontend is Ready.
    pub fn frontend_ready(&self) -> bool {
        self.frontends.iter().any(|pod| is_ready(pod))
    }
}

/// An evicted pod stays behind as Failed while its replacement works.
fn is_over(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Failed" | "Succeeded"))
}

/// Whether the kubelet reports the pod as Ready.
pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The workers as a trial must find them again at its end.
pub fn workers(pods: &Pods<'_>, claims: &[ResourceClaim]) -> Vec<WorkerStatus> {
    pods.workers.iter().map(|pod| worker(pod, claims)).collect()
}

fn worker(pod: &Pod, claims: &[ResourceClaim]) -> WorkerStatus {
    let statuses = pod
        .status
        .as_ref()
        .and_then(|status| status.container_statuses.as_ref());
    WorkerStatus {
        pod: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        restarts: statuses
            .into_iter()
            .flatten()
            .map(|status| i64::from(status.restart_count))
            .sum(),
        address: pod.status.as_ref().and_then(|status| status.pod_ip.clone()),
        device: devices_of(pod, claims)
            .first()
            .map(|device| format!("{}/{}", device.pool, device.name)),
    }
}

/// Devices that a pod's claims hold; administrative access holds none.
fn devices_of(pod: &Pod, claims: &[ResourceClaim]) -> Vec<DeviceStatus> {
    let uid = pod.uid().unwrap_or_default();
    claims
        .iter()
        .filter(|claim| claim.owner_references().iter().any(|owner| owner.uid == uid))
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
        .filter(|result| result.admin_access != Some(true))
        .map(|result| DeviceStatus {
            pool: result.pool.clone(),
            name: result.device.clone(),
            uuid: None,
        })
        .collect()
}

/// What is wrong with where the workers are: wrong node, a missing or a shared GPU. `None`: all as planned.
pub fn misplaced(pods: &Pods<'_>, claims: &[ResourceClaim], node: &str, by_claim: bool) -> Option<String> {
    let elsewhere = pods.workers.iter().find_map(|pod| {
        let actual = pod.spec.as_ref()?.node_name.as_deref()?;
        (actual != node).then(|| format!("worker {} runs on {actual}, not on {node}", pod.name_any()))
    });
    if elsewhere.is_some() || !by_claim {
        return elsewhere;
    }
    let mut held = BTreeSet::new();
    pods.workers.iter().find_map(|pod| {
        let devices = devices_of(pod, claims);
        let [device] = devices.as_slice() else {
            return Some(format!(
                "worker {} holds {} GPUs instead of one",
                pod.name_any(),
                devices.len()
            ));
        };
        let key = (device.pool.clone(), device.name.clone());
        (!held.insert(key)).then(|| format!("GPU {} of {} is held by two workers", device.name, device.pool))
    })
}

/// The devices that the workers hold, with the uuids that sizing knew.
pub fn held(pods: &Pods<'_>, claims: &[ResourceClaim], planned: &[DeviceStatus]) -> Vec<DeviceStatus> {
    let mut devices: Vec<DeviceStatus> = pods.workers.iter().flat_map(|pod| devices_of(pod, claims)).collect();
    for device in &mut devices {
        let known = planned
            .iter()
            .find(|known| known.pool == device.pool && known.name == device.name);
        device.uuid = known.and_then(|known| known.uuid.clone());
    }
    devices.sort();
    devices
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
