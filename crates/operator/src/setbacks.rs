//! Rest of an object after passes that failed.

use std::time::Duration;

use tokio::time::Instant;

use crate::facts_by_uid::FactsByUid;

/// After the first: what another client wrote is there within milliseconds.
const FIRST: Duration = Duration::from_millis(200);
/// After many: a finalizer patch that an admission policy refuses each time was sent five times a second.
const LONGEST: Duration = Duration::from_secs(30);

/// Setbacks in a row, by uid of the object.
pub(crate) type Setbacks = FactsByUid<Row>;

pub(crate) struct Row {
    setbacks: u32,
    rests_until: Instant,
}

impl Setbacks {
    /// Counts a setback. Returns the pause after it.
    pub fn pause(&self, uid: &str) -> Duration {
        let now = Instant::now();
        let mut all = self.lock();
        let row = all.entry(uid.to_owned()).or_insert(Row {
            setbacks: 0,
            rests_until: now,
        });
        let pause = FIRST.saturating_mul(1 << row.setbacks.min(16)).min(LONGEST);
        row.setbacks += 1;
        row.rests_until = now + pause;
        pause
    }

    /// Time for which an object still rests; `None` if it does not.
    pub fn rest(&self, uid: &str) -> Option<Duration> {
        let rests_until = self.lock().get(uid)?.rests_until;
        let left = rests_until.saturating_duration_since(Instant::now());
        Some(left).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_object_rests_after_a_setback_until_its_pause_is_over() {
        let setbacks = Setbacks::default();
        assert_eq!(setbacks.rest("a"), None);
        let pause = setbacks.pause("a");
        assert_eq!((setbacks.rest("a"), setbacks.rest("b")), (Some(pause), None));
        tokio::time::advance(pause).await;
        assert_eq!(setbacks.rest("a"), None);
        setbacks.pause("a");
        setbacks.forget("a");
        assert_eq!(setbacks.rest("a"), None);
    }

    #[test]
    fn a_new_list_ends_the_setbacks_of_objects_that_it_lacks() {
        let setbacks = Setbacks::default();
        let pause = setbacks.pause("a").min(setbacks.pause("b"));
        setbacks.retain(&["a".to_owned()].into());
        assert!(setbacks.pause("a") > pause);
        assert_eq!(setbacks.pause("b"), FIRST);
    }

    #[test]
    fn pauses_grow_until_a_pass_succeeds() {
        let setbacks = Setbacks::default();
        let pauses: Vec<u128> = (0..10).map(|_| setbacks.pause("a").as_millis()).collect();
        assert_eq!(
            pauses,
            [200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]
        );
        assert_eq!(setbacks.pause("b"), FIRST, "another object");
        setbacks.forget("a");
        assert_eq!(setbacks.pause("a"), FIRST);
        (0..100).for_each(|_| assert!(setbacks.pause("a") <= LONGEST));
    }
}
