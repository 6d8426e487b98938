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
    why: "The operator cannot create an object of the run.",
    remedy: "allow the namespace (`kubectl perfval doctor`), or lift the quota or policy in the message",
};

pub(crate) const NAME_TAKEN: Change = Change {
    name: "NameTaken",
    reason: Reason::NameTaken,
    why: "An object with the name that the run needs has another owner.",
    remedy: "remove or rename that object, then run again",
};

pub(crate) const DELETE: Change = Change {
    name: "Delete",
    reason: Reason::CallFailed,
    why: "The operator cannot delete an object of the run, so its GPUs may stay taken.",
    remedy: "allow the namespace again (`kubectl perfval doctor`), or see which policy forbids it",
};

pub(crate) const FINALIZER: Change = Change {
    name: "Finalizer",
    reason: Reason::CallFailed,
    why: "The operator cannot set or remove the finalizer. Without it nothing is created, with it the object stays.",
    remedy: "let the operator patch PerfValidations (config/rbac); see which webhook or policy refuses",
};

pub(crate) const SAVE_RESULTS: Change = Change {
    name: "SaveResults",
    reason: Reason::CallFailed,
    why: "The operator cannot write the ConfigMap with the results: a right, a quota, or its size.",
    remedy: "allow the namespace (`kubectl perfval doctor`), or lift the quota; after 120 s the verdict stands without full results",
};

pub(crate) const RECORD_STATUS: Change = Change {
    name: "RecordStatus",
    reason: Reason::CallFailed,
    why: "The operator cannot write the status: a right is missing, or the CRD is older than the operator.",
    remedy: "apply the CRD of the operator's version (config/crd), and let it patch perfvalidations/status (config/rbac)",
};

impl Change {
    /// Changes, for the documentation.
    pub const ALL: [&'static Self; 6] = [&CREATE, &NAME_TAKEN, &DELETE, &FINALIZER, &SAVE_RESULTS, &RECORD_STATUS];
}
