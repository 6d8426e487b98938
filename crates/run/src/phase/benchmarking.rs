//! Benchmarking: one AIPerf Job per trial, until the trial rule has decided.

mod open;
mod result;

use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::api::core::v1::Pod;
use kube::core::ResourceExt as _;
use perfval_api::{PerfValidationSpec, PerfValidationStatus, Phase, Reason, TrialOutcome, Why, Word, WorkerPod};
use perfval_sizing::Seen;
use perfval_verdict::close;
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::diagnosis::trial::changed;
use perfval_verdict::norms::Norms;
use perfval_verdict::trial::JudgedTrial;
use perfval_verdict::trials::Ruling;

use super::definition::{Definition, QUICK, Timed, give_up};
use super::signs;
use crate::attendance::Limit;
use crate::decision::{Effect, Event};
use crate::diagnosis::pods::Trouble;
use crate::job::Standing;
use crate::observed::{Need, Needs};
use crate::pass::{Pass, Step};
use crate::readiness::Pods;
use crate::run::Run;
use crate::{build, job, norms, patience, progress, time};
use open::{claims, confirm_again, open, try_open, unread};

pub(crate) use open::record_last_crash;
pub(super) use open::{before_trial, begin};

/// Pause after a log that could not be read.
const READ_AGAIN: Duration = Duration::from_secs(5);

pub(super) const PHASE: Definition = Definition {
    needs,
    step,
    timed: Some(Timed {
        limit: |spec, status, began| Some(limit(spec, status, began)),
        expired,
    }),
};

fn needs(run: &Run<'_>) -> Needs {
    match open_trial(run.status()) {
        // Claims do not change while a trial runs: they are read at its end.
        Some(number) => Needs {
            trial: Some(number),
            ..Needs::new([Need::Workload, Need::Trial])
        },
        None => Needs::new([Need::Workload].into_iter().chain(before_trial(run))),
    }
}

/// Each trial has its own limit. The Job controller ends its Job, outage or not, so ours comes a little later.
fn limit(spec: &PerfValidationSpec, status: &PerfValidationStatus, began: DateTime<Utc>) -> Limit {
    let last = status.state.trials.last();
    let since = last.map_or(began, |trial| trial.completed_at.unwrap_or(trial.started_at));
    let soak = last.filter(|trial| trial.soak).and(spec.benchmark.soak.as_deref());
    let limit = time::duration(&spec.timeouts.benchmark) + soak.map_or(Duration::ZERO, time::duration) + QUICK;
    // After the last trial the deployment may have had to become ready again.
    Limit::new(since.max(began), limit)
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
    pass.look_again_slower();
    let Some(all_pods) = pass.seen.pods.present() else {
        return unread(pass);
    };
    let pods = Pods::new(all_pods, &pass.run.id());
    match open_trial(&pass.status) {
        None => open(pass, &pods),
        Some(number) => follow(pass, number, &pods),
    }
}

/// Follows the open trial to its end.
fn follow(pass: &mut Pass<'_>, number: i64, pods: &Pods<'_>) -> Step {
    let message = format!("trial {number} is running");
    let trial = match &pass.seen.trial {
        Seen::Present(trial) => trial,
        unread => return Step::unread(Reason::Running, &format!("trial {number}"), unread),
    };
    let found = match job::standing(pass.run, trial.job.as_ref(), job::recorded(pass.run, number)) {
        Standing::Ours(job) => job,
        // The Job was deleted before its uid was recorded.
        Standing::Free if !pods.load_generators.is_empty() => return Step::wait(Reason::Running, message),
        Standing::Free => {
            pass.act(Effect::CreateTrialJob(Box::new(build::trial_job(pass.run, number))));
            return Step::wait(Reason::Running, message);
        }
        Standing::Taken(job) => return Step::name_taken("Job", job),
        Standing::Lost => {
            let evidence = format!("the Job of trial {number} is gone: it was deleted");
            let workers = match claims(pass, pods) {
                Ok((_, workers)) => workers,
                Err(step) => return step,
            };
            let changed = changed(result::seen_last(pass), &workers, None);
            let judged = JudgedTrial::unmeasured(Cause::JobLost, evidence, changed);
            return close(pass, number, &judged, workers, pods);
        }
    };
    let is_over = job::is_over(found);
    let queued = job::queued(found, &format!("trial {number}")).filter(|_| !is_over);
    let mut started = false;
    if let Some(open) = pass.status.state.trials.last_mut() {
        started = open.job_uid.is_some() && !open.queued;
        open.job_uid = found.uid();
        // The Job's own limit counts from its start too.
        if open.queued && queued.is_none() && !is_over {
            open.started_at = pass.now;
        }
        open.queued = queued.is_some() && !started;
    }
    if !is_over {
        // The node first: where it is gone, nothing else of the trial ever comes.
        if let Some(step) = in_trouble(pass, trial.pod.as_ref()) {
            return step;
        }
        if let Some(trouble) = queued {
            return if started {
                stopped(&trouble)
            } else {
                Step::Wait(trouble.why())
            };
        }
        let said = trial.progress.as_ref();
        let news = said.and_then(|said| progress::next(pass.run, number, said, pass.now));
        if news.is_some() {
            pass.status.state.progress = news;
        }
        return Step::wait(Reason::Running, message);
    }
    match result::read(pass, number, trial, found) {
        Ok(verdict) => match (claims(pass, pods), norms(pass)) {
            (Ok((_, workers)), Ok(norms)) => close(pass, number, &verdict(&workers, &norms), workers, pods),
            (Err(step), _) | (_, Err(step)) => step,
        },
        Err(Some(unread)) => {
            pass.look_again_in(READ_AGAIN);
            let unread = || Step::wait(Reason::CallFailed, format!("log of trial {number}: {unread}"));
            in_trouble(pass, None).unwrap_or_else(unread)
        }
        Err(None) => {
            pass.look_again_in(Duration::from_secs(1));
            Step::wait(Reason::Running, format!("reading the result of trial {number}"))
        }
    }
}

/// Step for a trouble of the trial's pod, or of the node; `None` without one.
fn in_trouble(pass: &mut Pass<'_>, pod: Option<&Pod>) -> Option<Step> {
    let sign = signs::worst(pass, pod)?;
    let trouble = mark_generator(sign.trouble, pod);
    let why = trouble.why();
    if !sign.is_sure {
        return Some(Step::Wait(why));
    }
    pass.find(trouble.obstacle.finding(&trouble.evidence));
    Some(Step::End(perfval_api::Verdict::Error, why))
}

/// Norms for the gates; the step without them.
fn norms(pass: &mut Pass<'_>) -> Result<Norms, Step> {
    match norms::norms(pass) {
        Seen::Present(norms) => Ok(norms),
        Seen::NotAsked => Err(pass.read([Need::Baselines])),
        unread => Err(Step::unread(Reason::Running, "approved baselines", &unread)),
    }
}

/// A Job that was stopped after its start would send the same prompts again, and the engines have cached them.
fn stopped(trouble: &Trouble) -> Step {
    let cause = Cause::LoadGeneratorEvicted;
    let evidence = format!(
        "{} after it had started; run again when the queue has room",
        trouble.evidence
    );
    Step::error(cause.reason().unwrap_or(Reason::BenchmarkFailed), evidence)
}

/// Marks a trouble of the load generator's pod as such. That of a node or of a controller contains its name.
fn mark_generator(trouble: Trouble, pod: Option<&Pod>) -> Trouble {
    let is_shown = |pod: &Pod| trouble.evidence.contains(&format!("pod {}", pod.name_any()));
    if pod.is_some_and(is_shown) {
        Trouble {
            evidence: format!("load generator: {}", trouble.evidence),
            ..trouble
        }
    } else {
        trouble
    }
}

/// Records the trial, and continues by the trial rule.
fn close(pass: &mut Pass<'_>, number: i64, judged: &JudgedTrial, workers: Vec<WorkerPod>, pods: &Pods<'_>) -> Step {
    patience::forget(pass);
    let ruling = close::close(pass.run.spec(), &mut pass.status, number, judged, pass.now);
    pass.status.state.worker_pods = workers;
    announce(pass, number, judged);
    match ruling {
        Ruling::Continue if judged.outcome == TrialOutcome::Invalid => {
            let why = format!("trial {number} is invalid; the next one starts once the deployment serves again");
            confirm_again(pass, Why::new(Reason::WorkloadNotReady, why))
        }
        // One write with the next trial, if all is ready for it.
        Ruling::Continue => match try_open(pass, pods) {
            Ok(Some(why)) => Step::Work(why),
            Ok(None) => Step::work(Reason::Running, format!("trial {number} is over; opening the next")),
            Err(missing) => missing,
        },
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
    if outcome == TrialOutcome::Pass {
        // The status shows it.
        return;
    }
    let first = closed.and_then(|trial| trial.causes.first());
    let reason = first.and_then(|first| Word::parse(first)).unwrap_or(Word::GatesMissed);
    let of_trial = judged.findings.iter().map(|(_, finding)| finding);
    let mut findings = pass.status.diagnosis.iter().chain(of_trial);
    let cause = first.and_then(|first| findings.find(|finding| finding.cause == *first));
    let cause = cause.map_or(String::new(), |finding| {
        format!("; {}: {}", finding.cause, finding.evidence)
    });
    pass.note(Event {
        warning: true,
        reason,
        action: format!("Trial{number}Run").into(),
        note: format!("trial {number}: {outcome:?}, {numbers}{cause}"),
    });
}
