//! Changes of the cluster, each with the remedy for its failure.

use perfval_api::Word;
use perfval_run::Event;

/// An event with its word and its remedy, such as a change that failed.
#[derive(Debug, PartialEq, Eq)]
pub struct EventWord {
    /// Name in metrics, and action of the Event. A released name never changes.
    pub name: &'static str,
    /// Word in conditions and Events.
    pub word: Word,
    /// Explanation of the event.
    pub why: &'static str,
    /// Remedy, for a failure that stays.
    pub remedy: &'static str,
}

impl EventWord {
    /// Warning Event with this text.
    pub fn warning(&self, note: impl Into<String>) -> Event {
        Event {
            warning: true,
            reason: self.word,
            action: self.name.into(),
            note: note.into(),
        }
    }
}

pub(crate) const CREATE: EventWord = EventWord {
    name: "Create",
    word: Word::CallFailed,
    why: "The operator cannot create an object of the run.",
    remedy: "allow the namespace (`kubectl perfval doctor`), or lift the quota or policy in the message",
};

pub(crate) const NAME_TAKEN: EventWord = EventWord {
    name: "NameTaken",
    word: Word::Refused,
    why: "An object with the name that the run needs is in the way.",
    remedy: "do what the message shows",
};

pub(crate) const DELETE: EventWord = EventWord {
    name: "Delete",
    word: Word::CallFailed,
    why: "The operator cannot delete an object of the run, so its GPUs may stay taken.",
    remedy: "allow the namespace again (`kubectl perfval doctor`), or lift the policy",
};

pub(crate) const FINALIZER: EventWord = EventWord {
    name: "Finalizer",
    word: Word::CallFailed,
    why: "The operator cannot set or remove the finalizer.",
    remedy: "let the operator patch PerfValidations (config/rbac), or lift the webhook or policy",
};

pub(crate) const SAVE_RESULTS: EventWord = EventWord {
    name: "SaveResults",
    word: Word::CallFailed,
    why: "The operator cannot write the results ConfigMap: a right, a quota, or its size.",
    remedy: "allow the namespace (`kubectl perfval doctor`), or lift the quota; after 120 s the verdict stands without full results",
};

pub(crate) const RECORD_STATUS: EventWord = EventWord {
    name: "RecordStatus",
    word: Word::CallFailed,
    why: "The operator cannot write the status: a right, or an old CRD.",
    remedy: "apply CRD (config/crd) and rights (config/rbac) of the operator's version",
};

/// Changes, for the documentation.
pub const CHANGES: [&EventWord; 6] = [&CREATE, &NAME_TAKEN, &DELETE, &FINALIZER, &SAVE_RESULTS, &RECORD_STATUS];
