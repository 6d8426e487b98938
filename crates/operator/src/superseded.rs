//! Versions of objects that our own writes made old.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::ResourceExt;

/// A watch may be behind our own last write. A decision on an object from before it could repeat effects of a phase
/// that is over: nothing would be written then, so the lock on the resourceVersion would not notice.
#[derive(Default)]
pub struct Superseded(Mutex<HashMap<String, Vec<String>>>);

impl Superseded {
    /// This version was just replaced.
    pub fn add(&self, object: &impl ResourceExt) {
        if let (Some(uid), Some(version)) = (object.uid(), object.resource_version()) {
            self.lock().entry(uid).or_default().push(version);
        }
    }

    /// Whether this version is known to be old. If not, the watch has caught up.
    pub fn has(&self, object: &impl ResourceExt) -> bool {
        let (Some(uid), Some(version)) = (object.uid(), object.resource_version()) else {
            return false;
        };
        let mut superseded = self.lock();
        let behind = superseded.get(&uid).is_some_and(|versions| versions.contains(&version));
        if !behind {
            superseded.remove(&uid);
        }
        behind
    }

    /// The object is gone.
    pub fn forget(&self, object: &impl ResourceExt) {
        if let Some(uid) = object.uid() {
            self.lock().remove(&uid);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use kube::api::ObjectMeta;

    use super::*;

    fn version(uid: &str, version: &str) -> Pod {
        let metadata = ObjectMeta {
            uid: Some(uid.to_owned()),
            resource_version: Some(version.to_owned()),
            ..ObjectMeta::default()
        };
        Pod {
            metadata,
            ..Pod::default()
        }
    }

    #[test]
    fn a_version_is_old_until_the_watch_brings_a_newer_one() {
        let superseded = Superseded::default();
        superseded.add(&version("a", "7"));
        superseded.add(&version("a", "9"));
        assert!(
            superseded.has(&version("a", "7")) && superseded.has(&version("a", "9")),
            "both writes of one pass"
        );
        assert!(!superseded.has(&version("b", "7")), "another object");
        assert!(!superseded.has(&version("a", "11")));
        assert!(
            superseded.lock().is_empty(),
            "nothing is kept once the watch has caught up"
        );
    }

    #[test]
    fn an_object_that_is_gone_leaves_nothing() {
        let superseded = Superseded::default();
        superseded.add(&version("a", "7"));
        superseded.forget(&version("a", "8"));
        assert!(superseded.lock().is_empty());
    }
}
