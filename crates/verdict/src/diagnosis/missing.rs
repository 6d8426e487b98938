//! GPUs that a node should have and has not.

use perfval_api::{Finding, PlacementStatus, PlanDetails};

use super::cause::Cause;

/// Finding about GPUs that the node of a plan lacks.
pub fn missing(plan: &PlacementStatus, details: &PlanDetails) -> Option<Finding> {
    let expected = plan.expected_gpus?;
    let (node, healthy) = (&plan.node, plan.node_gpus - plan.faulty_gpus);
    let faulty = match plan.faulty_gpus {
        0 => String::new(),
        faulty => format!("; {faulty} unhealthy or tainted"),
    };
    let source = details.expected_by?.in_words();
    let evidence = format!("{node} has {healthy} of {expected} GPUs expected by {source}{faulty}");
    Some(Cause::GPUsMissing.finding(evidence))
}
