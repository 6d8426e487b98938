//! Opening of a trial: its reads and its conditions.

use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::core::ResourceExt as _;
use perfval_api::{GpuCheck, Phase, Reason, TrialState, Verdict, Why, WorkerLoss, WorkerPod};
use perfval_sizing::Seen;
use perfval_verdict::diagnosis::cause::Explained;
use perfval_verdict::diagnosis::trial::changed;
use perfval_verdict::trials;

use super::result;
use crate::diagnosis::pods::Judged;
use crate::observed::Need;
use crate::pass::{Pass, Step};
use crate::phase::signs;
use crate::readiness::{self, Pods};
use crate::run::Run;
use crate::{build, patience, telemetry};

/// Reads before a trial is opened, besides the pods.
pub(in crate::phase) fn before_trial(run: &Run<'_>) -> impl Iterator<Item = Need> {
    [Need::Claims].into_iter().chain(telemetry::need(run))
}

/// Waits for pods and claims.
pub(super) fn unread(pass: &Pass<'_>) -> Step {
    let why = pass.seen.pods.unknown().or(pass.seen.claims.unknown());
    Step::wait(
        Reason::Running,
        format!("pods and claims: {}", why.unwrap_or("no answer")),
    )
}

/// Claims with their workers, or the step that waits for them.
pub(super) fn claims<'a>(pass: &mut Pass<'a>, pods: &Pods<'_>) -> Result<(&'a [ResourceClaim], Vec<WorkerPod>), Step> {
    let claims = match &pass.seen.claims {
        Seen::Present(claims) => claims,
        // Together with the pods, which may have changed since.
        Seen::NotAsked => return Err(pass.read([Need::Workload, Need::Claims])),
        Seen::Absent | Seen::Unknown(_) => return Err(unread(pass)),
    };
    let workers = readiness::workers(pods, claims, result::seen_last(pass), &pass.seen.endings);
    Ok((claims, workers))
}

/// Begins to measure: the first trial is one write with the entry into the phase, if all is ready for it.
pub(in crate::phase) fn begin(pass: &mut Pass<'_>, pods: &Pods<'_>) -> Step {
    match try_open(pass, pods) {
        Ok(Some(why)) => Step::Go(Phase::Benchmarking, why),
        Ok(None) => Step::go(
            Phase::Benchmarking,
            Reason::Running,
            "the endpoint serves; benchmarking",
        ),
        Err(missing) => missing,
    }
}

/// Opens the next trial, if nothing is in its way; otherwise the status stays as it is. `Err`: reads that are missing.
pub(super) fn try_open(pass: &mut Pass<'_>, pods: &Pods<'_>) -> Result<Option<Why>, Step> {
    let missing: Vec<Need> = before_trial(pass.run).filter(|need| is_missing(pass, *need)).collect();
    if !missing.is_empty() {
        // The claims together with the pods, which may have changed since.
        let pods = missing.contains(&Need::Claims).then_some(Need::Workload);
        return Err(pass.read(pods.into_iter().chain(missing)));
    }
    let before = pass.status.clone();
    if let Step::Work(why) = open(pass, pods) {
        return Ok(Some(why));
    }
    pass.status = before;
    Ok(None)
}

fn is_missing(pass: &Pass<'_>, need: Need) -> bool {
    match need {
        Need::Claims => matches!(pass.seen.claims, Seen::NotAsked),
        Need::GpuExporter => matches!(pass.seen.gpu_exporter, Seen::NotAsked),
        _ => false,
    }
}

/// Opens the next trial once every worker is ready.
pub(super) fn open(pass: &mut Pass<'_>, pods: &Pods<'_>) -> Step {
    let (claims, workers) = match claims(pass, pods) {
        Ok(read) => read,
        Err(step) => return step,
    };
    if let Some(pod) = pods.load_generators.first() {
        let still = format!(
            "{} of an earlier trial still loads the deployment; waiting for its end",
            pod.name_any()
        );
        return Step::wait(Reason::WorkloadNotReady, still);
    }
    if let Some(leaving) = pods.wait_for_leaving() {
        return Step::wait(Reason::WorkloadNotReady, leaving);
    }
    let wanted = pass.run.workers();
    let ready = pods.ready_workers();
    if ready < wanted || !pods.frontend_ready() {
        return match signs::worst_in_deployment(pass, pods) {
            Some(Judged { trouble, is_sure: true }) => {
                let why = trouble.why();
                pass.not_ready(None);
                pass.find(trouble.obstacle.finding(&trouble.evidence));
                Step::End(Verdict::Error, why)
            }
            Some(may_pass) => Step::Wait(may_pass.trouble.why()),
            None => Step::wait(
                Reason::WorkloadNotReady,
                "not every component is ready any more; waiting for it",
            ),
        };
    }
    if let Some(plan) = pass.run.placement() {
        if let Some(wrong) = readiness::misplaced(pods, Some(claims), plan, pass.run.spec().gpus_per_worker()) {
            return Step::error(Reason::PlacementBroken, wrong);
        }
        if let Some(moved) = readiness::moved(pods, claims, &pass.status.state.plan) {
            return confirm_again(pass, Why::new(Reason::Running, moved));
        }
    }
    let number = pass.status.state.trials.last().map_or(1, |trial| trial.number + 1);
    // A worker with another GPU went back to the check of all GPUs above.
    let lost = lost_before(pass, &workers).and_then(|(cause, what)| Some((cause, what, cause.worker_loss()?)));
    let soak = trials::soak_is_next(pass.run.spec(), &pass.status.state.trials);
    patience::forget(pass);
    pass.status.state.trials.push(TrialState {
        number,
        seed: Some(build::load::seed(&pass.run.spec().benchmark, number)),
        soak,
        started_at: pass.now,
        worker_loss: lost.as_ref().map(|(_, _, loss)| *loss),
        ..TrialState::default()
    });
    if let Some((cause, what, _)) = lost {
        pass.find(cause.finding(format!("{what} (before trial {number})")));
    }
    if let Some(workload) = &mut pass.status.workload {
        workload.workers_ready = ready;
        let source = telemetry::next_source(pass.run, &pass.seen.gpu_exporter);
        workload.gpu_metrics = source.as_ref().map(|source| source.label().to_owned());
        if let Some(deployment) = &mut pass.status.state.deployment {
            deployment.gpu_metrics = source;
        }
    }
    pass.status.state.worker_pods = workers;
    let what = if soak { " (the soak)" } else { "" };
    Step::work(Reason::Running, format!("trial {number}{what} is running"))
}

/// Records a crash since the last trial in that trial, because the run ends before another one.
pub(crate) fn record_last_crash(pass: &mut Pass<'_>) {
    let Some(all) = pass.seen.pods.present() else {
        return;
    };
    let claims = pass.seen.claims.present().map_or(&[][..], Vec::as_slice);
    let pods = Pods::new(all, &pass.run.id());
    let workers = readiness::workers(&pods, claims, result::seen_last(pass), &pass.seen.endings);
    let crash = lost_before(pass, &workers).filter(|(cause, _)| cause.worker_loss() == Some(WorkerLoss::Crashed));
    let Some((cause, what)) = crash else {
        return;
    };
    let last = pass.status.state.trials.last_mut();
    let Some(last) = last.filter(|trial| trial.outcome.is_some()) else {
        return;
    };
    last.worker_loss = last.worker_loss.max(cause.worker_loss());
    let evidence = format!("{what} (after trial {})", last.number);
    pass.find(cause.finding(evidence));
}

/// Loss of a worker since the trial before. The load of that trial may have ended only just before a worker did.
fn lost_before(pass: &Pass<'_>, workers: &[WorkerPod]) -> Option<Explained> {
    let last = pass.status.state.trials.last();
    let shortage = last.and_then(|trial| trial.cpu_shortage.as_deref());
    changed(&pass.status.state.worker_pods, workers, shortage)
}

/// The deployment has to become ready once more before the next trial: a worker whose pod was replaced may have a GPU that
/// is not confirmed, and what voided a trial may have ended the workers, too. Seen on the lab: 100 ms after a node came back
/// from a reboot every pod was still reported ready, and the trial that opened then failed a healthy node.
pub(super) fn confirm_again(pass: &mut Pass<'_>, why: Why) -> Step {
    pass.not_ready(Some(GpuCheck::default()));
    Step::Go(Phase::WaitingForReady, why)
}
