//! Limits of a run's namespace: its `ResourceQuotas` and `LimitRanges`.

mod limit_range;
mod quota;

use perfval_api::{AllocationMode, PerfValidationSpec, Reason};

pub use limit_range::tight;
use quota::{Allowance, Count, Other, QuotaUser, allowance, claimed, unmeasured};

use super::Sizing;
use super::our_pods::OurPods;
use super::report::NodeObstacle;
use crate::Granted;
use crate::inventory::OfRun;

/// The pods of a run in their namespace, for one way of asking for GPUs.
pub struct Namespace {
    /// The pods, as admission leaves them.
    pub pods: OurPods,
    /// Workers for which the quotas leave room, and what ends it; none without quota.
    allowance: Option<Allowance>,
}

impl Namespace {
    /// Reads the namespace's limits for workers that get GPUs through claims, or else from a device plugin. `others`
    /// are its other runs, each with the number of its pods.
    pub fn read(
        of_run: OfRun<'_>,
        spec: &PerfValidationSpec,
        by_claims: bool,
        others: &[(Granted<'_>, usize)],
    ) -> Self {
        let quotas = of_run.quotas.present().map(Vec::as_slice).unwrap_or_default();
        let own = quota_user(of_run, spec, spec, by_claims);
        let others = others.iter().map(|(run, there)| other(of_run, spec, run, *there));
        let others: Vec<Other> = others.collect();
        Self {
            allowance: allowance(quotas, &own, &others),
            pods: own.pods,
        }
    }

    /// Workers that are allowed.
    pub fn workers(&self) -> i64 {
        self.allowance.as_ref().map_or(i64::MAX, |allowance| allowance.workers)
    }

    /// Obstacle if fewer than `min` workers are allowed.
    pub fn forbids(&self, min: i64) -> Option<NodeObstacle> {
        let Allowance {
            quota,
            resource,
            workers,
            later,
        } = self.allowance.clone().filter(|allowance| allowance.workers < min)?;
        Some(NodeObstacle::QuotaExceeded {
            quota,
            resource,
            workers,
            for_now: later >= min,
        })
    }
}

/// Resources of a run that quotas count. The `DeviceClass` was read for the spec `known`.
fn quota_user(of_run: OfRun<'_>, known: &PerfValidationSpec, spec: &PerfValidationSpec, by_claims: bool) -> QuotaUser {
    let (placement, class) = (&spec.placement, &spec.placement.device_class_name);
    let limit_ranges = of_run.limit_ranges.present().map(Vec::as_slice).unwrap_or_default();
    let pods = OurPods::new(
        spec,
        Some(placement.resource_name.as_str()).filter(|_| !by_claims),
        limit_ranges,
    );
    let is_known = known.placement.device_class_name == *class;
    let class_object = of_run.device_class.present().filter(|_| is_known);
    QuotaUser {
        pods,
        claim: if by_claims {
            claimed(class_object, class, spec.gpus_per_worker())
        } else {
            Vec::new()
        },
        priority_class: spec.pod_template.spec.priority_class_name.clone(),
    }
}

/// Another run as quotas count it, with `there` of its pods created. The load generator's pod comes last, and comes
/// again for each trial. The missing pods are unknown, so they are taken to be workers.
fn other(of_run: OfRun<'_>, known: &PerfValidationSpec, run: &Granted<'_>, there: usize) -> Other {
    let workers = run.spec.workers(run.gpus);
    let whole = Count::whole(workers);
    let missing = (workers + 2 - i64::try_from(there).unwrap_or(i64::MAX)).max(0);
    let to_come = Count {
        workers: (missing - 1).clamp(0, workers),
        frontend_for: (missing - 1 > workers).then_some(workers),
        trial_for: (missing > 0).then_some(workers),
    };
    Other {
        user: quota_user(of_run, known, run.spec, run.by_claims),
        to_come: if run.creates { to_come } else { Count::default() },
        gives_back: if run.at_work { whole } else { Count::default() },
    }
}

/// Refusal by admission that does not depend on free resources.
pub fn refusal(of_run: OfRun<'_>, spec: &PerfValidationSpec) -> Option<Sizing> {
    let limit_ranges = of_run.limit_ranges.present().map(Vec::as_slice).unwrap_or_default();
    let quotas = of_run.quotas.present().map(Vec::as_slice).unwrap_or_default();
    // `Auto` is not decided yet.
    let is_by_plugin = spec.placement.allocation == AllocationMode::DevicePlugin;
    let gpu = is_by_plugin.then_some(spec.placement.resource_name.as_str());
    let pods = OurPods::new(spec, gpu, limit_ranges);
    let priority_class = spec.pod_template.spec.priority_class_name.as_deref();
    let (reason, message) = limit_range::refusal(limit_ranges, &pods)
        .map(|message| (Reason::LimitRangeViolated, message))
        .or_else(|| unmeasured(quotas, &pods, priority_class).map(|message| (Reason::QuotaExceeded, message)))?;
    Some(Sizing::Refuse { reason, message })
}
