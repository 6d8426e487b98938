//! Room in memory for the results of trials: all passes together hold no more than one run may have.

use perfval_run::Needs;
use perfval_run::observed::Need;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The most trials of a run. Twenty of the usual length take some 6 MiB (`run/tests/memory.rs`), longer ones more; a
/// namespace's sixteen passes share the container's 256 MiB.
const TRIALS: u32 = 20;

/// The free part of it.
pub struct Room(Semaphore);

impl Default for Room {
    fn default() -> Self {
        Self(Semaphore::new(TRIALS as usize))
    }
}

impl Room {
    /// Room for the reads of a pass, until it is dropped; `None` while other passes have it. There is no wait here: a
    /// pass that waited would keep others from their turn.
    pub fn take(&self, needs: &Needs) -> Option<SemaphorePermit<'_>> {
        self.0.try_acquire_many(trials(needs)).ok()
    }
}

/// Number of trials that a pass reads at once.
fn trials(needs: &Needs) -> u32 {
    if needs.parts.contains(&Need::SavedRun) {
        return TRIALS;
    }
    let of_logs = if needs.parts.contains(&Need::Results) {
        u32::try_from(needs.finished_trials.len()).unwrap_or(TRIALS)
    } else {
        0
    };
    of_logs.min(TRIALS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results_of(trials: i64) -> Needs {
        Needs {
            parts: [Need::Results].into(),
            finished_trials: (1..=trials).collect(),
            ..Needs::default()
        }
    }

    #[test]
    fn as_many_trials_are_read_at_once_as_one_run_may_have() {
        let room = Room::default();
        let whole = room.take(&results_of(99));
        assert!(whole.is_some() && room.take(&results_of(1)).is_none());
        assert!(
            room.take(&Needs::default()).is_some(),
            "whoever reads none has its turn"
        );
        drop(whole);
        let several: Vec<_> = (0..10).map_while(|_| room.take(&results_of(3))).collect();
        assert_eq!(several.len(), 6);
        let saved = Needs {
            parts: [Need::SavedRun].into(),
            ..Needs::default()
        };
        assert!(room.take(&saved).is_none());
        drop(several);
        assert!(room.take(&saved).is_some());
    }
}
