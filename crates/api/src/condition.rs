//! Types of the conditions in status, and functions that read them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::PerfValidationStatus;

/// The verdict is Passed.
pub const PASSED: &str = "Passed";
/// Objects, pods and claims are confirmed gone.
pub const CLEANED_UP: &str = "CleanedUp";
/// The run is over, with any verdict. Its GPUs are free unless the user asked to keep them.
pub const COMPLETE: &str = "Complete";
/// kstatus: True if the run passed or was skipped and its objects are gone; on a policy, if it is followed.
pub const READY: &str = "Ready";
/// kstatus: the run is in progress.
pub const RECONCILING: &str = "Reconciling";
/// kstatus: the run is over with another verdict, or an obstacle keeps it from its end.
pub const STALLED: &str = "Stalled";
/// End of the message of an object that the operator has no room for.
pub const TRIED_AGAIN: &str = "the operator tries again within 5 minutes";
/// On a `NodePerformance`: the recorded run of the node passed.
pub const PERF_VALIDATED: &str = "PerfValidated";
/// On a `PerfValidationPolicy`: the comparisons of its nodes keep their promised share of wrong reports.
pub const COMPARISON_RELIABLE: &str = "ComparisonReliable";
/// On a `PerfBaseline`: it has a revision.
pub const LEARNED: &str = "Learned";
/// On a `PerfBaseline`: an approved revision is in use.
pub const APPROVED: &str = "Approved";
/// On a `PerfBaseline`: the nodes are now faster or slower than the approved revision.
pub const SHIFTED: &str = "Shifted";

/// Returns the condition of a type.
pub fn find<'a>(status: &'a PerfValidationStatus, kind: &str) -> Option<&'a Condition> {
    status.conditions.iter().find(|condition| condition.type_ == kind)
}

/// Returns true if the condition is present and true.
pub fn is_true(status: &PerfValidationStatus, kind: &str) -> bool {
    find(status, kind).is_some_and(|condition| condition.status == "True")
}

/// Returns true if the condition is present and false.
pub fn is_false(status: &PerfValidationStatus, kind: &str) -> bool {
    find(status, kind).is_some_and(|condition| condition.status == "False")
}
