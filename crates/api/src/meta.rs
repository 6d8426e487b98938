//! Names in metadata on which other software may rely.

/// API group of the resources, and the domain of its labels and annotations.
pub const GROUP: &str = "perfvalidation.dev";
/// Annotation: `"true"` keeps every object of a run for a post-mortem while its deployment exists. Its removal starts
/// the cleanup.
pub const NO_CLEANUP: &str = "perfvalidation.dev/no-cleanup";
/// Annotation: a new token starts a new run.
pub const RERUN: &str = "perfvalidation.dev/rerun";
/// Finalizer on the resource. The operator removes it once all objects of a run are confirmed gone.
pub const FINALIZER: &str = "perfvalidation.dev/cleanup";
/// Field manager of all objects that the operator applies, and reporting controller of its events.
pub const FIELD_MANAGER: &str = "perfvalidation-operator";
/// Label on all objects of a run: the name of its `PerfValidation`.
pub const NAME_LABEL: &str = "perfvalidation.dev/name";
/// Label on all objects of a run: the id of the run (8 hex digits).
pub const RUN_LABEL: &str = "perfvalidation.dev/run";
/// Label on each `PerfValidation` of a policy: name of the policy.
pub const POLICY_LABEL: &str = "perfvalidation.dev/policy";
/// Label on each `PerfValidation` of a policy: hostname of the node that it validates.
pub const NODE_LABEL: &str = "perfvalidation.dev/node";
/// Annotation on each `PerfValidation` of a policy: number of the node's preceding validations in a row without a measurement.
pub const ERRORS_BEFORE: &str = "perfvalidation.dev/errors-before";
/// Annotation on each `PerfValidation` of a policy: reason for which its node was due, such as `Stale`.
pub const DUE_REASON: &str = "perfvalidation.dev/due-reason";
