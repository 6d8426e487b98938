//! Types of the conditions in status, and how to read one.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::PerfValidationStatus;

/// The verdict is Passed.
pub const PASSED: &str = "Passed";
/// Objects, pods and claims are confirmed gone.
pub const CLEANED_UP: &str = "CleanedUp";
/// The run is over, with any verdict, and its GPUs are back unless the user asked to keep them.
pub const COMPLETE: &str = "Complete";
/// kstatus: over and good, and nothing is left.
pub const READY: &str = "Ready";
/// kstatus: under way.
pub const RECONCILING: &str = "Reconciling";
/// kstatus: over and not good, or kept from its end.
pub const STALLED: &str = "Stalled";

/// The condition of a type.
pub fn find<'a>(status: &'a PerfValidationStatus, name: &str) -> Option<&'a Condition> {
    status.conditions.iter().find(|condition| condition.type_ == name)
}

/// Whether a condition is there and true.
pub fn is_true(status: &PerfValidationStatus, name: &str) -> bool {
    find(status, name).is_some_and(|condition| condition.status == "True")
}

/// Whether a condition is there and false.
pub fn is_false(status: &PerfValidationStatus, name: &str) -> bool {
    find(status, name).is_some_and(|condition| condition.status == "False")
}
