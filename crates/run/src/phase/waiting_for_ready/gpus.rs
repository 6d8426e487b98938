//! Check of the GPUs of each pod, across the whole cluster only while a worker finds none, and once when all have
//! one.

use std::time::Duration;

use k8s_openapi::api::resource::v1::ResourceClaim;
use perfval_api::{Allocation, DeviceStatus, GpuCheck, PerfValidationStatus, PlacementStatus, Reason, Why, text};
use perfval_sizing as sizing;
use perfval_sizing::{Seen, Unconfirmed};

use crate::diagnosis::race;
use crate::observed::Need;
use crate::pass::{Pass, Step};
use crate::readiness::{self, Pods};

/// Time after which a doubt is looked at again. Changes of other pods and claims start no pass.
const COUNT_AGAIN: Duration = Duration::from_secs(2);

/// Returns true if the pass has to check the GPUs of each pod: a worker finds none, or all have one. A start is no
/// time for it: claims do not change while pods do, and the API server answers a list of unchanged objects 50 ms late
/// (1.36: its cache checks with etcd ten times a second if it is fresh).
pub(super) fn counts_gpus(status: &PerfValidationStatus) -> bool {
    status.state.gpu_check.is_some()
}

/// Returns true if it is not confirmed yet that each worker has a GPU of its own. Later they are looked at again before each trial.
pub(super) fn are_unconfirmed(status: &PerfValidationStatus, plan: &PlacementStatus) -> bool {
    plan.allocation == Allocation::Dra && status.state.ready_since.is_none()
}

/// Reason in the status while the scheduler finds no place for a worker, unless an earlier worker still has it.
pub(super) fn refused(pass: &mut Pass<'_>, pods: &Pods<'_>) -> Option<Why> {
    let refused = pods.workers.iter().any(|pod| race::is_unschedulable(pod));
    (refused && pods.leaving.is_empty()).then(|| {
        pass.look_again_in(COUNT_AGAIN);
        Why::new(Reason::Unschedulable, "the scheduler finds no place for a worker")
    })
}

/// The holder of the GPU that a worker does not find any more, if it is clear; the scheduler's own words take longer
/// to trust.
pub(super) fn lost(pass: &Pass<'_>, pods: &Pods<'_>, claims: Option<&[ResourceClaim]>) -> Option<String> {
    let inventory = pass.seen.inventory.present().filter(|_| pods.leaving.is_empty())?;
    race::lost(inventory, pass.run, pods, claims?)
}

/// Step while it is not certain that each worker has a GPU of its own. The confirmed devices
/// become those of the plan. `claims`: absent until they are requested.
pub(super) fn broken(
    pass: &mut Pass<'_>,
    pods: &Pods<'_>,
    claims: Option<&[ResourceClaim]>,
    plan: &PlacementStatus,
) -> Option<Step> {
    if !are_unconfirmed(&pass.status, plan) {
        return None;
    }
    let Some(claims) = claims else {
        return Some(read_holders(pass));
    };
    match (confirmed(pass, pods, claims, plan), &mut pass.status.placement) {
        (Err(step), _) => Some(step),
        (Ok(devices), Some(plan)) => {
            sizing::hold(plan, &mut pass.status.state.plan, devices);
            None
        }
        (Ok(_), None) => None,
    }
}

/// Requests the claims and the devices that others hold, together with the pods.
fn read_holders(pass: &mut Pass<'_>) -> Step {
    pass.read([Need::Workload, Need::Claims, Need::Devices])
}

fn confirmed(
    pass: &mut Pass<'_>,
    pods: &Pods<'_>,
    claims: &[ResourceClaim],
    plan: &PlacementStatus,
) -> Result<Vec<DeviceStatus>, Step> {
    let confirmed = match &pass.seen.devices {
        Seen::Present(devices) => sizing::confirm(devices, &plan.node, &readiness::held_devices(pods, claims)),
        Seen::NotAsked => return Err(read_holders(pass)),
        unread => Err(Unconfirmed::Unknown(unread.unknown().unwrap_or("no answer").to_owned())),
    };
    confirmed.map_err(|unconfirmed| match unconfirmed {
        // Pods and claims are read at the same time: what two looks show is so.
        Unconfirmed::Wrong(wrong) if was_seen(pass, &wrong) => misplaced(pass, wrong),
        Unconfirmed::Wrong(wrong) => {
            let seen = Some(text::bounded(&wrong));
            check_again(pass, wrong, seen)
        }
        Unconfirmed::Unknown(why) => check_again(
            pass,
            format!("it is not known whose GPUs the workers have: {why}"),
            None,
        ),
    })
}

/// Returns true if the look before this one found the same.
fn was_seen(pass: &Pass<'_>, wrong: &str) -> bool {
    let last = pass.run.status().state.gpu_check.as_ref();
    last.and_then(|check| check.wrong.as_deref()) == Some(&*text::bounded(wrong))
}

fn check_again(pass: &mut Pass<'_>, what: String, wrong: Option<String>) -> Step {
    pass.not_ready(Some(GpuCheck { wrong }));
    pass.look_again_in(COUNT_AGAIN);
    Step::wait(Reason::Running, what)
}

pub(super) fn misplaced(pass: &mut Pass<'_>, wrong: String) -> Step {
    pass.not_ready(None);
    Step::error(Reason::PlacementBroken, wrong)
}
