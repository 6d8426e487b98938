//! GPUs that a node should have and has not.

use perfval_api::{ExpectedBy, Finding, PlacementStatus};

use super::cause::Cause;

/// Finding about GPUs that the node of a plan lacks.
pub fn missing(plan: &PlacementStatus) -> Option<Finding> {
    let expected = plan.expected?;
    let (node, healthy) = (&plan.node, plan.node_gpus - plan.faulty_gpus);
    let faulty = match plan.faulty_gpus {
        0 => String::new(),
        faulty => format!("; {faulty} unhealthy or tainted"),
    };
    let source = expected.by.in_words();
    let evidence = format!(
        "{node} has {healthy} of {} GPUs expected by {source}{faulty}",
        expected.gpus
    );
    Some(Cause::GPUsMissing.finding(evidence))
}

/// Returns true if the run must not pass: the spec gives the expected number, so nothing is guessed.
pub fn fails_run(plan: &PlacementStatus) -> bool {
    plan.expected.is_some_and(|expected| expected.by == ExpectedBy::Spec)
}
