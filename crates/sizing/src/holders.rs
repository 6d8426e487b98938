//! Runs that hold a node: no other run may choose it.

use perfval_api::{PerfValidationStatus, Phase, condition};

/// A node that is another run's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherRun {
    /// `namespace/name`.
    pub name: String,
    /// Its node.
    pub node: String,
}

/// Whether a run holds its node, or plans to: no other run may choose it.
pub fn holds_node(status: &PerfValidationStatus) -> bool {
    // A run that judges saved trials again keeps their plan in its status, and runs nothing.
    let judges_again = status.run.as_ref().is_some_and(|run| run.judged_run.is_some());
    let over = judges_again || matches!(status.phase, None | Some(Phase::Completed | Phase::Suspended));
    status.placement.is_some() && (!over || !condition::is_true(status, condition::CLEANED_UP))
}
