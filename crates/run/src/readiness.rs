//! Readiness of a deployment as its pods and their claims show it; its own status can mislead.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod, PodCondition};
use k8s_openapi::api::resource::v1::{DeviceRequestAllocationResult, ResourceClaim};
use kube::core::ResourceExt as _;
use perfval_api::text::number_of;
use perfval_api::{Allocation, Phase, PlacementStatus, PlanDetails, WorkerPod};
use perfval_sizing::inventory::{Interned, PodUse};
use perfval_sizing::{HeldByWorker, Seen};

use crate::ending::{ended_by, was_seen};
use crate::names::COMPONENT_LABEL;
use crate::names::dynamo::{FRONTEND, WORKER};
use crate::names::{self, LOAD_GENERATOR, MODEL_CACHE};
use crate::observed::PodEvent;
use crate::run::Run;

/// The pods of a run by component.
#[derive(Default)]
pub struct Pods<'a> {
    /// Worker pods that are not being deleted, by name.
    pub workers: Vec<&'a Pod>,
    /// Frontend pods that are not being deleted.
    pub frontends: Vec<&'a Pod>,
    /// Worker pods that are being deleted. Their Service still lists them, so a trial would measure them.
    pub leaving: Vec<&'a Pod>,
    /// Worker pods that failed: a kubelet evicted or rejected them, and they stay.
    pub failed: Vec<&'a Pod>,
    /// Pods of trials that are not over; a pod that is being deleted still sends requests.
    pub load_generators: Vec<&'a Pod>,
}

impl<'a> Pods<'a> {
    /// Sorts the pods of a run by our component label.
    pub fn new(pods: &'a [Pod], run_id: &str) -> Self {
        let alive = |component: &str| {
            let mut found: Vec<&Pod> = pods
                .iter()
                .filter(|pod| is_part(pod, run_id, component) && !is_over(pod))
                .collect();
            found.sort_by_key(|pod| pod.name_any());
            found
        };
        let is_leaving = |pod: &&Pod| pod.metadata.deletion_timestamp.is_some();
        let (leaving, workers): (Vec<_>, Vec<_>) = alive(WORKER).into_iter().partition(is_leaving);
        let mut frontends = alive(FRONTEND);
        frontends.retain(|pod| !is_leaving(pod));
        let is_failed_worker = |pod: &&Pod| is_part(pod, run_id, WORKER) && is_failed(pod);
        Self {
            workers,
            frontends,
            leaving,
            failed: pods.iter().filter(is_failed_worker).collect(),
            load_generators: alive(LOAD_GENERATOR),
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

    /// A wait for workers that are being deleted.
    pub fn wait_for_leaving(&self) -> Option<String> {
        let pod = self.leaving.first()?;
        Some(format!(
            "worker {} was deleted and is still there; waiting for its end",
            pod.name_any()
        ))
    }

    /// Returns true if a frontend is Ready.
    pub fn frontend_ready(&self) -> bool {
        self.frontends.iter().any(|pod| is_ready(pod))
    }
}

/// Returns true if pods are missing that the phase of a run waits for, so that a controller has yet to create them,
/// or may not.
pub fn lacks_pods(run: &Run<'_>, pods: &[Pod]) -> bool {
    let status = run.status();
    let id = run.id();
    let sorted = Pods::new(pods, &id);
    let deployment = || count(sorted.workers.len()) < run.workers() || sorted.frontends.is_empty();
    match status.phase {
        Some(Phase::Deploying) => fillers(pods, &id).next().is_none(),
        Some(Phase::WaitingForReady) => deployment(),
        Some(Phase::Benchmarking) => {
            let open = status.state.trials.last().filter(|trial| trial.outcome.is_none());
            // The pods of earlier trials may be gone: a Job past its deadline deletes its own.
            let lacks_generator = open.is_some_and(|trial| {
                let job = names::trial_job(&id, trial.number);
                let is_owner = |pod: &Pod| pod.owner_references().iter().any(|owner| owner.name == job);
                let mut generators = pods.iter().filter(|pod| is_part(pod, &id, LOAD_GENERATOR));
                !generators.any(is_owner)
            });
            deployment() || lacks_generator
        }
        _ => false,
    }
}

/// Returns true if the labels of a pod show that it is this component of the run.
fn is_part(pod: &Pod, run_id: &str, component: &str) -> bool {
    let label = |key: &str| pod.labels().get(key).map(String::as_str);
    label(perfval_api::meta::RUN_LABEL) == Some(run_id) && label(COMPONENT_LABEL) == Some(component)
}

/// Pods that fill the model cache, those that are over included.
pub fn fillers<'a>(pods: &'a [Pod], run_id: &str) -> impl Iterator<Item = &'a Pod> + use<'a> {
    let run_id = run_id.to_owned();
    pods.iter().filter(move |pod| is_part(pod, &run_id, MODEL_CACHE))
}

/// Returns true if a pod ended without success.
pub fn is_failed(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    phase == Some("Failed")
}

/// Returns true if a pod is over. An evicted one stays behind as Failed while its replacement works.
pub fn is_over(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Failed" | "Succeeded"))
}

/// Returns true if the kubelet reports the pod as Ready.
pub fn is_ready(pod: &Pod) -> bool {
    pod_condition(pod, "Ready").is_some_and(|condition| condition.status == "True")
}

/// Condition of a pod.
pub(crate) fn pod_condition<'a>(pod: &'a Pod, type_: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Statuses of a pod's containers: init containers first, as they run.
pub(crate) fn container_statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.iter();
    let init = status.flat_map(|status| status.init_container_statuses.iter().flatten());
    init.chain(statuses(pod))
}

/// Workers that restarted since they were recorded: their events show whether a probe ended them.
pub fn restarted<'a>(run: &Run<'_>, pods: &'a [Pod]) -> Vec<&'a Pod> {
    let known = &run.status().state.worker_pods;
    let pods = Pods::new(pods, &run.id()).workers.into_iter();
    let is_new = |pod: &&Pod| {
        let uid = pod.uid().unwrap_or_default();
        let known = known.iter().find(|known| known.uid == uid);
        known.is_some_and(|known| known.restarts != restarts(pod))
    };
    pods.filter(is_new).collect()
}

/// The workers as a trial must find them again at its end. `known`: as they were recorded; `events`: those of workers that
/// restarted since.
pub fn workers(
    pods: &Pods<'_>,
    claims: &[ResourceClaim],
    known: &[WorkerPod],
    events: &Seen<Vec<PodEvent>>,
) -> Vec<WorkerPod> {
    pods.workers
        .iter()
        .map(|pod| worker(pod, claims, known, events))
        .collect()
}

fn worker(pod: &Pod, claims: &[ResourceClaim], known: &[WorkerPod], events: &Seen<Vec<PodEvent>>) -> WorkerPod {
    let ends = statuses(pod).filter_map(last_end);
    let ended = ends.max_by_key(|ended| (!was_seen(ended), ended.finished_at.as_ref().map(|time| time.0)));
    let (uid, restarts) = (pod.uid().unwrap_or_default(), restarts(pod));
    // The events of an earlier end are not read again.
    let known = known
        .iter()
        .find(|known| known.uid == uid && known.restarts == restarts);
    WorkerPod {
        pod: pod.name_any(),
        ended_by: match known {
            Some(known) => known.ended_by,
            None => ended.and_then(|ended| ended_by(&uid, ended, events)),
        },
        uid,
        restarts,
        last_exit: ended.filter(|ended| was_seen(ended)).map(in_words),
        ended_unseen: ended.is_some_and(|ended| !was_seen(ended)),
        address: pod.status.as_ref().and_then(|status| status.pod_ip.clone()),
        devices: devices(pod, claims),
    }
}

/// GPUs of a worker, in order: the driver lists them in no order of its own.
fn devices(pod: &Pod, claims: &[ResourceClaim]) -> Vec<String> {
    let mut devices: Vec<String> = results(pod, claims)
        .map(|(_, result)| format!("{}/{}", result.pool, result.device))
        .collect();
    devices.sort();
    devices
}

/// Statuses of a pod's containers, without its init containers.
pub(crate) fn statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.iter();
    status.flat_map(|status| status.container_statuses.iter().flatten())
}

/// Restarts of a pod's containers.
fn restarts(pod: &Pod) -> i64 {
    statuses(pod).map(|status| i64::from(status.restart_count)).sum()
}

/// End of a container before its restart.
fn last_end(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    status.last_state.as_ref()?.terminated.as_ref()
}

/// End of a container, in the kubelet's words.
fn in_words(ended: &ContainerStateTerminated) -> String {
    let reason = ended
        .reason
        .as_ref()
        .map_or(String::new(), |reason| format!(" ({reason})"));
    format!("exit code {}{reason}", ended.exit_code)
}

/// Devices allocated to a pod's claims, administrative access included.
fn results<'a>(
    pod: &Pod,
    claims: &'a [ResourceClaim],
) -> impl Iterator<Item = (&'a ResourceClaim, &'a DeviceRequestAllocationResult)> {
    let uid = pod.uid().unwrap_or_default();
    claims
        .iter()
        .filter(move |claim| claim.owner_references().iter().any(|owner| owner.uid == uid))
        .flat_map(|claim| {
            let allocation = claim.status.as_ref().and_then(|status| status.allocation.as_ref());
            let devices = allocation.and_then(|allocation| allocation.devices.as_ref());
            let results = devices.and_then(|devices| devices.results.as_ref());
            results.into_iter().flatten().map(move |result| (claim, result))
        })
}

/// Fault in the workers' places: wrong node, a missing, shared or borrowed GPU. `None`: all as planned, as far as
/// pods and their claims show; `claims` are absent if they were not read. `each`: GPUs of each worker.
pub fn misplaced(
    pods: &Pods<'_>,
    claims: Option<&[ResourceClaim]>,
    plan: &PlacementStatus,
    each: i64,
) -> Option<String> {
    let node = &plan.node;
    let elsewhere = pods.workers.iter().find_map(|pod| {
        let actual = pod.spec.as_ref()?.node_name.as_deref()?;
        (actual != node).then(|| format!("worker {} runs on {actual}, not on {node}", pod.name_any()))
    });
    let claims = claims.filter(|_| elsewhere.is_none() && plan.allocation == Allocation::Dra);
    let Some(claims) = claims else {
        return elsewhere.or_else(|| shared_by_plugin(pods));
    };
    let mut held = BTreeSet::new();
    pods.workers.iter().find_map(|pod| {
        let worker = pod.name_any();
        let given: Vec<&DeviceRequestAllocationResult> = results(pod, claims).map(|(_, result)| result).collect();
        if count(given.len()) != each {
            return Some(format!(
                "worker {worker} holds {} instead of {each}",
                number_of(count(given.len()), "GPU")
            ));
        }
        given.into_iter().find_map(|result| {
            let (device, pool) = (&result.device, &result.pool);
            if result.admin_access == Some(true) {
                return Some(format!(
                    "worker {worker} only looks at GPU {device} (adminAccess): it belongs to others"
                ));
            }
            if result.share_id.is_some() {
                return Some(format!("worker {worker} holds only a share of GPU {device} of {pool}"));
            }
            let is_new = held.insert((&result.driver, pool, device));
            (!is_new).then(|| format!("GPU {device} of {pool} is held by two workers"))
        })
    })
}

/// A worker that a device plugin gave a share of a GPU, such as `GPU-5d5d::2`, although there was no sign of sharing
/// before. The kubelet reports it from Kubernetes 1.36 on.
fn shared_by_plugin(pods: &Pods<'_>) -> Option<String> {
    pods.workers.iter().find_map(|pod| {
        let used = PodUse::read(pod, &mut Interned::default())?;
        let is_share = |device: &&str| device.starts_with("GPU-") && device.contains("::");
        let share = used.devices.iter().map(|(_, device)| &**device).find(is_share)?;
        let worker = pod.name_any();
        Some(format!(
            "worker {worker} holds only a share of a GPU, {share}: turn sharing off for {} in the device plugin's configuration",
            used.node
        ))
    })
}

/// The devices that the workers hold.
pub fn held_devices<'a>(pods: &Pods<'_>, claims: &'a [ResourceClaim]) -> Vec<HeldByWorker<'a>> {
    let of_worker = |pod: &&Pod| {
        let worker = pod.name_any();
        let devices: Vec<HeldByWorker<'a>> = results(pod, claims)
            .map(|(claim, result)| HeldByWorker {
                worker: worker.clone(),
                claim: format!("{}/{}", claim.namespace().unwrap_or_default(), claim.name_any()),
                driver: &result.driver,
                pool: &result.pool,
                device: &result.device,
            })
            .collect();
        devices
    };
    pods.workers.iter().flat_map(of_worker).collect()
}

/// A worker that came to another GPU than those confirmed when the deployment became ready.
pub fn moved(pods: &Pods<'_>, claims: &[ResourceClaim], plan: &PlanDetails) -> Option<String> {
    let confirmed = |given: &HeldByWorker<'_>| {
        let mut devices = plan.device_ids.iter();
        devices.any(|device| device.pool == given.pool && device.name == given.device)
    };
    let stray = held_devices(pods, claims).into_iter().find(|given| !confirmed(given))?;
    Some(format!(
        "worker {} holds GPU {} of {} now, which is not one of those that the run began with",
        stray.worker, stray.device, stray.pool
    ))
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
