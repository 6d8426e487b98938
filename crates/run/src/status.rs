//! Status as a state: entering phases, beginning runs, conditions.

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use perfval_api::text::{HEADLINE, bounded, cut};
use perfval_api::{
    EarlierGpuTime, Leftovers, OperatorState, PerfValidationStatus, Phase, PlanDetails, Reason, RunStatus,
    TimelineEntry, Trigger, Why, condition,
};
use perfval_verdict::{history, spec_digests};

use crate::run::Run;
use crate::time;

mod size;
mod summary;
mod view;

pub use size::fit;
pub use summary::{BLOCKED_FOR_LONG, summarize};
pub use view::publish;

/// The order in which conditions stand, which is the one in which `kubectl describe` prints them: the story of a run,
/// then what machines ask for. A client that cannot search a list reads the second one (config/handoff/argo-workflows.yaml).
const CONDITION_ORDER: [&str; 6] = [
    condition::PASSED,
    condition::CLEANED_UP,
    condition::COMPLETE,
    condition::READY,
    condition::RECONCILING,
    condition::STALLED,
];

/// The condition of the run, and so of the spec that it is true of; all others are of the object as it is now.
const OF_THE_RUN: &str = condition::CLEANED_UP;

/// Phases that the timeline keeps.
const ENTRIES: usize = 32;

/// Returns true if the time for removal has passed, and the removal continues.
pub(crate) fn is_overdue(status: &PerfValidationStatus) -> bool {
    let leftovers = status.state.leftovers;
    status.phase == Some(Phase::CleaningUp) && leftovers == Some(Leftovers::Overdue)
}

/// Begins the next run: everything of the last one moves to the history or is cleared.
pub fn begin_run(run: &Run<'_>, trigger: Trigger, now: DateTime<Utc>) -> PerfValidationStatus {
    let last = run.status();
    let number = last.run.as_ref().map_or(1, |run| run.number + 1);
    // A run that gave way measured nothing to compare with. Its time counts for the next one.
    let before = last.run.as_ref().filter(|_| trigger == Trigger::Preempted);
    let mut status = PerfValidationStatus {
        observed_generation: run.generation(),
        conditions: last.conditions.clone(),
        run: Some(RunStatus {
            number,
            trigger,
            generation: run.generation(),
            rerun_token: run.rerun_token().map(str::to_owned),
            started_at: now,
            completed_at: None,
            queue_ahead: None,
            expected_at: None,
        }),
        state: Box::new(OperatorState {
            digests: Some(spec_digests::digests(run.spec())),
            clears_first: number > 1,
            first_started_at: before.map(|run| last.state.first_started_at.unwrap_or(run.started_at)),
            unattended_seconds: before.map_or(0, |_| last.state.unattended_seconds),
            history: if before.is_some() {
                last.state.history.clone()
            } else {
                history::with_last(last, now)
            },
            last_passed: history::last_passed(last),
            earlier_gpu_time: earlier_gpu_time(run, now),
            ..OperatorState::default()
        }),
        ..PerfValidationStatus::default()
    };
    if trigger == Trigger::GatesChanged {
        carry(&mut status, last);
        restate_run_conditions(&mut status);
        enter(&mut status, Phase::Evaluating, now);
        return status;
    }
    let unknown = Why::new(Reason::Running, "the run has not come this far");
    set_condition(&mut status, OF_THE_RUN, None, &unknown, now);
    enter(&mut status, Phase::Pending, now);
    status
}

/// Starts a run that judges saved trials again with the state of the run that measured them, except for the results
/// of its gates.
fn carry(status: &mut PerfValidationStatus, last: &PerfValidationStatus) {
    status.state.plan.clone_from(&last.state.plan);
    status.state.worker_pods.clone_from(&last.state.worker_pods);
    status.placement.clone_from(&last.placement);
    status.workload.clone_from(&last.workload);
    status.state.deployment.clone_from(&last.state.deployment);
    status.state.environment.clone_from(&last.state.environment);
    status.state.comparison.clone_from(&last.state.comparison);
    status.results_ref.clone_from(&last.results_ref);
    let measured = last.run.as_ref().map(|run| run.number);
    status.state.judged_run = last.state.judged_run.or(measured);
    status.state.leftovers = last.state.leftovers;
}

/// GPU time until the end of the last run: of that run, and of those before it on the same day (UTC).
fn earlier_gpu_time(run: &Run<'_>, now: DateTime<Utc>) -> Option<EarlierGpuTime> {
    let last = run.status();
    let earlier = last.state.earlier_gpu_time;
    let ended = last.run.as_ref().and_then(|run| run.completed_at);
    let held = last.held_gpus().zip(last.placement.as_ref());
    let Some(((since, until), placement)) = held else {
        return earlier;
    };
    // An interrupted run has no end of its own.
    let until = until.or(ended).unwrap_or(now);
    let cleanup = TimeDelta::from_std(time::duration(&run.spec().timeouts.cleanup)).unwrap_or(TimeDelta::MAX);
    let until = last.removal_ends_by(cleanup).map_or(until, |limit| until.min(limit));
    let midnight = until.duration_trunc(TimeDelta::days(1)).ok()?;
    let same_day = earlier.filter(|earlier| earlier.until >= midnight);
    let seconds = (until - since.max(midnight)).num_seconds().max(0);
    Some(EarlierGpuTime {
        until,
        seconds: placement.gpus * seconds + same_day.map_or(0, |earlier| earlier.seconds),
    })
}

/// The conditions of the run are true of its generation.
pub(crate) fn restate_run_conditions(status: &mut PerfValidationStatus) {
    let generation = status.run.as_ref().map(|run| run.generation);
    for condition in &mut status.conditions {
        if condition.type_ == OF_THE_RUN {
            condition.observed_generation = generation;
        }
    }
}

/// Enters a phase: ends the current entry of the timeline and begins the next.
pub fn enter(status: &mut PerfValidationStatus, phase: Phase, now: DateTime<Utc>) {
    if let Some(current) = status.state.timeline.last_mut() {
        current.completed_at.get_or_insert(now);
    }
    status.phase = Some(phase);
    // A place in the queue is that of a run in Sizing.
    if let Some(run) = status.run.as_mut().filter(|_| phase != Phase::Sizing) {
        (run.queue_ahead, run.expected_at) = (None, None);
    }
    let outages = end_gaps(status);
    let state = &mut status.state;
    state.unattended_seconds += outages;
    state.signs.clear();
    // Sizing removes everything that the run has made so far, its cache-filling Job included, and the next plan makes
    // another deployment.
    if phase == Phase::Sizing {
        state.accepted_at = None;
        state.cache_job_uid = None;
    }
    // The timeline is that of a run; a finished run ends it.
    if !phase.is_over() {
        state.timeline.push(TimelineEntry {
            phase,
            started_at: now,
            completed_at: None,
        });
    }
    // A run sent back to Sizing again and again must not grow its status without bound.
    let surplus = state.timeline.len().saturating_sub(ENTRIES);
    state.timeline.drain(..surplus);
}

/// Ends the outages of a phase, and returns their length (s).
pub(crate) fn end_gaps(status: &mut PerfValidationStatus) -> i64 {
    let gaps = status.state.gaps.drain(..);
    gaps.map(|gap| (gap.until - gap.from).num_seconds()).sum()
}

/// Takes back the plan of a run.
pub(crate) fn unplace(status: &mut PerfValidationStatus) {
    status.placement = None;
    status.state.plan = PlanDetails::default();
    status.state.chosen_at = None;
}

/// Start of the current phase.
pub fn phase_started_at(status: &PerfValidationStatus) -> Option<DateTime<Utc>> {
    status
        .state
        .timeline
        .last()
        .filter(|entry| Some(entry.phase) == status.phase)
        .map(|entry| entry.started_at)
}

/// Records why the run is where it is.
pub fn explain(status: &mut PerfValidationStatus, why: &Why) {
    status.reason = Some(why.reason.as_str().into());
    status.message = Some(bounded(&why.message));
}

/// Reason and message of a condition.
#[derive(Clone, Debug)]
struct Words {
    reason: String,
    message: String,
}

impl Words {
    fn new(why: &Why) -> Self {
        Self {
            reason: why.reason.as_str().into(),
            message: bounded(&why.message),
        }
    }

    /// The same words as another condition, shortened.
    fn repeat(condition: &Condition) -> Self {
        Self {
            reason: condition.reason.clone(),
            message: cut(&condition.message, HEADLINE),
        }
    }
}

/// Sets a condition, with the generation that it is true of. `met`: `None` for `Unknown`. Its transition time moves only when its
/// value does.
pub fn set_condition(status: &mut PerfValidationStatus, name: &str, met: Option<bool>, why: &Why, now: DateTime<Utc>) {
    put_condition(status, name, met, &Words::new(why), now);
}

fn put_condition(status: &mut PerfValidationStatus, name: &str, met: Option<bool>, words: &Words, now: DateTime<Utc>) {
    let of_the_run = status.run.as_ref().filter(|_| name == OF_THE_RUN);
    let generation = of_the_run.map_or(status.observed_generation, |run| run.generation);
    let fresh = Condition {
        type_: name.into(),
        status: match met {
            Some(true) => "True".to_owned(),
            Some(false) => "False".to_owned(),
            None => "Unknown".to_owned(),
        },
        reason: words.reason.clone(),
        message: words.message.clone(),
        // -1 in the status of an object that no pass has looked at.
        observed_generation: Some(generation).filter(|generation| *generation >= 0),
        last_transition_time: time::to_kubernetes(now),
    };
    match status.conditions.iter_mut().find(|condition| condition.type_ == name) {
        None => status.conditions.push(fresh),
        Some(old) if old.status == fresh.status => {
            *old = Condition {
                last_transition_time: old.last_transition_time.clone(),
                ..fresh
            };
        }
        Some(old) => *old = fresh,
    }
}
