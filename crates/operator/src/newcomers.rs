//! Objects that have no first answer yet.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::ResourceExt;
use tokio::time::Instant;

/// A new object is answered within this time, or it has trouble of its own and must not hold up the others.
const NEW: Duration = Duration::from_secs(20);

/// As many are answered at once, the oldest first: a `Controller` takes its objects in no order, and of a thousand created
/// at once one waited 9.5 s while 90 % of the others had their answer in 2.1 s (`just bench-line 1000`).
const AT_ONCE: usize = 16;

/// The first status of a new object comes before anything else of those that hold nothing: of a thousand created at
/// once, 655 had none after two seconds (`just bench-line 1000`).
#[derive(Default)]
pub struct Newcomers(Mutex<HashMap<String, Instant>>);

impl Newcomers {
    /// A watch brought an object; whether it has a phase yet.
    pub fn observe(&self, object: &impl ResourceExt, has_phase: bool) {
        let Some(uid) = object.uid() else { return };
        if has_phase || object.meta().deletion_timestamp.is_some() {
            self.lock().remove(&uid);
        } else {
            self.lock().entry(uid).or_insert_with(Instant::now);
        }
    }

    /// The object has its first status, or is gone.
    pub fn forget(&self, object: &impl ResourceExt) {
        if let Some(uid) = object.uid() {
            self.lock().remove(&uid);
        }
    }

    /// Returns true if any object waits for a first answer.
    pub fn any(&self) -> bool {
        self.lock().values().any(|since| since.elapsed() < NEW)
    }

    /// Returns true if it is the turn of this object.
    pub fn is_next(&self, uid: &str) -> bool {
        let all = self.lock();
        let Some(own) = all.get(uid) else { return true };
        let older = all.values().filter(|since| *since < own && since.elapsed() < NEW);
        older.count() < AT_ONCE
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::core::ObjectMeta;

    use super::*;

    fn object(uid: &str) -> ConfigMap {
        ConfigMap {
            metadata: ObjectMeta {
                uid: Some(uid.to_owned()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_is_new_until_it_is_answered_or_gone_or_has_waited_for_long() {
        let newcomers = Newcomers::default();
        newcomers.observe(&object("a"), true);
        assert!(!newcomers.any(), "it has an answer");
        newcomers.observe(&object("a"), false);
        newcomers.observe(&object("b"), false);
        newcomers.observe(&object("a"), true);
        assert!(newcomers.any());
        newcomers.forget(&object("b"));
        assert!(!newcomers.any());
        newcomers.observe(&object("c"), false);
        tokio::time::advance(NEW).await;
        assert!(!newcomers.any(), "it has trouble of its own");
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_are_next() {
        let newcomers = Newcomers::default();
        for number in 0..=AT_ONCE {
            newcomers.observe(&object(&number.to_string()), false);
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        let last = AT_ONCE.to_string();
        assert!(newcomers.is_next("0") && !newcomers.is_next(&last));
        newcomers.forget(&object("3"));
        assert!(newcomers.is_next(&last));
        assert!(newcomers.is_next("unknown"));
        tokio::time::advance(NEW).await;
        newcomers.observe(&object("4"), false);
        assert!(newcomers.is_next("4"), "those that have trouble do not hold it up");
    }
}
