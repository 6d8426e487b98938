//! The life of a run: what a pass reads, and what it decides.
//!
//! ```text
//! Pending → Sizing → Deploying → WaitingForReady → Benchmarking → Evaluating → CleaningUp → Completed
//!                ↖──── lost race ────┘  ↖── other GPUs ──┘                           ↑   └→ Suspended, or the next run
//!    └── deletion, suspend, spec change, rerun, deadline, guard: from any phase ──┘
//! ```
//!
//! Interruptions and deadlines are handled here, once, before and after the phase's own code. A phase function answers
//! with a [`Step`]; an unknown read never moves a phase, only a deadline may.

use std::time::Duration;

use chrono::{DateTime, Utc};
use perfval_api::{
    OnMissingDynamo, PerfValidationSpec, PerfValidationStatus, Phase, Reason, RunFailure, Trigger, Verdict, Why,
    condition, text,
};

use crate::decision::Decision;
use crate::interruption::{interruption, is_active};
use crate::observed::{Need, Needs, Observed};
use crate::pass::{Pass, Step};
use crate::run::Run;
use crate::{build, phase, status, time};

/// What a pass over this object has to read.
pub fn needs(run: &Run<'_>) -> Needs {
    let Some(current) = run.status().phase else {
        return Needs::default();
    };
    if interruption(run).is_some() && is_active(current) {
        return Needs::default();
    }
    let parts: &[Need] = match current {
        Phase::Pending if phase::deploying::fills_cache(run.spec()) => &[Need::Dynamo, Need::StorageClasses],
        Phase::Pending => &[Need::Dynamo],
        Phase::Sizing => &[Need::Children, Need::Workload, Need::OtherRuns, Need::Inventory],
        Phase::Deploying if phase::deploying::is_accepted(run) => &[Need::CacheJob, Need::Deployment],
        Phase::Deploying => &[Need::Deployment, Need::DryRun],
        Phase::WaitingForReady if phase::waiting_for_ready::counts_gpus(run.status()) => {
            &[Need::Deployment, Need::Workload, Need::Probe, Need::Inventory]
        }
        Phase::WaitingForReady => &[Need::Deployment, Need::Workload, Need::Probe],
        Phase::Benchmarking => &[Need::Workload, Need::Trial],
        Phase::Evaluating => &[Need::Results, Need::SavedResults],
        Phase::CleaningUp => &[Need::Children, Need::Workload],
        Phase::Completed if phase::completed::removes_leftovers(run) => &[Need::Children, Need::Workload],
        Phase::Completed | Phase::Suspended => &[],
    };
    let trials = &run.status().trials;
    let beside = phase::mixed_allocation::watches(run, current).then_some(Need::Inventory);
    Needs {
        parts: parts.iter().copied().chain(beside).collect(),
        dry_run: (current == Phase::Deploying).then(|| Box::new(build::deployment(run))),
        trial: trials
            .last()
            .filter(|trial| trial.outcome.is_none())
            .map(|trial| trial.number),
        finished_trials: trials
            .iter()
            .filter(|trial| trial.outcome.is_some())
            .map(|trial| trial.number)
            .collect(),
    }
}

/// Decides one pass.
pub fn decide(run: &Run<'_>, seen: &Observed, now: DateTime<Utc>) -> Decision {
    let mut pass = Pass::new(run, seen, now);
    let step = match run.status().phase {
        None => first_look(run),
        Some(current) => match interruption(run) {
            Some(interruption) if is_active(current) => Step::Go(Phase::CleaningUp, interruption.why()),
            _ => {
                let intruder = phase::mixed_allocation::intruder(&pass, current);
                let step = intruder.unwrap_or_else(|| phase::step(&mut pass, current));
                let step = expired(&mut pass, current, step);
                save_first(&mut pass, current, step)
            }
        },
    };
    pass.finish(step)
}

/// An object that was never looked at.
fn first_look(run: &Run<'_>) -> Step {
    if run.is_deleting() {
        return Step::Rest;
    }
    if run.spec().suspend {
        return Step::Go(
            Phase::Suspended,
            Why::new(Reason::Suspended, "spec.suspend is true: set it to false to run"),
        );
    }
    Step::Begin(Trigger::Created)
}

/// Whether a run that holds a node gives it back by itself. One that is past its own limits is looked after by nobody,
/// such as the run of an install that is gone.
pub fn is_at_work(spec: &PerfValidationSpec, status: &PerfValidationStatus, now: DateTime<Utc>) -> bool {
    let overdue = |deadline| now >= time::after(deadline, ABANDONED);
    let current = status
        .phase
        .filter(|phase| is_active(*phase) || *phase == Phase::CleaningUp);
    current.is_some_and(|current| !deadline(spec, status, current).is_some_and(overdue))
}

/// An error ends the measuring, but not before the trials that were measured are saved.
fn save_first(pass: &mut Pass<'_>, current: Phase, step: Step) -> Step {
    let is_measuring = matches!(current, Phase::WaitingForReady | Phase::Benchmarking);
    let measured = pass.status.trials.iter().any(|trial| trial.outcome.is_some());
    match (step, &mut pass.status.run) {
        (Step::End(Verdict::Error, why), Some(run)) if is_measuring && measured => {
            let (reason, message) = (why.reason.as_str().to_owned(), text::bounded(&why.message));
            run.failure = Some(RunFailure { reason, message });
            pass.status.trials.retain(|trial| trial.outcome.is_some());
            Step::Go(Phase::Evaluating, Why::new(Reason::Running, phase::evaluating::SAVING))
        }
        (step, _) => step,
    }
}

/// Turns a wait that has lasted too long into its end.
fn expired(pass: &mut Pass<'_>, current: Phase, step: Step) -> Step {
    let (why, grace) = match &step {
        Step::Wait(why) => (why, Duration::ZERO),
        // Sizing may be allowed no time at all; removing what a lost race left behind has its own.
        Step::Work(why) if why.reason == Reason::Removing => (why, time::duration(&pass.run.spec().timeouts.cleanup)),
        Step::Work(why) => (why, WORK_GRACE),
        Step::Go(..) | Step::End(..) | Step::Begin(_) | Step::Rest => return step,
    };
    let Some(deadline) = deadline(pass.run.spec(), &pass.status, current) else {
        return step;
    };
    if pass.now < time::after(deadline, grace) {
        return step;
    }
    match current {
        Phase::Pending if why.reason == Reason::DynamoNotInstalled => {
            let verdict = match pass.run.spec().on_missing_dynamo {
                OnMissingDynamo::Fail => Verdict::Error,
                OnMissingDynamo::Skip => Verdict::Skipped,
            };
            Step::End(verdict, why.clone())
        }
        Phase::Evaluating => phase::evaluating::end_without_results(pass, why),
        Phase::CleaningUp => phase::cleaning_up::give_up(pass, why),
        _ => Step::End(Verdict::Error, given_up(pass, current, why)),
    }
}

/// What a run that waited too long says: what it waited for, what kept the operator from acting, which limit to raise.
fn given_up(pass: &Pass<'_>, current: Phase, why: &Why) -> Why {
    let reason = match (current, why.reason) {
        (Phase::Benchmarking, Reason::Running) => Reason::BenchmarkTimeout,
        (Phase::Deploying, Reason::Starting) if phase::deploying::fills_cache(pass.run.spec()) => {
            Reason::ModelCacheFailed
        }
        (Phase::Deploying, Reason::Starting) => Reason::DeploymentFailed,
        (_, Reason::Probing) => Reason::EndpointNotReady,
        (_, reason) => reason,
    };
    let limit = match current {
        Phase::Pending => "timeouts.prerequisites",
        Phase::Sizing => "timeouts.sizing",
        Phase::Deploying if phase::deploying::fills_cache(pass.run.spec()) => "timeouts.modelCache",
        Phase::WaitingForReady if condition::is_true(&pass.status, condition::WORKLOAD_READY) => {
            "timeouts.endpointReady"
        }
        Phase::WaitingForReady => "timeouts.workloadReady",
        Phase::Benchmarking => "timeouts.benchmark",
        Phase::CleaningUp => "timeouts.cleanup",
        Phase::Deploying | Phase::Evaluating | Phase::Completed | Phase::Suspended => "two minutes",
    };
    let blocked = condition::find(&pass.status, condition::BLOCKED).map_or(String::new(), |blocked| {
        format!("; {}: {}", blocked.reason, blocked.message)
    });
    Why::new(reason, format!("{}{blocked} (gave up: {limit} passed)", why.message))
}

/// What the operator itself still has in hand may finish although the user's limit (`0s` is allowed) has passed.
const WORK_GRACE: Duration = Duration::from_mins(1);
/// An operator that is restarted or replaced takes its runs up again within this time.
const ABANDONED: Duration = Duration::from_mins(5);
/// Creating four objects, and writing one ConfigMap: seconds. The API server's own retries fit in.
const QUICK: Duration = Duration::from_mins(2);

/// When the current wait of a run has lasted too long; `None` for phases that wait for the user, and in line.
fn deadline(spec: &PerfValidationSpec, status: &PerfValidationStatus, current: Phase) -> Option<DateTime<Utc>> {
    let timeouts = &spec.timeouts;
    let began = status::phase_started_at(status)?;
    let limit = match current {
        Phase::Pending => time::duration(&timeouts.prerequisites),
        Phase::Sizing if phase::sizing::is_in_line(status) => return None,
        Phase::Sizing => {
            let last_in_line = status.run.as_ref().and_then(|run| run.last_in_line);
            let since = last_in_line.map_or(began, |last| last.max(began));
            return Some(time::after(since, time::duration(&timeouts.sizing)));
        }
        Phase::Deploying if phase::deploying::fills_cache(spec) => time::duration(&timeouts.model_cache) + QUICK,
        Phase::Deploying | Phase::Evaluating => QUICK,
        Phase::WaitingForReady => {
            return Some(match status::true_since(status, condition::WORKLOAD_READY) {
                Some(ready) => time::after(ready, time::duration(&timeouts.endpoint_ready)),
                None => time::after(began, time::duration(&timeouts.workload_ready)),
            });
        }
        Phase::Benchmarking => {
            // Each trial has its own limit; its Job is ended by the kubelet, so ours comes a little later.
            let open = status.trials.last();
            let since = open.map_or(began, |trial| trial.completed_at.unwrap_or(trial.started_at));
            return Some(time::after(since, time::duration(&timeouts.benchmark) + QUICK));
        }
        Phase::CleaningUp => time::duration(&timeouts.cleanup),
        Phase::Completed | Phase::Suspended => return None,
    };
    Some(time::after(began, limit))
}

/// Time until the current wait has lasted too long, for the next look.
pub(crate) fn time_left(pass: &Pass<'_>, current: Phase) -> Option<Duration> {
    deadline(pass.run.spec(), &pass.status, current).map(|deadline| time::until(deadline, pass.now))
}
