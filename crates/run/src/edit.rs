//! Consequences of an edit of the spec, see [`spec_digests`](perfval_verdict::spec_digests).

use perfval_api::{PerfValidationStatus, Trigger, Verdict};
use perfval_verdict::spec_digests::digests;

use crate::run::Run;
use crate::status;

/// The run that the spec requires since the current one began; `None` if the current one measured and judged all of
/// it.
pub(crate) fn trigger(run: &Run<'_>) -> Option<Trigger> {
    let status = run.status();
    let current = status.run.as_ref()?;
    let edited = current.generation != run.generation();
    let Some(before) = &status.state.digests else {
        // The state was damaged: a run under way cannot go on, and a later edit cannot be compared.
        let is_under_way = status.verdict.is_none();
        return (edited || is_under_way).then_some(if edited {
            Trigger::SpecChanged
        } else {
            Trigger::StateLost
        });
    };
    if !edited {
        return None;
    }
    let now = digests(run.spec());
    if now.measured != before.measured {
        return Some(Trigger::SpecChanged);
    }
    if now.judged != before.judged {
        let can_judge_again = has_saved_trials(status) && !run.spec().gates.is_empty();
        return Some(if can_judge_again {
            Trigger::GatesChanged
        } else {
            Trigger::SpecChanged
        });
    }
    // A limit may have kept the run from measuring: a user who changes it wants to see the difference.
    let unmeasured = matches!(status.verdict, Some(Verdict::Error | Verdict::Skipped));
    (now.limits != before.limits && unmeasured).then_some(Trigger::SpecChanged)
}

/// Returns true if the last run measured, judged and saved its trials, or is about to judge saved ones again.
fn has_saved_trials(status: &PerfValidationStatus) -> bool {
    let judges_again = || status.verdict.is_none() && status.state.judged_run.is_some();
    let judged = matches!(
        status.verdict,
        Some(Verdict::Passed | Verdict::Failed | Verdict::Inconclusive)
    );
    (judged || judges_again()) && status.results_ref.is_some()
}

/// Applies the result of the current run to the new generation if the edit requires no run.
pub(crate) fn adopt(run: &Run<'_>, status: &mut PerfValidationStatus) {
    let generation = run.generation();
    let edited = status.run.as_ref().is_some_and(|run| run.generation != generation);
    if !edited || trigger(run).is_some() {
        return;
    }
    if let Some(current) = &mut status.run {
        current.generation = generation;
        status.state.digests = Some(digests(run.spec()));
    }
    status::restate_run_conditions(status);
}
