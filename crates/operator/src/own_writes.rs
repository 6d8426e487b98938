//! Objects as the operator's last write left them, for as long as the watch is behind.

use std::sync::Arc;

use kube::ResourceExt;
use kube::api::ObjectMeta;
use perfval_api::PerfValidation;

use crate::facts_by_uid::FactsByUid;
use crate::stored::Stored;

/// A watch may be behind the operator's last write. A decision on an object from before it could repeat effects of a
/// phase that is over: nothing would be written then, so the lock on the resourceVersion would not notice. The
/// operator's writes are kept here, so no pass has to wait for their echo.
pub(crate) type OwnWrites = FactsByUid<OwnWrite>;

pub(crate) struct OwnWrite {
    /// Versions that the operator's writes replaced, which the watch may still bring.
    replaced: Vec<String>,
    newest: Arc<Stored>,
}

impl OwnWrites {
    /// Records a write of the operator that replaced a version by another one.
    pub fn add(&self, replaced: &PerfValidation, newest: PerfValidation) {
        let (Some(uid), Some(version)) = (replaced.uid(), replaced.resource_version()) else {
            return;
        };
        let newest = Arc::new(Stored::new(newest));
        let mut all = self.lock();
        let written = all.entry(uid).or_insert_with(|| OwnWrite {
            replaced: Vec::new(),
            newest: newest.clone(),
        });
        written.replaced.push(version);
        written.newest = newest;
    }

    /// Records a write of the operator that replaced only the metadata. If another client has changed the spec since, the new spec
    /// is unknown here, and the watch brings it.
    pub fn add_metadata(&self, replaced: &PerfValidation, metadata: ObjectMeta) {
        if metadata.generation == replaced.metadata.generation {
            let newest = PerfValidation {
                metadata,
                ..replaced.clone()
            };
            self.add(replaced, newest);
        }
    }

    /// The operator's write after the watched version; `None` if the watch has caught up.
    pub fn newer(&self, watched: &impl ResourceExt) -> Option<Arc<Stored>> {
        let (uid, version) = (watched.uid()?, watched.resource_version()?);
        let mut all = self.lock();
        let behind = all.get(&uid).filter(|written| written.replaced.contains(&version));
        let newest = behind.map(|written| written.newest.clone());
        if newest.is_none() {
            all.remove(&uid);
        }
        newest
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::test_object;

    fn version(uid: &str, version: &str) -> PerfValidation {
        test_object::object(&json!({"uid": uid, "resourceVersion": version}), &json!(null))
    }

    fn newer(writes: &OwnWrites, uid: &str, watched: &str) -> Option<String> {
        writes.newer(&version(uid, watched))?.resource_version()
    }

    #[test]
    fn our_own_write_counts_until_the_watch_brings_a_newer_version() {
        let writes = OwnWrites::default();
        writes.add(&version("a", "7"), version("a", "9"));
        writes.add(&version("a", "9"), version("a", "10"));
        for behind in ["7", "9"] {
            assert_eq!(
                newer(&writes, "a", behind).as_deref(),
                Some("10"),
                "both writes of one pass"
            );
        }
        assert_eq!(newer(&writes, "b", "7"), None, "another object");
        assert_eq!(newer(&writes, "a", "11"), None);
        assert!(writes.lock().is_empty(), "nothing is kept once the watch has caught up");
    }

    #[test]
    fn new_metadata_counts_only_with_the_spec_that_belongs_to_it() {
        let versioned = |version: &str, generation: i64| {
            let metadata = json!({"uid": "a", "resourceVersion": version, "generation": generation});
            test_object::object::<PerfValidation>(&metadata, &json!(null))
        };
        let writes = OwnWrites::default();
        writes.add_metadata(&versioned("7", 1), versioned("9", 2).metadata);
        assert_eq!(newer(&writes, "a", "7"), None, "another client changed the spec");
        writes.add_metadata(&versioned("7", 1), versioned("9", 1).metadata);
        assert_eq!(newer(&writes, "a", "7").as_deref(), Some("9"));
    }
}
