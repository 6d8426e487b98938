//! Objects that nobody has answered yet.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::ResourceExt;
use tokio::time::Instant;

/// A new object is answered within this time, or it has trouble of its own and must not hold up the others.
const NEW: Duration = Duration::from_secs(20);

/// The first status of a new object comes before anything else of those that hold nothing: of a thousand created at
/// once, 655 had none after two seconds (`just bench-line 1000`, issue 12).
#[derive(Default)]
pub struct Newcomers(Mutex<HashMap<String, Instant>>);

impl Newcomers {
    /// A watch brought an object; whether it has a phase yet.
    pub fn saw(&self, object: &impl ResourceExt, has_phase: bool) {
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

    /// Whether anybody waits for a first answer.
    pub fn any(&self) -> bool {
        self.lock().values().any(|since| since.elapsed() < NEW)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use kube::api::PartialObjectMeta;
    use kube::core::ObjectMeta;
    use perfval_api::PerfValidation;

    use super::*;

    fn object(uid: &str) -> PartialObjectMeta<PerfValidation> {
        PartialObjectMeta {
            metadata: ObjectMeta {
                uid: Some(uid.to_owned()),
                ..ObjectMeta::default()
            },
            ..PartialObjectMeta::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_is_new_until_it_is_answered_or_gone_or_has_waited_for_long() {
        let newcomers = Newcomers::default();
        newcomers.saw(&object("a"), true);
        assert!(!newcomers.any(), "it has an answer");
        newcomers.saw(&object("a"), false);
        newcomers.saw(&object("b"), false);
        newcomers.saw(&object("a"), true);
        assert!(newcomers.any());
        newcomers.forget(&object("b"));
        assert!(!newcomers.any());
        newcomers.saw(&object("c"), false);
        tokio::time::advance(NEW).await;
        assert!(!newcomers.any(), "it has trouble of its own");
    }
}
