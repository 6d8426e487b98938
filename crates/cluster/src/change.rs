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
    why: "An object with the name that the run needs is in the way.",
    remedy: "do what the message shows",
};

pub(crate) const DELETE: Change = Change {
    name: "Delete",
    reason: Reason::CallFailed,
    why: "The operator cannot delete an object of the run, so its GPUs may stay taken.",
    remedy: "allow the namespace again (`kubectl perfval doctor`), or lift the policy",
};

pub(crate) const FINALIZER: Change = Change {
    name: "Finalizer",
    reason: Reason::CallFailed,
    why: "The operator cannot set or remove the finalizer.",
    remedy: "let the operator patch PerfValidations (config/rbac), or lift the webhook or policy",
};

pub(crate) const SAVE_RESULTS: Change = Change {
    name: "SaveResults",
    reason: Reason::CallFailed,
    why: "The operator cannot write the results ConfigMap: a right, a quota, or its size.",
    remedy: "allow the namespace (`kubectl perfval doctor`), or lift the quota; after 120 s the verdict stands without full results",
};

pub(crate) const RECORD_STATUS: Change = Change {
    name: "RecordStatus",
    reason: Reason::CallFailed,
    why: "The operator cannot write the status: a right, or an old CRD.",
    remedy: "apply CRD (config/crd) and rights (config/rbac) of the operator's version",
};

impl Change {
    /// Changes, for the documentation.
    pub const ALL: [&'static Self; 6] = [&CREATE, &NAME_TAKEN, &DELETE, &FINALIZER, &SAVE_RESULTS, &RECORD_STATUS];
}
