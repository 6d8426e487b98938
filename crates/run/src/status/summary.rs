//! Conditions that follow from phase and verdict: for tools that wait for an object.

use std::time::Duration;

use chrono::{DateTime, Utc};
use perfval_api::text::{HEADLINE, bounded, cut};
use perfval_api::{Leftovers, PerfValidationStatus, Phase, Reason, RunStatus, Verdict, Why, condition};

use super::{CONDITION_ORDER, Words, put_condition, set_condition};
use crate::time;

/// Age of an obstacle from which `Stalled` is True. A restart of a webhook or a missing role is mended within minutes.
pub const BLOCKED_FOR_LONG: Duration = Duration::from_mins(10);

/// The generation that the run measured and judged, if a later edit needs another run.
fn outdated(status: &PerfValidationStatus) -> Option<&RunStatus> {
    let run = status.run.as_ref()?;
    (run.generation != status.observed_generation).then_some(run)
}

/// Sets the conditions that follow from phase and verdict: Complete, Passed, and kstatus' Ready, Reconciling,
/// Stalled. They apply to the observed generation: a verdict of another one is no evidence for it.
pub fn summarize(status: &mut PerfValidationStatus, now: DateTime<Utc>) {
    let phase = status.phase.unwrap_or(Phase::Pending);
    let outdated = outdated(status);
    let over = phase == Phase::Completed && outdated.is_none();
    let unfinished = !phase.is_over();
    let obstruction = obstruction(status, unfinished, now);
    let blocked = blocked(status, phase);
    let reconciling = unfinished && obstruction.is_none();
    let verdict = status.verdict.filter(|_| outdated.is_none());
    let good = matches!(verdict, Some(Verdict::Passed | Verdict::Skipped));
    // A finished run whose spec was edited is followed by the next at once, unless that is held back.
    let held_back = outdated.filter(|_| phase == Phase::Completed);
    // The whole text is in status.message; five conditions repeat only its beginning.
    let summary = match held_back {
        Some(run) => Why::new(
            Reason::Suspended,
            format!(
                "generation {} was not measured, the verdict of run {} is that of generation {}: set spec.suspend to false to run",
                status.observed_generation, run.number, run.generation
            ),
        ),
        None => Why {
            reason: Reason::from_word(status.reason.as_deref().unwrap_or_default()),
            message: cut(status.message.as_deref().unwrap_or_default(), HEADLINE),
        },
    };
    let running = Why::new(Reason::Running, format!("{}: {}", phase.as_str(), summary.message));
    let progress = if unfinished { &running } else { &summary };

    let passed = match verdict {
        Some(Verdict::Passed) => Some(true),
        Some(Verdict::Failed | Verdict::Error) => Some(false),
        Some(Verdict::Inconclusive | Verdict::Skipped) | None => None,
    };
    // A tool that waits for Ready may need these GPUs next.
    let leftovers = status.state.leftovers;
    let is_removed = leftovers.is_none() && !condition::is_false(status, condition::CLEANED_UP);
    let ready = match (over, verdict) {
        (true, Some(Verdict::Inconclusive)) => None,
        (true, _) => Some(good && is_removed),
        (false, _) => Some(false),
    };
    let is_complete = over && leftovers != Some(Leftovers::Overdue);
    let complete = if is_complete {
        Why::new(Reason::RunOver, summary.message.clone())
    } else {
        progress.clone()
    };
    set_condition(
        status,
        condition::PASSED,
        passed,
        if verdict.is_some() { &summary } else { progress },
        now,
    );
    set_condition(status, condition::COMPLETE, Some(is_complete), &complete, now);
    let stalled = obstruction.is_some() || (over && !good);
    // A verdict other than Passed is more important than its leftovers.
    let held = || cleaned_up(status).filter(|_| over && !is_removed);
    let words = match obstruction.or_else(held) {
        Some(words) if good || !over => words,
        _ => Words::new(progress),
    };
    put_condition(status, condition::READY, ready, &words, now);
    let reconciled = blocked.as_ref().unwrap_or(&words);
    put_condition(status, condition::RECONCILING, Some(reconciling), reconciled, now);
    put_condition(status, condition::STALLED, Some(stalled), &words, now);
    let place = |name: &str| CONDITION_ORDER.iter().position(|known| *known == name);
    status.conditions.sort_by_key(|condition| place(&condition.type_));
}

/// Obstacle that keeps a run from its end and that time may not heal: a removal that is overdue, or a refusal that lasts.
/// Tools that wait for the object stop waiting then.
fn obstruction(status: &PerfValidationStatus, unfinished: bool, now: DateTime<Utc>) -> Option<Words> {
    let leftovers = status.state.leftovers;
    if leftovers == Some(Leftovers::Overdue) {
        return cleaned_up(status);
    }
    let blocked = status.state.blocked.as_ref().filter(|_| unfinished)?;
    let lasts = blocked.for_good || time::until(now, blocked.since) >= BLOCKED_FOR_LONG;
    let words = || Words {
        reason: blocked.reason.clone(),
        message: cut(&blocked.message, HEADLINE),
    };
    lasts.then(words)
}

/// Reason and message of what keeps the operator from acting, with the phase in which it does.
fn blocked(status: &PerfValidationStatus, phase: Phase) -> Option<Words> {
    let blocked = status.state.blocked.as_ref()?;
    Some(Words {
        reason: blocked.reason.clone(),
        message: bounded(&format!("{}, blocked: {}", phase.as_str(), blocked.message)),
    })
}

/// Reason and message of the condition `CleanedUp`.
fn cleaned_up(status: &PerfValidationStatus) -> Option<Words> {
    condition::find(status, condition::CLEANED_UP).map(Words::repeat)
}
