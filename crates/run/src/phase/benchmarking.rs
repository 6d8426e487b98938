//! Benchmarking: one AIPerf Job per trial, until the trial rule has decided.

use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::core::ResourceExt as _;
use perfval_api::{
    GpuCheck, PerfValidationSpec, PerfValidationStatus, Phase, Reason, TrialOutcome, TrialStatus, Why, WorkerStatus,
};
use perfval_sizing::Seen;
use perfval_verdict::close;
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::diagnosis::trial::changed;
use perfval_verdict::frame::{self, Framed, TrialRecord};
use perfval_verdict::gate::Share;
use perfval_verdict::trial::{self, Evidence, JudgedTrial};
use perfval_verdict::trials::{self, Ruling};

use super::definition::{Definition, QUICK, Timed, give_up};
use crate::attendance::Limit;
use crate::decision::{Effect, Event};
use crate::diagnosis::pods::trouble;
use crate::job::Standing;
use crate::observed::{Need, Needs, TrialSeen};
use crate::pass::{Pass, Step};
use crate::readiness::{self, Pods};
use crate::run::Run;
use crate::{build, job, names, progress, telemetry, time};

/// Jobs and pods are watched; graces are not.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// The kubelet may serve the end of a log a moment after the Job is over; this long a missing record is read again.
const LOG_GRACE: Duration = Duration::from_secs(15);

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
        ..Needs::of([Need::Workload, Need::Trial].into_iter().chain(exporter))
    }
}

/// Each trial has its own limit. Its Job is ended by the kubelet, outage or not, so ours comes a little later.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the type of the table: other phases wait without a limit"
)]
fn limit(spec: &PerfValidationSpec, status: &PerfValidationStatus, began: DateTime<Utc>) -> Option<Limit> {
    let last = status.trials.last();
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
    let last = status.trials.last();
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
    let pods = Pods::of(all_pods, &pass.run.id());
    let workers = readiness::workers(&pods, claims);
    match open_trial(&pass.status) {
        None => open(pass, &pods, claims, workers),
        Some(number) => follow(pass, number, &workers),
    }
}

/// Opens the next trial once every worker is ready.
fn open(pass: &mut Pass<'_>, pods: &Pods<'_>, claims: &[ResourceClaim], workers: Vec<WorkerStatus>) -> Step {
    if let Some(pod) = pods.load_generators.first() {
        let still = format!(
            "{} of an earlier trial still loads the deployment; waiting for its end",
            pod.name_any()
        );
        return Step::wait(Reason::WorkloadNotReady, still);
    }
    let wanted = pass.run.placement().map_or(0, |plan| plan.gpus);
    let ready = pods.ready_workers();
    if ready < wanted || !pods.frontend_ready() {
        let events = pass.seen.pod_events.present().map_or(&[][..], Vec::as_slice);
        return match trouble(pods.all(), events, &pass.seen.pod_logs, pass.now) {
            Some(trouble) => {
                let why = trouble.why();
                pass.not_ready(&why, None);
                pass.find(trouble.obstacle.finding(&trouble.evidence));
                Step::End(perfval_api::Verdict::Error, why)
            }
            None => Step::wait(
                Reason::WorkloadNotReady,
                "not every component is ready any more; waiting for it",
            ),
        };
    }
    if let Some(plan) = pass.run.placement() {
        if let Some(wrong) = readiness::misplaced(pods, claims, plan) {
            return Step::error(Reason::PlacementBroken, wrong);
        }
        if let Some(moved) = readiness::moved(pods, claims, plan) {
            return confirm_again(pass, moved);
        }
    }
    let number = pass.status.trials.last().map_or(1, |trial| trial.number + 1);
    let lost = changed(seen_last(pass), &workers).and_then(|(cause, what)| Some((cause, what, cause.worker_loss()?)));
    let soak = trials::soak_is_next(pass.run.spec(), &pass.status.trials);
    pass.status.trials.push(TrialStatus {
        number,
        seed: Some(build::load::seed(&pass.run.spec().benchmark, number)),
        soak,
        started_at: pass.now,
        worker_loss: lost.as_ref().map(|(_, _, loss)| *loss),
        ..TrialStatus::default()
    });
    if let Some((cause, what, _)) = lost {
        pass.find(cause.finding(format!("{what} (before trial {number})")));
    }
    if let Some(workload) = &mut pass.status.workload {
        workload.workers_ready = ready;
        workload.workers = workers;
        workload.gpu_metrics = telemetry::of_next_trial(pass.run, &pass.seen.gpu_exporter);
    }
    let what = if soak { " (the soak)" } else { "" };
    Step::work(Reason::Running, format!("trial {number}{what} is running"))
}

/// The workers as they were when a trial last began or ended.
fn seen_last<'a>(pass: &Pass<'a>) -> &'a [WorkerStatus] {
    let workload = pass.run.status().workload.as_ref();
    workload.map_or(&[], |workload| workload.workers.as_slice())
}

/// A worker whose pod was replaced may get a GPU that is not confirmed: the deployment has to become ready once more
/// before the next trial. A trial during which that happened is void by its own rules.
fn confirm_again(pass: &mut Pass<'_>, moved: String) -> Step {
    let why = Why::new(Reason::CheckingGPUs, moved);
    pass.not_ready(&why, Some(GpuCheck::default()));
    Step::Go(Phase::WaitingForReady, why)
}

/// Follows the open trial to its end.
fn follow(pass: &mut Pass<'_>, number: i64, workers: &[WorkerStatus]) -> Step {
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
            return close(
                pass,
                number,
                &JudgedTrial::unmeasured(Cause::JobLost, evidence),
                workers,
            );
        }
    };
    if let Some(open) = pass.status.trials.last_mut() {
        open.job_uid = found.uid();
    }
    if !job::is_over(found) {
        let events = pass.seen.pod_events.present().map_or(&[][..], Vec::as_slice);
        if let Some(trouble) = trouble(trial.pod.as_ref(), events, &[], pass.now) {
            return Step::error(
                trouble.obstacle.reason(),
                format!("load generator: {}", trouble.evidence),
            );
        }
        let said = trial.progress.as_ref();
        let news = said.and_then(|said| progress::of(pass.run, number, said, pass.now));
        if news.is_some() {
            pass.status.progress = news;
        }
        return Step::wait(Reason::Running, message);
    }
    if let Some(verdict) = read(pass, number, trial, found) {
        close(pass, number, &verdict(workers), workers)
    } else {
        pass.look_again_in(Duration::from_secs(1));
        Step::wait(Reason::Running, format!("reading the result of trial {number}"))
    }
}

type Judge<'a> = Box<dyn Fn(&[WorkerStatus]) -> JudgedTrial + 'a>;

/// Reads the record of a finished Job: the termination message, or the log where that says less. `None`: not yet.
fn read<'a>(pass: &mut Pass<'a>, number: i64, trial: &TrialSeen, found: &Job) -> Option<Judge<'a>> {
    let nonce = names::nonce(pass.run.uid(), &pass.run.id(), number);
    let record = match record(trial, &nonce) {
        Ok(record) => record,
        Err(missing) => {
            let over = found.status.as_ref().and_then(|status| {
                let conditions = status.conditions.as_ref()?;
                conditions
                    .iter()
                    .find_map(|condition| condition.last_transition_time.as_ref())
            });
            let since = over.map_or(pass.now, time::from_kubernetes);
            let timed_out = job::has(found, job::FAILED) && job::failure(found).starts_with("DeadlineExceeded");
            if !timed_out && !pass.has_passed(&Limit::new(since, LOG_GRACE)) {
                return None;
            }
            let cause = if timed_out {
                Cause::BenchmarkTimeout
            } else {
                Cause::BenchmarkFailed
            };
            let evidence = format!("{missing}; the Job ended with {}", job::failure(found));
            return Some(Box::new(move |_| JudgedTrial::unmeasured(cause, evidence.clone())));
        }
    };
    let spec = pass.run.spec();
    let plan = pass.run.placement();
    let share = plan.map_or(Share { gpus: 1, node_gpus: 1 }, Share::of);
    let before = seen_last(pass);
    Some(Box::new(move |after| {
        trial::judge(
            Evidence {
                record: &record,
                before,
                after,
                share,
                devices: plan.map_or(&[], |plan| plan.devices.as_slice()),
                product: plan.and_then(|plan| plan.product.as_deref()),
            },
            spec,
        )
    }))
}

/// The record of a trial, or what is missing of it.
fn record(trial: &TrialSeen, nonce: &str) -> Result<TrialRecord, String> {
    let message = termination_message(trial).map_or(Framed::Missing, |message| frame::find_message(message, nonce));
    let log = trial
        .log
        .present()
        .map_or(Framed::Missing, |log| frame::find(log, nonce));
    match (message, log) {
        (Framed::Complete(record), _) if record.abridged.iter().all(|part| *part == frame::Part::Statistics) => {
            Ok(record)
        }
        (_, Framed::Complete(payload)) => Ok(payload.record),
        (Framed::Complete(record), _) if !record.abridged.contains(&frame::Part::Everything) => Ok(record),
        (message, log) => Err(format!(
            "no result: termination message {}, log {}",
            state(&message),
            trial
                .log
                .unknown()
                .map_or_else(|| state(&log), |why| format!("unreadable ({why})"))
        )),
    }
}

fn state<T>(framed: &Framed<T>) -> String {
    match framed {
        Framed::Complete(_) => "complete".into(),
        Framed::Truncated => "truncated".into(),
        Framed::Missing => "without a result".into(),
        Framed::Malformed(why) => format!("malformed ({why})"),
    }
}

fn termination_message(trial: &TrialSeen) -> Option<&str> {
    let statuses = trial.pod.as_ref()?.status.as_ref()?.container_statuses.as_ref()?;
    let aiperf = statuses.iter().find(|status| status.name == build::AIPERF_CONTAINER)?;
    aiperf.state.as_ref()?.terminated.as_ref()?.message.as_deref()
}

/// Writes the trial down, and goes on as the rule says.
fn close(pass: &mut Pass<'_>, number: i64, judged: &JudgedTrial, workers: &[WorkerStatus]) -> Step {
    let ruling = close::close(pass.run.spec(), &mut pass.status, number, judged, pass.now);
    if let Some(workload) = &mut pass.status.workload {
        workload.workers = workers.to_vec();
    }
    announce(pass, number, judged);
    match ruling {
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
    let cause = judged.findings.first().map_or(String::new(), |(_, finding)| {
        format!("; {}: {}", finding.cause, finding.evidence)
    });
    pass.note(Event {
        warning: judged.outcome != TrialOutcome::Pass,
        reason: format!("Trial{number}{:?}", judged.outcome),
        action: "Benchmark",
        note: format!("trial {number}: {:?}, {numbers}{cause}", judged.outcome),
    });
}
