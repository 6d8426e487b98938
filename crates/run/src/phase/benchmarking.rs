//! Benchmarking: one AIPerf Job per trial, until the trial rule has decided.

mod result;

use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::core::ResourceExt as _;
use perfval_api::{
    GpuCheck, GpuMetrics, PerfValidationSpec, PerfValidationStatus, Phase, Reason, TrialOutcome, TrialState, Why, Word,
    WorkerPod,
};
use perfval_sizing::Seen;
use perfval_verdict::close;
use perfval_verdict::diagnosis::cause::{Cause, Explained};
use perfval_verdict::diagnosis::trial::changed;
use perfval_verdict::trial::JudgedTrial;
use perfval_verdict::trials::{self, Ruling};

use super::definition::{Definition, QUICK, Timed, give_up};
use super::signs;
use crate::attendance::Limit;
use crate::decision::{Effect, Event};
use crate::diagnosis::obstacle::Obstacle;
use crate::diagnosis::pods::{Judged, Trouble};
use crate::job::Standing;
use crate::observed::{Need, Needs};
use crate::pass::{Pass, Step};
use crate::readiness::{self, Pods};
use crate::run::Run;
use crate::{build, job, patience, progress, telemetry, time};

/// Jobs and pods are watched; graces are not.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

pub(super) const PHASE: Definition = Definition {
    needs,
    step,
    timed: Some(Timed { limit, expired }),
};

fn needs(run: &Run<'_>) -> Needs {
    let trial = open_trial(run.status());
    let exporter = telemetry::need(run).filter(|_| trial.is_none());
    Needs {
        trial,
        ..Needs::new([Need::Workload, Need::Claims, Need::Trial].into_iter().chain(exporter))
    }
}

/// Each trial has its own limit. Its Job is ended by the kubelet, outage or not, so ours comes a little later.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the type of the table: other phases wait without a limit"
)]
fn limit(spec: &PerfValidationSpec, status: &PerfValidationStatus, began: DateTime<Utc>) -> Option<Limit> {
    let last = status.state.trials.last();
    let since = last.map_or(began, |trial| trial.completed_at.unwrap_or(trial.started_at));
    let soak = last.filter(|trial| trial.soak).and(spec.benchmark.soak.as_deref());
    let limit = time::duration(&spec.timeouts.benchmark) + soak.map_or(Duration::ZERO, time::duration) + QUICK;
    // After the last trial the deployment may have had to become ready again.
    Some(Limit::new(since.max(began), limit))
}

fn expired(pass: &mut Pass<'_>, why: &Why) -> Step {
    let reason = match why.reason {
        Reason::Running => Reason::BenchmarkTimeout,
        reason => reason,
    };
    give_up(pass, reason, why, "timeouts.benchmark")
}

fn open_trial(status: &PerfValidationStatus) -> Option<i64> {
    let last = status.state.trials.last();
    last.filter(|trial| trial.outcome.is_none()).map(|trial| trial.number)
}

fn step(pass: &mut Pass<'_>) -> Step {
    pass.look_again_in(LOOK_AGAIN);
    let (Some(all_pods), Some(claims)) = (pass.seen.pods.present(), pass.seen.claims.present()) else {
        let why = pass
            .seen
            .pods
            .unknown()
            .or(pass.seen.claims.unknown())
            .unwrap_or("no answer");
        return Step::wait(Reason::Running, format!("pods and claims: {why}"));
    };
    let pods = Pods::new(all_pods, &pass.run.id());
    let workers = readiness::workers(&pods, claims, result::seen_last(pass), &pass.seen.endings);
    match open_trial(&pass.status) {
        None => open(pass, &pods, claims, workers),
        Some(number) => follow(pass, number, &workers),
    }
}

/// Opens the next trial once every worker is ready.
fn open(pass: &mut Pass<'_>, pods: &Pods<'_>, claims: &[ResourceClaim], workers: Vec<WorkerPod>) -> Step {
    if let Some(pod) = pods.load_generators.first() {
        let still = format!(
            "{} of an earlier trial still loads the deployment; waiting for its end",
            pod.name_any()
        );
        return Step::wait(Reason::WorkloadNotReady, still);
    }
    let wanted = pass.run.workers();
    let ready = pods.ready_workers();
    if ready < wanted || !pods.frontend_ready() {
        return match signs::worst(pass, pods.all()) {
            Some(Judged { trouble, is_sure: true }) => {
                let why = trouble.why();
                pass.not_ready(None);
                pass.find(trouble.obstacle.finding(&trouble.evidence));
                Step::End(perfval_api::Verdict::Error, why)
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
        if let Some(moved) = readiness::moved(pods, claims, &pass.run.status().state.plan) {
            return confirm_again(pass, Why::new(Reason::Running, moved));
        }
    }
    let number = pass.status.state.trials.last().map_or(1, |trial| trial.number + 1);
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
        workload.gpu_metrics = source.as_ref().and_then(GpuMetrics::label).cloned();
        if let Some(deployment) = &mut pass.status.state.deployment {
            deployment.gpu_metrics = source;
        }
    }
    pass.status.state.worker_pods = workers;
    let what = if soak { " (the soak)" } else { "" };
    Step::work(Reason::Running, format!("trial {number}{what} is running"))
}

/// What happened to the workers since the trial before. The load of that trial may have ended only just before a worker did.
fn lost_before(pass: &Pass<'_>, workers: &[WorkerPod]) -> Option<Explained> {
    let shortage = pass
        .status
        .state
        .trials
        .last()
        .and_then(|trial| trial.cpu_shortage.as_deref());
    changed(result::seen_last(pass), workers, shortage)
}

/// The deployment has to become ready once more before the next trial: a worker whose pod was replaced may have a GPU that
/// is not confirmed, and what voided a trial may have ended the workers, too. Seen on the lab: 100 ms after a node came back
/// from a reboot every pod was still reported ready, and the trial that opened then failed a healthy node.
fn confirm_again(pass: &mut Pass<'_>, why: Why) -> Step {
    pass.not_ready(Some(GpuCheck::default()));
    Step::Go(Phase::WaitingForReady, why)
}

/// Follows the open trial to its end.
fn follow(pass: &mut Pass<'_>, number: i64, workers: &[WorkerPod]) -> Step {
    let message = format!("trial {number} is running");
    let trial = match &pass.seen.trial {
        Seen::Present(trial) => trial,
        unread => {
            let why = unread.unknown().unwrap_or("no answer");
            return Step::wait(Reason::Running, format!("trial {number}: {why}"));
        }
    };
    let found = match job::standing(pass.run, trial.job.as_ref(), job::recorded(pass.run, number)) {
        Standing::Ours(job) => job,
        Standing::Free => {
            pass.act(Effect::CreateTrialJob(Box::new(build::trial_job(pass.run, number))));
            return Step::wait(Reason::Running, message);
        }
        Standing::Taken(job) => return Step::name_taken("Job", job),
        Standing::Lost => {
            let evidence = format!("the Job of trial {number} is gone: it was deleted");
            let changed = changed(result::seen_last(pass), workers, None);
            return close(
                pass,
                number,
                &JudgedTrial::unmeasured(Cause::JobLost, evidence, changed),
                workers,
            );
        }
    };
    if let Some(open) = pass.status.state.trials.last_mut() {
        open.job_uid = found.uid();
    }
    if !job::is_over(found) {
        // The node first: where it is gone, nothing else of the trial ever comes.
        if let Some(sign) = signs::worst(pass, trial.pod.as_ref()) {
            let why = mark_generator(sign.trouble).why();
            return if sign.is_sure {
                Step::End(perfval_api::Verdict::Error, why)
            } else {
                Step::Wait(why)
            };
        }
        let said = trial.progress.as_ref();
        let news = said.and_then(|said| progress::next(pass.run, number, said, pass.now));
        if news.is_some() {
            pass.status.state.progress = news;
        }
        return Step::wait(Reason::Running, message);
    }
    if let Some(verdict) = result::read(pass, number, trial, found) {
        close(pass, number, &verdict(workers), workers)
    } else {
        pass.look_again_in(Duration::from_secs(1));
        Step::wait(Reason::Running, format!("reading the result of trial {number}"))
    }
}

/// Marks a trouble of the load generator's pod as such. A trouble of the node affects all pods.
fn mark_generator(trouble: Trouble) -> Trouble {
    if trouble.obstacle == Obstacle::NodeNotReady {
        return trouble;
    }
    Trouble {
        evidence: format!("load generator: {}", trouble.evidence),
        ..trouble
    }
}

/// Records the trial, and continues by the trial rule.
fn close(pass: &mut Pass<'_>, number: i64, judged: &JudgedTrial, workers: &[WorkerPod]) -> Step {
    patience::forget(pass);
    let ruling = close::close(pass.run.spec(), &mut pass.status, number, judged, pass.now);
    pass.status.state.worker_pods = workers.to_vec();
    announce(pass, number, judged);
    match ruling {
        Ruling::Continue if judged.outcome == TrialOutcome::Invalid => {
            let why = format!("trial {number} is invalid; the next one starts once the deployment serves again");
            confirm_again(pass, Why::new(Reason::WorkloadNotReady, why))
        }
        Ruling::Continue => Step::work(Reason::Running, format!("trial {number} is over; opening the next")),
        Ruling::Pass | Ruling::Fail | Ruling::Undecided | Ruling::Unmeasurable => {
            Step::Go(Phase::Evaluating, Why::new(Reason::Running, super::evaluating::SAVING))
        }
    }
}

fn announce(pass: &mut Pass<'_>, number: i64, judged: &JudgedTrial) {
    let numbers = match (&judged.metrics.output_token_throughput, &judged.metrics.ttft_p99_ms) {
        (Some(throughput), Some(ttft)) => format!("{throughput} tok/s, TTFT p99 {ttft} ms"),
        _ => "no numbers".into(),
    };
    // What the trials before it show counts too.
    let closed = pass.status.state.trials.iter().find(|trial| trial.number == number);
    let outcome = closed.and_then(|trial| trial.outcome).unwrap_or(judged.outcome);
    let first = closed.and_then(|trial| trial.causes.first());
    let reason = match outcome {
        TrialOutcome::Pass => Word::Running,
        TrialOutcome::Miss | TrialOutcome::Invalid => {
            first.and_then(|first| Word::parse(first)).unwrap_or(Word::GatesMissed)
        }
    };
    let of_trial = judged.findings.iter().map(|(_, finding)| finding);
    let mut findings = pass.status.diagnosis.iter().chain(of_trial);
    let cause = first.and_then(|first| findings.find(|finding| finding.cause == *first));
    let cause = cause.map_or(String::new(), |finding| {
        format!("; {}: {}", finding.cause, finding.evidence)
    });
    pass.note(Event {
        warning: outcome != TrialOutcome::Pass,
        reason,
        action: format!("Trial{number}").into(),
        note: format!("trial {number}: {outcome:?}, {numbers}{cause}"),
    });
}
