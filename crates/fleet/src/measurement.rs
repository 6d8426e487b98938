//! Measurement of one node: the part of a finished `PerfValidation` that statistics over nodes use.

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource as _;
use perfval_api::fleet::{DueReason, PerfValidationPolicy, ValidationReference};
use perfval_api::meta::DUE_REASON;
use perfval_api::{
    EnvironmentStatus, Gate, GateMode, GateResult, MetricSource, PerfValidation, PerfValidationStatus, Phase, Reason,
    Statistic, Trigger, Verdict,
};

use crate::centre::mean;

/// Most GPUs of one node that count, so that a `NodePerformance` stays below 6 KiB. With eight it stays below 4 KiB.
pub(crate) const MOST_GPUS: usize = 16;
/// Trials of a run that count, so that a `NodePerformance` stays small.
pub(crate) const MOST_TRIALS: usize = 5;
/// Trials of the confirmation that decides. In the simulated policy one trial reported 17 of 40 losses of 10 % with usual noise.
pub(crate) const CONFIRMATION_TRIALS: u8 = 5;
/// Microseconds per second.
const MICRO: f64 = 1e6;

/// One finished run that measured a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Name of the node.
    pub node: String,
    /// Run.
    pub validation: ValidationReference,
    /// Number of the earlier run whose trials this run judged again; `None` if it measured.
    pub judged_run: Option<i64>,
    /// True if it was to confirm the run before it, which was slow.
    pub is_confirmation: bool,
    /// Passed, Failed or Inconclusive.
    pub verdict: Verdict,
    /// Reason of the verdict.
    pub reason: Option<String>,
    /// Time from which it used its machine.
    pub began_at: DateTime<Utc>,
    /// End of the run.
    pub ended_at: DateTime<Utc>,
    /// Digest of the environment; `None` if no trial left a report.
    pub environment: Option<String>,
    /// Product name of the GPUs.
    pub product: Option<String>,
    /// GPUs in use.
    pub gpu_count: i64,
    /// Output tokens per second of the deployment.
    pub output_tokens_per_second: Option<i64>,
    /// Result of the tightest enforced gate on an average, without `SlowestWorkerPercent` and `OwnPastPercent` (percent; below 100 is a miss).
    pub percent_of_gate: Option<i64>,
    /// Decode speed of the slowest GPU (percent of the node's other GPUs).
    pub percent_of_peers: Option<i64>,
    /// UUIDs of the GPUs of each worker with its times from one token to the next in the last trials (µs, above 0), the slowest
    /// worker first. At least one trial, and at most five. At most 16 workers, the first by UUID.
    pub gpus: Vec<(String, Vec<i64>)>,
}

impl Measurement {
    /// Reads a finished validation. The only function that reads a `PerfValidation`'s status for the fleet. `None` if no run
    /// is over, or the run measured nothing.
    pub fn read(object: &PerfValidation, status: &PerfValidationStatus) -> Option<Self> {
        let (run, placement) = (status.run.as_ref()?, status.placement.as_ref()?);
        let verdict = status.verdict.filter(|_| is_measured(status))?;
        let metadata = &object.metadata;
        let mut gpus: Vec<(String, Vec<i64>)> = gpu_times(status).collect();
        gpus.sort_by(|(a, _), (b, _)| a.cmp(b));
        gpus.dedup_by(|a, b| a.0 == b.0);
        // The same ones in each run, or none could confirm another.
        gpus.truncate(MOST_GPUS);
        gpus.sort_by(|(a, of_a), (b, of_b)| mean_time(of_b).cmp(&mean_time(of_a)).then_with(|| a.cmp(b)));
        let owner = policy_of(metadata);
        let peers = status.workers.iter().filter_map(|worker| worker.speed_of_peers);
        Some(Self {
            node: placement.node.clone(),
            validation: ValidationReference {
                namespace: metadata.namespace.clone()?,
                name: metadata.name.clone()?,
                uid: metadata.uid.clone()?,
                run: run.number,
                policy: owner.map(|owner| owner.name.clone()),
            },
            judged_run: status.state.judged_run,
            is_confirmation: owner.is_some()
                && !is_of_a_user(run.trigger)
                && due_reason(metadata) == Some(DueReason::Confirmation),
            verdict,
            reason: status.reason.clone(),
            began_at: began_at(status)?,
            ended_at: run.completed_at?,
            environment: reported_environment(status).and_then(|known| known.digest.clone()),
            product: placement.product.clone(),
            gpu_count: placement.gpus,
            output_tokens_per_second: status
                .metrics
                .as_ref()
                .and_then(|metrics| metrics.output_tokens_per_second),
            percent_of_gate: percent_of_gate(object, status),
            percent_of_peers: peers.map(|speed| speed.percent).min(),
            gpus,
        })
    }

    /// The same measurement as a user's run.
    #[must_use]
    pub fn without_policy(mut self) -> Self {
        self.validation.policy = None;
        self.is_confirmation = false;
        self
    }
}

/// Environment of a run. Without a report AIPerf's version is unknown. The digest is then that of no other run, and no speed can be
/// compared.
fn reported_environment(status: &PerfValidationStatus) -> Option<&EnvironmentStatus> {
    status.environment.as_ref().filter(|known| known.aiperf.is_some())
}

/// UUIDs of the GPUs of each worker with its times from one token to the next in the last trials (µs).
fn gpu_times(status: &PerfValidationStatus) -> impl Iterator<Item = (String, Vec<i64>)> {
    let has_report = reported_environment(status).is_some();
    // The published workers begin with those that measured, in the same order.
    let workers = status.workers.iter().zip(&status.state.workers);
    workers.filter_map(move |(worker, load)| {
        let mut times = load.token_microseconds();
        times.drain(..times.len().saturating_sub(MOST_TRIALS));
        let is_known = !worker.gpus.is_empty() && worker.gpus.iter().all(|name| name.starts_with("GPU-"));
        (has_report && is_known && !times.is_empty()).then(|| (one_name(&worker.gpus), times))
    })
}

/// Returns true if a run measured the speed of a GPU.
pub(crate) fn has_speeds(status: &PerfValidationStatus) -> bool {
    gpu_times(status).next().is_some()
}

/// Time from which a run used its machine: the begin of its first trial, or the time at which it got GPUs, or else its own begin. The
/// machine may be replaced under the same name before the run is over.
pub(crate) fn began_at(status: &PerfValidationStatus) -> Option<DateTime<Utc>> {
    let trial = status.state.trials.first().map(|trial| trial.started_at);
    let held = || status.held_gpus().map(|(since, _)| since);
    let run = || status.run.as_ref().map(|run| run.started_at);
    trial.or_else(held).or_else(run)
}

/// Returns true if a user requested the run. The operator begins the others by itself, also after a preemption.
pub(crate) fn is_of_a_user(trigger: Trigger) -> bool {
    matches!(trigger, Trigger::Rerun | Trigger::SpecChanged | Trigger::GatesChanged)
}

/// Owner of a validation that a policy created.
pub fn policy_of(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    let (kind, api_version) = (PerfValidationPolicy::kind(&()), PerfValidationPolicy::api_version(&()));
    let mut owners = metadata.owner_references.iter().flatten();
    owners.find(|owner| owner.kind == kind && owner.api_version == api_version && owner.controller == Some(true))
}

/// Geometric mean of positive times (µs): the speeds of a fleet are compared as logarithms.
pub(crate) fn mean_time(times: &[i64]) -> Option<i64> {
    let logarithm = mean(&times.iter().map(|time| speed(*time).ln()).collect::<Vec<_>>())?;
    whole(MICRO / logarithm.exp())
}

/// Tokens per second of one request, from the time between two tokens (µs, above 0).
#[expect(clippy::cast_precision_loss, reason = "microseconds between two tokens")]
pub(crate) fn speed(time: i64) -> f64 {
    MICRO / time as f64
}

/// Reason for which a policy created a validation.
pub(crate) fn due_reason(metadata: &ObjectMeta) -> Option<DueReason> {
    let word = metadata.annotations.as_ref()?.get(DUE_REASON)?;
    word.parse().ok()
}

/// The GPUs of a worker as one name: nothing measures one of them alone.
fn one_name(uuids: &[String]) -> String {
    let mut uuids: Vec<&str> = uuids.iter().map(String::as_str).collect();
    uuids.sort_unstable();
    uuids.join(",")
}

/// Returns true if a run is over that measured its node.
fn is_measured(status: &PerfValidationStatus) -> bool {
    let measured = [Verdict::Passed, Verdict::Failed, Verdict::Inconclusive];
    status.phase == Some(Phase::Completed) && status.verdict.is_some_and(|verdict| measured.contains(&verdict))
}

/// Percentiles have heavy tails, and comparisons with peers and with the own past have fields of their own. `None` if the mean over
/// the trials missed a gate that the last trial met.
fn percent_of_gate(object: &PerfValidation, status: &PerfValidationStatus) -> Option<i64> {
    let has_miss = status.gates.iter().any(|gate| gate.result == GateResult::Missed);
    if status.reason.as_deref() == Some(Reason::GatesMissed.as_str()) && !has_miss {
        return None;
    }
    let counts = |gate: &Gate| match gate.metric.source() {
        MetricSource::AIPerf(..) | MetricSource::Baseline | MetricSource::EngineEstimate => true,
        MetricSource::Peers | MetricSource::OwnPast => false,
    };
    let gates = object.spec.gates.iter();
    let gates = gates.filter(|gate| gate.mode == GateMode::Enforce && gate.statistic == Statistic::Avg && counts(gate));
    let margins = gates.filter_map(|gate| {
        let judged = status.gates.iter().find(|judged| judged.name == gate.name)?;
        judged.margin_percent.as_ref()?.parse::<f64>().ok()
    });
    margins.min_by(f64::total_cmp).and_then(|margin| whole(100.0 + margin))
}

/// Whole number for a status; `None` for a number that is none. A miss stays below 100.
pub(crate) fn whole(value: f64) -> Option<i64> {
    let rounded = if value < 100.0 {
        value.round().min(99.0)
    } else {
        value.round()
    };
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    (rounded.abs() < 1e12).then_some(rounded as i64)
}
