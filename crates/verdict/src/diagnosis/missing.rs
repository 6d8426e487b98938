//! GPUs that a node should have and has not.

use perfval_api::{ExpectedBy, Finding, PlacementStatus};

use super::cause::Cause;

/// What is missing of the node of a plan, if anything is.
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

/// Whether it has to keep the run from passing: the spec says how many there should be, and nothing is guessed.
pub fn fails_run(plan: &PlacementStatus) -> bool {
    plan.expected.is_some_and(|expected| expected.by == ExpectedBy::Spec)
}
