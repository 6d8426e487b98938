//! Events and conditions about the operator's own passes, and about objects that should not be there, with their remedies.

use perfval_api::Word;
use perfval_cluster::EventWord;
use perfval_run::strays::Stray;

const LATE: EventWord = EventWord {
    name: "LateObject",
    word: Word::TeardownUnconfirmed,
    why: "An earlier leader created an object after the removal was confirmed.",
    remedy: "none: the operator removes it; if it happens often, see why leaders change",
};

const ORPHAN: EventWord = EventWord {
    name: "Orphaned",
    word: Word::TeardownUnconfirmed,
    why: "Somebody removed the PerfValidation's finalizer, or a restore created objects without it.",
    remedy: "see the finalizers of what is left; without a deletionTimestamp, delete it",
};

/// The pass of an object panicked.
pub const PANICKED: EventWord = EventWord {
    name: "PassPanicked",
    word: Word::OperatorBug,
    why: "The operator panicked on this object. Other objects go on.",
    remedy: "report the bug (`kubectl perfval bundle`); an edit of the spec may avoid it; the operator tries again within 30 s",
};

/// The process died in passes of an object.
pub const SET_ASIDE: EventWord = EventWord {
    name: "SetAside",
    word: Word::OperatorBug,
    why: "The process died twice in a row on this object, for lack of memory or stack. The operator leaves it alone.",
    remedy: "report the bug (`kubectl perfval bundle`); edit the spec, set the annotation `perfvalidation.dev/rerun`, delete the object, or install another version of the operator",
};

/// Words about passes, for the documentation.
pub const PASSES: [&EventWord; 2] = [&PANICKED, &SET_ASIDE];
/// Words about strays, for the documentation.
pub const STRAYS: [&EventWord; 2] = [&LATE, &ORPHAN];

/// The word for each kind of stray.
pub(crate) fn stray_word(stray: Stray) -> &'static EventWord {
    match stray {
        Stray::Late => &LATE,
        Stray::Orphan => &ORPHAN,
    }
}
