//! The words of Events on objects that should not be there, and what to do about each.

use perfval_run::strays::Stray;

/// A word, and what there is to know of it.
pub struct StrayWord {
    /// The Event's reason. Never reworded once released.
    pub reason: &'static str,
    /// What is seen.
    pub seen: &'static str,
    /// How it came.
    pub why: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

const LATE: StrayWord = StrayWord {
    reason: "LateObject",
    seen: "a Warning event on a Job, Service, claim template or deployment, which is removed at once",
    why: "a call of an earlier leader was carried out after its run had confirmed that nothing was left",
    remedy: "nothing: it is removed, and counted in the metrics; if it comes again and again, see why leaders change",
};

const ORPHAN: StrayWord = StrayWord {
    reason: "Orphaned",
    seen: "a Warning event on a Job, Service, claim template or deployment, which stays",
    why: "its object was removed without its finalizer, so nobody looks after what its runs created, and something else holds it",
    remedy: "see the finalizers of what is left; delete it, or let the operator do so: `PERFVAL_REMOVE_ORPHANS=true` (chart: `removeOrphans`)",
};

impl StrayWord {
    /// All words, for the documentation.
    pub const ALL: [&'static Self; 2] = [&LATE, &ORPHAN];

    /// The word for each kind of stray.
    pub fn of(stray: Stray) -> &'static Self {
        match stray {
            Stray::Late => &LATE,
            Stray::Orphan => &ORPHAN,
        }
    }
}
