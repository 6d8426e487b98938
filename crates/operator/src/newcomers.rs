//! Objects that have no first answer yet.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use kube::{Resource as _, ResourceExt};
use parking_lot::{Mutex, MutexGuard};
use perfval_api::Phase;
use tokio::time::Instant;

use crate::stored::Stored;

/// A new object is answered within this time, or it has trouble of its own and must not hold up the others.
const NEW: Duration = Duration::from_secs(20);

/// As many are answered at once, the oldest first: a `Controller` takes its objects in no order, and of a thousand created
/// at once one waited 9.5 s while 90 % of the others had their answer in 2.1 s (`just bench-line 1000`). Each comes back for its
/// turn within [100 ms](NEW_PAUSES), so with 16 at once there were 380 answers in a second, and half of the cores had nothing to do.
const AT_ONCE: usize = 64;

/// Shortest and longest pause of an object that makes way for new ones. With one second for all, thousands that wait come back
/// each second.
const PENDING_PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];
/// Shortest and longest pause of a new object whose turn has not come.
const NEW_PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];
/// Pause for each older object: half the time that its answer takes. With 100 ms for all, the start of 5,000 objects took 41 s of
/// CPU (`just bench-crowd`).
const PAUSE_PER_OLDER: Duration = Duration::from_micros(500);

/// The first status of a new object comes before anything else of those that hold nothing: of a thousand created at
/// once, 655 had none after two seconds (`just bench-line 1000`).
#[derive(Default)]
pub struct Newcomers(Mutex<WaitingObjects>);

/// Objects without an answer, in the order of their arrival.
#[derive(Default)]
struct WaitingObjects {
    /// Place in the order of arrival of each object without an answer, by uid.
    places: HashMap<String, u64>,
    /// Time of arrival of those that are new, by place.
    new: BTreeMap<u64, Instant>,
    next: u64,
}

impl WaitingObjects {
    /// Drops those that have waited for so long that they have trouble of their own.
    fn drop_overdue(&mut self) {
        while self.new.first_entry().is_some_and(|first| first.get().elapsed() >= NEW) {
            self.new.pop_first();
        }
    }

    fn forget(&mut self, uid: &str) {
        if let Some(place) = self.places.remove(uid) {
            self.new.remove(&place);
        }
    }
}

impl Newcomers {
    /// A watch brought an object; whether it has a phase yet.
    pub fn observe(&self, object: &impl ResourceExt, has_phase: bool) {
        let Some(uid) = object.uid() else { return };
        let mut all = self.lock();
        if has_phase || object.meta().deletion_timestamp.is_some() {
            all.forget(&uid);
        } else if !all.places.contains_key(&uid) {
            let place = all.next;
            all.next += 1;
            all.places.insert(uid, place);
            all.new.insert(place, Instant::now());
        }
    }

    /// The object has its first status, or is gone.
    pub fn forget(&self, object: &impl ResourceExt) {
        if let Some(uid) = object.uid() {
            self.lock().forget(&uid);
        }
    }

    /// Forgets objects that are not among these, after a new list.
    pub fn retain(&self, uids: &HashSet<String>) {
        let mut all = self.lock();
        let WaitingObjects { places, new, .. } = &mut *all;
        places.retain(|uid, place| {
            let stays = uids.contains(uid);
            if !stays {
                new.remove(place);
            }
            stays
        });
    }

    /// Time after which an object may have its pass; `None`: now. Objects that hold nothing make way for new ones.
    pub fn pause(&self, object: &Stored) -> Option<Duration> {
        let all = self.lock();
        let (oldest, _) = all.new.first_key_value()?;
        let place = object.meta().uid.as_ref().and_then(|uid| all.places.get(uid));
        let (older, [shortest, longest]) = match place {
            Some(place) => {
                let is_next = all.new.range(..place).take(AT_ONCE).count() < AT_ONCE;
                (place.saturating_sub(*oldest), (!is_next).then_some(NEW_PAUSES)?)
            }
            None if object.is_answered() && object.phase() == Some(Phase::Pending) => {
                (all.next - oldest, PENDING_PAUSES)
            }
            None => return None,
        };
        let pause = PAUSE_PER_OLDER.saturating_mul(u32::try_from(older).unwrap_or(u32::MAX));
        Some(pause.clamp(shortest, longest))
    }

    fn lock(&self) -> MutexGuard<'_, WaitingObjects> {
        let mut all = self.0.lock();
        all.drop_overdue();
        all
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::test_object;

    fn object(uid: &str) -> Stored {
        in_phase(uid, None)
    }

    fn in_phase(uid: &str, phase: Option<&str>) -> Stored {
        let status = phase.map(|phase| json!({"phase": phase, "observedGeneration": 1}));
        test_object::object(&json!({"uid": uid}), &json!(status))
    }

    fn any_is_new(newcomers: &Newcomers) -> bool {
        !newcomers.lock().new.is_empty()
    }

    #[tokio::test(start_paused = true)]
    async fn one_is_new_until_it_is_answered_or_gone_or_has_waited_for_long() {
        let newcomers = Newcomers::default();
        newcomers.observe(&object("a"), true);
        assert!(!any_is_new(&newcomers), "it has an answer");
        newcomers.observe(&object("a"), false);
        newcomers.observe(&object("b"), false);
        newcomers.observe(&object("a"), true);
        assert!(any_is_new(&newcomers));
        newcomers.forget(&object("b"));
        assert!(!any_is_new(&newcomers));
        newcomers.observe(&object("c"), false);
        tokio::time::advance(NEW).await;
        assert!(!any_is_new(&newcomers), "it has trouble of its own");
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_list_drops_objects_that_it_lacks() {
        let newcomers = Newcomers::default();
        newcomers.observe(&object("a"), false);
        newcomers.observe(&object("b"), false);
        newcomers.retain(&["b".to_owned()].into());
        assert!(any_is_new(&newcomers));
        assert_eq!(newcomers.lock().places.len(), 1);
        newcomers.retain(&HashSet::new());
        assert!(!any_is_new(&newcomers));
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_are_next() {
        let newcomers = Newcomers::default();
        for number in 0..=AT_ONCE {
            newcomers.observe(&object(&number.to_string()), false);
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        let last = AT_ONCE.to_string();
        assert_eq!(
            (newcomers.pause(&object("0")), newcomers.pause(&object(&last))),
            (None, Some(NEW_PAUSES[0]))
        );
        newcomers.forget(&object("3"));
        assert_eq!(newcomers.pause(&object(&last)), None);
        assert_eq!(newcomers.pause(&object("unknown")), None);
        assert_eq!(newcomers.pause(&in_phase("active", Some("Deploying"))), None);
        assert_eq!(
            newcomers.pause(&in_phase("idle", Some("Pending"))),
            Some(PENDING_PAUSES[0])
        );
        tokio::time::advance(NEW).await;
        newcomers.observe(&object("4"), false);
        assert_eq!(
            newcomers.pause(&object("4")),
            None,
            "those that have trouble do not hold it up"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_of_thousands_come_back_seldom() {
        let newcomers = Newcomers::default();
        let all: Vec<Stored> = (0..2_000).map(|number| object(&number.to_string())).collect();
        for object in &all {
            newcomers.observe(object, false);
        }
        // One answer in a millisecond.
        let mut waited = vec![0; all.len()];
        let mut due = vec![0_u128; all.len()];
        let mut answered = vec![false; all.len()];
        for now in 0..20_000 {
            if answered.iter().all(|answered| *answered) {
                break;
            }
            let asks: Vec<usize> = (0..all.len())
                .filter(|index| !answered[*index] && due[*index] <= now)
                .collect();
            let mut answers = 1;
            for index in asks {
                match newcomers.pause(&all[index]) {
                    Some(pause) => {
                        waited[index] += 1;
                        due[index] = now + pause.as_millis();
                    }
                    None if answers > 0 => {
                        answers -= 1;
                        answered[index] = true;
                        newcomers.forget(&all[index]);
                    }
                    None => {}
                }
            }
        }
        assert!(answered.iter().all(|answered| *answered));
        assert!(waited.iter().all(|times| *times < 20), "{:?}", waited.iter().max());
    }
}
