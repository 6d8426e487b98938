//! The last look of this process at each run that is under way.

use chrono::{DateTime, Utc};
use perfval_run::{Observed, Run};
use perfval_sizing::Seen;

use crate::facts_by_uid::FactsByUid;

/// Times of the last looks, by uid of the object. They are in no status: each would be a write.
pub(crate) type Looks = FactsByUid<DateTime<Utc>>;

impl Looks {
    /// Time of the last look at a run, if this process made one.
    pub fn last(&self, run: &Run<'_>) -> Option<DateTime<Utc>> {
        self.lock().get(run.uid()).copied()
    }

    /// Records a look whose status is recorded. A look that could not read its part of the cluster does not count.
    pub fn record(&self, run: &Run<'_>, seen: &Observed) {
        let is_unknown = is_unread(&seen.pods)
            || is_unread(&seen.claims)
            || is_unread(&seen.deployment)
            || is_unread(&seen.trial)
            || is_unread(&seen.children);
        let is_over = run.phase().is_none_or(perfval_api::Phase::is_over);
        let mut looks = self.lock();
        let Some(began) = seen.began.filter(|_| !is_over) else {
            looks.remove(run.uid());
            return;
        };
        if !is_unknown {
            looks.insert(run.uid().to_owned(), began);
        }
    }
}

fn is_unread<T>(seen: &Seen<T>) -> bool {
    matches!(seen, Seen::Unknown(_))
}
