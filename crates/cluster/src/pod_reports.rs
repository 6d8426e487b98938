//! Reports on the pods of a run that are late or gone: Events and logs.

use std::collections::BTreeSet;

use perfval_run::observed::{PodEvent, PodLog};
use perfval_sizing::Seen;

/// Reports on the pods of a run that are late or gone.
#[derive(Clone, Default)]
pub(crate) struct PodReports {
    pub(crate) subjects: Subjects,
    pub(crate) events: Seen<Vec<PodEvent>>,
    pub(crate) endings: Seen<Vec<PodEvent>>,
    pub(crate) preemptions: Seen<Vec<PodEvent>>,
    pub(crate) refusals: Seen<Vec<PodEvent>>,
    pub(crate) logs: Vec<PodLog>,
}

/// Pods that reports were read for.
#[derive(Clone, Default)]
pub(crate) struct Subjects {
    /// Uids of pods that were late and not prepared.
    pub(crate) unprepared: BTreeSet<String>,
    /// Uids of pods that had restarted.
    pub(crate) restarted: BTreeSet<String>,
    /// True if a pod was missing, or had a log that was wanted.
    pub(crate) need_more: bool,
}

impl Subjects {
    /// Returns true if reports on these pods serve for others, too.
    pub(crate) fn include(&self, others: &Self) -> bool {
        !others.need_more
            && others.unprepared.is_subset(&self.unprepared)
            && others.restarted.is_subset(&self.restarted)
    }
}

/// Bytes of the Events that are kept for the next pass.
const KEPT: usize = 16 << 10;
/// Bytes of an Event besides its message, about.
const EVENT: usize = 256;

impl PodReports {
    /// Returns true if the next pass may use them, too: everything was read, no pod was missing, no log was wanted, and they are
    /// small.
    pub(crate) fn may_be_kept(&self) -> bool {
        let lists = [&self.events, &self.endings, &self.preemptions, &self.refusals];
        let is_lost = lists.iter().any(|events| matches!(events, Seen::Unknown(_)));
        let events = lists.iter().filter_map(|events| events.present()).flatten();
        let bytes: usize = events.map(|event| event.message.len() + EVENT).sum();
        !is_lost && !self.subjects.need_more && bytes <= KEPT
    }
}
