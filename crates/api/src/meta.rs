//! Names in metadata that other software may rely on.

/// API group of the resource, and the domain of its labels and annotations.
pub const GROUP: &str = "perfvalidation.dev";
/// Annotation: `"true"` keeps every object of a run for a post-mortem, as long as its deployment is there; removing it later
/// cleans up.
pub const NO_CLEANUP: &str = "perfvalidation.dev/no-cleanup";
/// Annotation: any token not handled yet starts a new run.
pub const RERUN: &str = "perfvalidation.dev/rerun";
/// Finalizer on the resource: the operator takes it off once everything a run created is confirmed gone.
pub const FINALIZER: &str = "perfvalidation.dev/cleanup";
/// Field manager of everything the operator applies, and reporting controller of its events.
pub const FIELD_MANAGER: &str = "perfvalidation-operator";
/// Label on everything a run creates: the name of its `PerfValidation`.
pub const NAME_LABEL: &str = "perfvalidation.dev/name";
/// Label on everything a run creates: the id of the run (8 hex digits).
pub const RUN_LABEL: &str = "perfvalidation.dev/run";
