//! Changes of the cluster, each with the remedy for its failure.

use perfval_api::Reason;

/// A change with the explanation of its failure and its remedy.
#[derive(Debug, PartialEq, Eq)]
pub struct Change {
    /// Name in metrics, and action of the Event. A released name never changes.
    pub name: &'static str,
    /// Reason in conditions and Events.
    pub reason: Reason,
    /// Description of the failed call.
    pub why: &'static str,
    /// Remedy if the failure stays.
    pub remedy: &'static str,
}

pub(crate) const CREATE: Change = Change {
    name: "Create",
    reason: Reason::CallFailed,
    why: "an object of the run could not be created: a right, a quota or an admission policy is in the way",
    remedy: "do what the message says: give the operator the right (config/rbac), or lift the quota or policy",
};

pub(crate) const NAME_TAKEN: Change = Change {
    name: "NameTaken",
    reason: Reason::NameTaken,
    why: "an object of the name that the run needs belongs to somebody else, and is left alone",
    remedy: "remove or rename that object, then rerun",
};

pub(crate) const DELETE: Change = Change {
    name: "Delete",
    reason: Reason::CallFailed,
    why: "an object of the run could not be deleted, so its GPUs may stay taken",
    remedy: "give the operator the right (config/rbac), or see which policy forbids it; it is asked for again",
};

pub(crate) const FINALIZER: Change = Change {
    name: "Finalizer",
    reason: Reason::CallFailed,
    why: "the finalizer could not be put on or taken off the object: without it nothing is created, with it the object stays",
    remedy: "let the operator patch PerfValidations (config/rbac); see which webhook or policy refuses",
};

pub(crate) const SAVE_RESULTS: Change = Change {
    name: "SaveResults",
    reason: Reason::CallFailed,
    why: "the ConfigMap with the results could not be written: a right, a quota of ConfigMaps, or its size",
    remedy: "give the operator the right (config/rbac) or lift the quota; after 120 s the verdict stands without full results",
};

pub(crate) const RECORD_STATUS: Change = Change {
    name: "RecordStatus",
    reason: Reason::CallFailed,
    why: "the status could not be written: a right is missing, or the CRD in the cluster is older than the operator",
    remedy: "apply the CRD of the operator's version (config/crd), and let it patch perfvalidations/status (config/rbac)",
};

impl Change {
    /// Changes, for the documentation.
    pub const ALL: [&'static Self; 6] = [&CREATE, &NAME_TAKEN, &DELETE, &FINALIZER, &SAVE_RESULTS, &RECORD_STATUS];
}
