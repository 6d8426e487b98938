//! Completed: rest, until a new run is requested, the object is deleted, or an object still has to be removed.

use std::time::Duration;

use perfval_api::{Leftovers, Phase, Reason, Trigger, Why, condition};

use super::definition::Definition;
use crate::decision::Effect;
use crate::observed::{Need, Needs};
use crate::pass::{Pass, Step};
use crate::run::Run;
use crate::{interruption, teardown, time};

/// Pause after a delete was refused with 409 for an object that still belongs to the run, because no watch reports
/// that.
const ASK_AGAIN: Duration = Duration::from_secs(30);

pub(super) const PHASE: Definition = Definition {
    needs,
    step,
    timed: None,
};

fn needs(run: &Run<'_>) -> Needs {
    if has_left(run, Leftovers::Overdue) || leaves_at_once(run) {
        Needs::new(teardown::NEEDS)
    } else if has_left(run, Leftovers::Kept) {
        Needs::new([Need::Children])
    } else {
        Needs::default()
    }
}

/// Returns true if a finished run still has such objects, and rests.
fn has_left(run: &Run<'_>, leftovers: Leftovers) -> bool {
    !run.is_deleting() && next(run).is_none() && run.status().state.leftovers == Some(leftovers)
}

/// Returns true if a deleted object had nothing left at the end of its run, and has no finalizer of others: Argo CD reads the
/// status of a hook until it removes its own finalizer.
fn leaves_at_once(run: &Run<'_>) -> bool {
    run.is_deleting() && run.has_only_our_finalizer() && run.status().state.leftovers.is_none()
}

/// The run that begins now; a suspension holds it back.
fn next(run: &Run<'_>) -> Option<Trigger> {
    interruption::next_trigger(run).filter(|_| !run.spec().suspend)
}

fn step(pass: &mut Pass<'_>) -> Step {
    if leaves_at_once(pass.run) && teardown::remove(pass) == teardown::Removal::Gone {
        // Without a write of the status: 5,000 objects leave with their policy.
        pass.status.clone_from(pass.run.status());
        pass.act(Effect::ReleaseFinalizer);
        return Step::Rest;
    }
    if pass.run.is_deleting() {
        return leave(pass.run);
    }
    if let Some(trigger) = next(pass.run) {
        return Step::Begin(trigger);
    }
    if has_left(pass.run, Leftovers::Kept) {
        let why = match (pass.run.keeps_everything(), kept_for(pass)) {
            (false, _) => "the no-cleanup annotation is gone: removing everything",
            (true, Some(Duration::ZERO)) => "keptSecondsAfterFinished has passed: removing everything",
            (true, _) if !teardown::can_be_kept(pass.seen) => "the deployment that was kept is gone: removing the rest",
            (true, left) => {
                if let Some(left) = left {
                    pass.look_again_in(left);
                }
                return Step::Rest;
            }
        };
        return Step::go(Phase::CleaningUp, Reason::Running, why);
    }
    if has_left(pass.run, Leftovers::Overdue) {
        remove_leftovers(pass);
    }
    delete_after_ttl(pass);
    Step::Rest
}

/// Any other deleted object leaves through `CleaningUp`, which confirms that nothing is left. Others may have removed the
/// finalizer while something was kept.
pub(crate) fn leave(run: &Run<'_>) -> Step {
    if !run.has_finalizer() && run.status().state.leftovers.is_none() {
        return Step::Rest;
    }
    Step::go(
        Phase::CleaningUp,
        Reason::Interrupted,
        "the object is being deleted: removing what its runs created",
    )
}

/// Remaining time for which the user keeps objects; `None` without a limit, and before the run is over. It counts from
/// `CleaningUp` of the run that measured: a run that judges saved trials again ends later.
pub(super) fn kept_for(pass: &Pass<'_>) -> Option<Duration> {
    let lasts = pass.run.spec().kept_seconds_after_finished?;
    let over = pass.status.run.as_ref().and_then(|run| run.completed_at)?;
    let removal = condition::find(&pass.status, condition::CLEANED_UP);
    let since = removal.map_or(over, |removal| {
        over.min(time::from_kubernetes(&removal.last_transition_time))
    });
    let until = time::after(since, Duration::from_secs(u64::try_from(lasts).unwrap_or(0)));
    Some(time::until(until, pass.now))
}

fn remove_leftovers(pass: &mut Pass<'_>) {
    let over = pass.status.run.as_ref().and_then(|run| run.completed_at);
    let overdue = over.map_or(Duration::ZERO, |over| time::until(pass.now, over));
    match teardown::remove(pass) {
        teardown::Removal::Gone => teardown::confirm_gone(pass),
        teardown::Removal::Removing(_) | teardown::Removal::Unknown(_) => {
            pass.look_again_in(teardown::look_again(overdue));
        }
    }
}

fn delete_after_ttl(pass: &mut Pass<'_>) {
    // A run that is held back is still to come.
    if interruption::next_trigger(pass.run).is_some() {
        return;
    }
    let (Some(ttl), Some(over)) = (
        pass.run.spec().ttl_seconds_after_finished,
        pass.status.run.as_ref().and_then(|run| run.completed_at),
    ) else {
        return;
    };
    let due = time::after(over, Duration::from_secs(u64::try_from(ttl).unwrap_or(0)));
    if pass.now >= due {
        pass.act(Effect::DeleteSelf);
        pass.look_again_in(ASK_AGAIN);
    } else {
        pass.look_again_in(time::until(due, pass.now));
    }
}

/// Reason of the `CleanedUp` condition of a finished run if the user keeps everything.
pub(crate) fn kept() -> Why {
    Why::new(
        Reason::NoCleanupRequested,
        "kept for a post-mortem: remove the annotation perfvalidation.dev/no-cleanup to free the GPUs",
    )
}
