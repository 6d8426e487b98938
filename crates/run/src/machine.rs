//! The life of a run: what a pass reads, and what it decides.
//!
//! ```text
//! Pending → Sizing → Deploying → WaitingForReady → Benchmarking → Evaluating → CleaningUp → Completed
//!                ↖──── lost race ────┘  ↖── other GPUs ──┘                           ↑   └→ Suspended, or the next run
//!    └─ deletion, suspend, spec change, rerun, preemption, deadline, guard: any phase ┘
//!                    Completed → Evaluating → Completed: changed gates judge the saved trials again
//! ```
//!
//! Interruptions and deadlines are handled here, once, before and after the phase's own code. A phase function answers
//! with a [`Step`]; an unknown read never moves a phase, only a deadline may.

use std::time::Duration;

use chrono::{DateTime, Utc};
use perfval_api::{PerfValidationSpec, PerfValidationStatus, Phase, Reason, RunFailure, Trigger, Verdict, Why, text};

use crate::attendance::{self, Limit};
use crate::decision::Decision;
use crate::interruption::interruption;
use crate::observed::{Need, Needs, Observed};
use crate::pass::{Pass, Step};
use crate::queue;
use crate::run::Run;
use crate::{phase, preemption, status, time};

/// Reads that a pass over this object needs.
pub fn needs(run: &Run<'_>) -> Needs {
    let Some(current) = run.phase() else {
        return Needs::default();
    };
    if interruption(run).is_some() && current.is_active() {
        return Needs::default();
    }
    let mut needs = (phase::definition(current).needs)(run);
    if phase::mixed_allocation::watches(run, current) {
        needs.parts.insert(Need::Inventory);
    }
    needs
}

/// Reads of a pass over a run whose endpoint has completed a request: it checks the GPUs and opens a trial at once.
pub fn needs_with_completion(run: &Run<'_>) -> Needs {
    let mut needs = needs(run);
    if needs.parts.contains(&Need::Probe) {
        needs.parts.extend(phase::after_completion(run));
    }
    needs
}

/// Decides one pass.
pub fn decide(run: &Run<'_>, seen: &Observed, now: DateTime<Utc>) -> Decision {
    let mut pass = Pass::new(run, seen, now);
    if let Some(limit) = current_limit(run.spec(), run.status()) {
        pass.notice_gap(&limit);
    }
    let step = match run.phase() {
        None => first_look(run),
        Some(current) => match interruption(run) {
            Some(why) if current.is_active() => Step::Go(Phase::CleaningUp, why),
            _ => {
                let stops = preemption::give_way(&mut pass, current)
                    .or_else(|| phase::mixed_allocation::intruder(&pass, current));
                let step = stops.unwrap_or_else(|| (phase::definition(current).step)(&mut pass));
                let step = expired(&mut pass, current, step);
                let step = overdue(&mut pass, current, step);
                save_first(&mut pass, current, step)
            }
        },
    };
    let limit = current_limit(run.spec(), &pass.status);
    pass.finish(step, limit)
}

/// The limit whose time counts now: that of the wait, or of the whole run if the wait has none. A limit that has
/// passed for good needs no heartbeat: the pauses of a removal that hangs would each be a write.
fn current_limit(spec: &PerfValidationSpec, status: &PerfValidationStatus) -> Option<Limit> {
    let of_queue = || queue::is_queued(status).then(|| total_limit(spec, status).map(phase::seldom_looked_at))?;
    phase::limit(spec, status)
        .or_else(of_queue)
        .filter(|_| !status::is_overdue(status))
}

/// Time at which the limit of the current phase passes, if no look is missed from now on; `None` where the phase has none.
pub fn phase_ends_by(spec: &PerfValidationSpec, status: &PerfValidationStatus) -> Option<DateTime<Utc>> {
    let limit = phase::limit(spec, status)?;
    Some(attendance::deadline(status, &limit))
}

/// The limit of the whole run, where the spec has one.
fn total_limit(spec: &PerfValidationSpec, status: &PerfValidationStatus) -> Option<Limit> {
    let (total, run) = (spec.timeouts.total.as_ref()?, status.run.as_ref()?);
    let outages = Duration::from_secs(u64::try_from(status.state.unattended_seconds).unwrap_or(0));
    let lasts = time::duration(total).saturating_add(outages);
    let began = status.state.first_started_at.unwrap_or(run.started_at);
    Some(Limit::new(began, lasts))
}

/// An object that was never looked at.
fn first_look(run: &Run<'_>) -> Step {
    if run.is_deleting() {
        // A copy of another object, such as one from a backup, carries our finalizer.
        return phase::leave(run);
    }
    if run.spec().suspend {
        let message = "spec.suspend is true: set it to false to run";
        return Step::go(Phase::Suspended, Reason::Suspended, message);
    }
    Step::Begin(Trigger::Created)
}

/// Returns true if the planner alone moves a run: it waits in the queue, and no interruption is due.
pub fn is_queued(run: &Run<'_>) -> bool {
    queue::is_queued(run.status()) && interruption(run).is_none()
}

/// Returns true if a run that holds a node gives it back without help. No operator looks after a run that is past its
/// own limits, such as the run of an install that is gone.
pub fn is_at_work(spec: &PerfValidationSpec, status: &PerfValidationStatus, now: DateTime<Utc>) -> bool {
    let overdue = |limit| now >= time::after(attendance::deadline(status, &limit), queue::ABANDONED);
    // What a run that judges saved trials again still holds was kept by an earlier one.
    let is_under_way = status.phase.is_some_and(|phase| match phase {
        Phase::Evaluating => status.state.judged_run.is_none(),
        phase => phase.is_active() || phase == Phase::CleaningUp,
    });
    is_under_way && !phase::limit(spec, status).is_some_and(overdue)
}

/// An error ends the measuring, but not before the trials that were measured are saved.
fn save_first(pass: &mut Pass<'_>, current: Phase, step: Step) -> Step {
    let measured = pass.status.state.trials.iter().any(|trial| trial.outcome.is_some());
    match step {
        Step::End(Verdict::Error, why) if current.is_measured() && measured => {
            // On a GPU that others may use, a crash proves nothing against the node.
            if !matches!(why.reason, Reason::MixedAllocation | Reason::PlacementBroken) {
                phase::record_last_crash(pass);
            }
            let (reason, message) = (why.reason.name().to_owned(), text::bounded(&why.message));
            pass.status.state.failure = Some(RunFailure { reason, message });
            let trials = &mut pass.status.state.trials;
            // A worker may have been lost before the open trial.
            let lost = trials.iter().filter(|trial| trial.outcome.is_none());
            let lost = lost.filter_map(|trial| trial.worker_loss).max();
            trials.retain(|trial| trial.outcome.is_some());
            if let Some(last) = trials.last_mut() {
                last.worker_loss = last.worker_loss.max(lost);
            }
            Step::Go(Phase::Evaluating, Why::new(Reason::Running, phase::evaluating::SAVING))
        }
        step => step,
    }
}

/// Turns a wait that has lasted too long into its end.
fn expired(pass: &mut Pass<'_>, current: Phase, step: Step) -> Step {
    let (why, grace) = match &step {
        // Sizing may be allowed no time at all; removing what a lost race left behind has its own.
        Step::Wait(why) | Step::Work(why) if current == Phase::Sizing && !queue::is_queued(&pass.status) => {
            (why, time::duration(&pass.run.spec().timeouts.cleanup))
        }
        Step::Wait(why) => (why, Duration::ZERO),
        Step::Work(why) => (why, WORK_GRACE),
        Step::Go(..) | Step::End(..) | Step::Begin(_) | Step::Rest => return step,
    };
    let (Some(timed), Some(limit)) = (
        &phase::definition(current).timed,
        phase::limit(pass.run.spec(), &pass.status),
    ) else {
        return step;
    };
    let limit = Limit {
        lasts: limit.lasts.saturating_add(grace),
        ..limit
    };
    // Once passed, the time for removal stays passed.
    if status::is_overdue(pass.run.status()) || pass.has_passed(&limit) {
        (timed.expired)(pass, why)
    } else {
        step
    }
}

/// Ends a run that exceeded its time-out as a whole. Complete measurements are judged first.
fn overdue(pass: &mut Pass<'_>, current: Phase, step: Step) -> Step {
    let is_measuring = |phase: Phase| phase.is_active() && phase != Phase::Evaluating;
    let why = match &step {
        Step::Wait(why) | Step::Work(why) if is_measuring(current) => why,
        Step::Go(next, why) if is_measuring(current) && is_measuring(*next) => why,
        Step::Wait(_) | Step::Work(_) | Step::Go(..) | Step::End(..) | Step::Begin(_) | Step::Rest => return step,
    };
    let (Some(total), Some(limit)) = (
        &pass.run.spec().timeouts.total,
        total_limit(pass.run.spec(), &pass.status),
    ) else {
        return step;
    };
    if !pass.has_passed(&limit) {
        let left = time::until(attendance::deadline(&pass.status, &limit), pass.now);
        pass.look_again_in(left.max(Duration::from_millis(100)));
        return step;
    }
    let waited = &why.message;
    Step::error(
        Reason::DeadlineExceeded,
        format!("{waited} (gave up: the whole run took longer than timeouts.total, {total})"),
    )
}

/// Time for the operator's own work in hand, which may finish although the user's limit (`0s` is allowed) has passed.
const WORK_GRACE: Duration = Duration::from_mins(1);
