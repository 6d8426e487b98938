//! Words for failed changes in conditions, events and metrics, each with its remedy.

/// A word with its explanation and its remedy.
#[derive(Debug, PartialEq, Eq)]
pub struct Word {
    /// The word. Never reworded once released.
    pub reason: &'static str,
    /// Description of the failed call.
    pub why: &'static str,
    /// Remedy if the failure stays.
    pub remedy: &'static str,
}

pub(crate) const CREATE: Word = Word {
    reason: "Create",
    why: "an object of the run could not be created: a right, a quota or an admission policy is in the way",
    remedy: "do what the message says: give the operator the right (config/rbac), or lift the quota or policy",
};

pub(crate) const NAME_TAKEN: Word = Word {
    reason: "NameTaken",
    why: "an object of the name that the run needs belongs to somebody else, and is left alone",
    remedy: "remove or rename that object, then rerun",
};

pub(crate) const DELETE: Word = Word {
    reason: "Delete",
    why: "an object of the run could not be deleted, so its GPUs may stay taken",
    remedy: "give the operator the right (config/rbac), or see which policy forbids it; it is asked for again",
};

pub(crate) const FINALIZER: Word = Word {
    reason: "Finalizer",
    why: "the finalizer could not be put on or taken off the object: without it nothing is created, with it the object stays",
    remedy: "let the operator patch PerfValidations (config/rbac); see which webhook or policy refuses",
};

pub(crate) const SAVE_RESULTS: Word = Word {
    reason: "SaveResults",
    why: "the ConfigMap with the results could not be written: a right, a quota of ConfigMaps, or its size",
    remedy: "give the operator the right (config/rbac) or lift the quota; after 120 s the verdict stands without full results",
};

pub(crate) const RECORD_STATUS: Word = Word {
    reason: "RecordStatus",
    why: "the status could not be written: a right is missing, or the CRD in the cluster is older than the operator",
    remedy: "apply the CRD of the operator's version (config/crd), and let it patch perfvalidations/status (config/rbac)",
};

impl Word {
    /// All words, for the documentation.
    pub const ALL: [&'static Self; 6] = [&CREATE, &NAME_TAKEN, &DELETE, &FINALIZER, &SAVE_RESULTS, &RECORD_STATUS];
}
