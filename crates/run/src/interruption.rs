//! Interruptions of a run, and triggers of the next one.

use perfval_api::{Phase, Reason, Trigger, Why};

use crate::edit;
use crate::run::Run;

/// Reason why the run has to stop, the most important first.
pub(crate) fn interruption(run: &Run<'_>) -> Option<Why> {
    let because = |message| Some(Why::new(Reason::Interrupted, message));
    if run.is_deleting() {
        return because("the object is being deleted: removing what the run created");
    }
    // A saved measurement is worth the second that saving it takes: only deletion stops an evaluation.
    if run.status().phase == Some(Phase::Evaluating) {
        return None;
    }
    if run.spec().suspend {
        return Some(suspension());
    }
    match next_trigger(run)? {
        Trigger::Rerun => because("a rerun was requested: this run stops, a new one follows"),
        Trigger::StateLost => because("status.operatorState was damaged: this run stops, a new one follows"),
        Trigger::SpecChanged | Trigger::GatesChanged | Trigger::Created | Trigger::Resumed | Trigger::Preempted => {
            because("the measured or judged part of the spec changed: this run stops, a new one follows")
        }
    }
}

/// Reason why a suspended run stops.
pub(crate) fn suspension() -> Why {
    Why::new(
        Reason::Suspended,
        "spec.suspend is true: the run stops and frees its GPUs",
    )
}

/// Trigger of a run after the current one.
pub(crate) fn next_trigger(run: &Run<'_>) -> Option<Trigger> {
    let current = run.status().run.as_ref()?;
    let edited = edit::trigger(run);
    let rerun = run.rerun_token().is_some() && run.rerun_token() != current.rerun_token.as_deref();
    match edited {
        // A rerun measures, and judges what it measures by the new gates.
        None | Some(Trigger::GatesChanged) if rerun => Some(Trigger::Rerun),
        None => run.status().state.gives_way.then_some(Trigger::Preempted),
        _ => edited,
    }
}
