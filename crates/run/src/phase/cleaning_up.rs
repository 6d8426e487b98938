//! `CleaningUp`: everything of the object is deleted and confirmed gone, pods and claims included.

use std::time::Duration;

use perfval_api::{Leftovers, Phase, Reason, Trigger, Why, condition};

use super::definition::{Definition, Timed};
use crate::attendance::Limit;
use crate::decision::{Effect, Event};
use crate::observed::Needs;
use crate::pass::{Pass, REMOVING, Step};
use crate::{interruption, status, teardown, time};

/// Watches report pods and claims. Other objects are checked this often.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// Longest pause where something hangs for long.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

pub(super) const PHASE: Definition = Definition {
    needs: |_| Needs::default(),
    step,
    timed: Some(Timed {
        limit: |spec, _, began| Some(Limit::new(began, time::duration(&spec.timeouts.cleanup))),
        expired: give_up,
    }),
};

fn step(pass: &mut Pass<'_>) -> Step {
    let expired = super::completed::kept_for(pass) == Some(Duration::ZERO);
    let keep = pass.run.keeps_everything() && !expired && !pass.run.is_deleting() && pass.status.verdict.is_some();
    if keep && let Some(step) = teardown::read_children(pass) {
        return step;
    }
    // The annotation may come after the deletion began. On the lab such a run then held its node with no deployment.
    if keep && teardown::can_be_kept(pass.seen) {
        teardown::leave(pass, Leftovers::Kept, &super::completed::kept());
        return over(pass);
    }
    let (value, shown, what) = match teardown::remove(pass) {
        teardown::Removal::Gone => {
            teardown::confirm_gone(pass);
            if pass.run.is_deleting() {
                pass.act(Effect::ReleaseFinalizer);
                return Step::Rest;
            }
            return over(pass);
        }
        teardown::Removal::Removing(what) => (Some(false), REMOVING.to_owned(), what),
        // The message of a run with a verdict is its verdict's: only the condition describes the wait.
        teardown::Removal::Unknown(what) => (None, what.clone(), what),
    };
    pass.condition(condition::CLEANED_UP, value, &Why::new(Reason::Running, shown));
    pass.look_again_in(pause(pass));
    Step::wait(Reason::Running, what)
}

/// Pause of a tenth of the removal's time until now: a finalizer that hangs for days is not checked every five
/// seconds.
fn pause(pass: &Pass<'_>) -> Duration {
    let began = status::phase_started_at(&pass.status).unwrap_or(pass.now);
    (time::until(pass.now, began) / 10).clamp(LOOK_AGAIN, LONGEST_PAUSE)
}

/// Step after a cleanup: the end of the run, a suspension, or the next run.
fn over(pass: &Pass<'_>) -> Step {
    if pass.status.verdict.is_some() {
        let message = pass.status.message.clone().unwrap_or_default();
        return Step::go(Phase::Completed, Reason::RunOver, message);
    }
    if pass.run.spec().suspend {
        return Step::go(
            Phase::Suspended,
            Reason::Suspended,
            "suspended: set spec.suspend to false to run",
        );
    }
    Step::Begin(interruption::next_trigger(pass.run).unwrap_or(Trigger::Resumed))
}

/// Ends the wait after the limit. The finalizer stays until everything is confirmed gone.
fn give_up(pass: &mut Pass<'_>, why: &Why) -> Step {
    if let Some(step) = teardown::read_rest(pass) {
        return step;
    }
    let report = Why::new(
        Reason::TeardownUnconfirmed,
        format!(
            "{} (left: {}): see their finalizers, the node's kubelet and its DRA plugin; the operator keeps trying",
            why.message,
            teardown::left(pass.run, pass.seen)
        ),
    );
    let is_known = pass.run.status().state.leftovers == Some(Leftovers::Overdue);
    if !is_known {
        pass.note(Event::warning(
            Reason::TeardownUnconfirmed,
            "CleanUp",
            report.message.clone(),
        ));
    }
    teardown::leave(pass, Leftovers::Overdue, &report);
    // A finished run keeps sweeping from Completed. One without a verdict has nowhere to rest but here: the finalizer,
    // a suspension and the next run all promise that nothing is left.
    if pass.run.is_deleting() || pass.status.verdict.is_none() {
        pass.look_again_in(pause(pass));
        return Step::Wait(report);
    }
    over(pass)
}
