//! `NodePerformance`s that Kubernetes deleted with their nodes. A node that is set up again, or another one, may have their GPUs.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt as _;
use perfval_api::fleet::NodePerformance;
use tokio::time::Instant;

/// Time for which a deleted object is kept: a repair takes days. A new leader starts without them.
const KEPT: Duration = Duration::from_hours(24 * 14);
/// Most deleted objects. Each has up to 6 KiB.
const MOST: usize = 1000;

/// Deleted objects with the time at which they were missed.
#[derive(Default)]
pub(super) struct Former {
    /// Objects of the last look.
    present: Vec<Arc<NodePerformance>>,
    deleted: HashMap<String, (Instant, Arc<NodePerformance>)>,
}

impl Former {
    /// Compares the objects with those of the last look.
    pub(super) fn update(&mut self, present: &[Arc<NodePerformance>], now: Instant) {
        let uids: HashSet<String> = present.iter().filter_map(|object| object.uid()).collect();
        for earlier in std::mem::replace(&mut self.present, present.to_vec()) {
            if let Some(uid) = earlier.uid().filter(|uid| !uids.contains(uid)) {
                self.deleted.insert(uid, (now, earlier));
            }
        }
        self.deleted
            .retain(|uid, (at, _)| !uids.contains(uid) && now.duration_since(*at) < KEPT);
        while self.deleted.len() > MOST {
            let oldest = self.deleted.iter().min_by_key(|(_, (at, _))| *at);
            let Some(uid) = oldest.map(|(uid, _)| uid.clone()) else {
                break;
            };
            self.deleted.remove(&uid);
        }
    }

    /// Adds a written object, which may be deleted before the next look.
    pub(super) fn add(&mut self, written: &NodePerformance) {
        let uid = &written.metadata.uid;
        self.present.retain(|object| object.metadata.uid != *uid);
        self.present.push(Arc::new(written.clone()));
    }

    /// Deleted objects.
    pub(super) fn list(&self) -> impl Iterator<Item = &NodePerformance> + Clone {
        self.deleted.values().map(|(_, object)| &**object)
    }
}

#[cfg(test)]
mod tests {
    use perfval_api::fleet::NodePerformanceSpec;

    use super::*;

    fn object(uid: &str) -> Arc<NodePerformance> {
        let mut object = NodePerformance::new("n1", NodePerformanceSpec {});
        object.metadata.uid = Some(uid.to_owned());
        Arc::new(object)
    }

    fn uids(former: &Former) -> Vec<String> {
        former.list().filter_map(kube::ResourceExt::uid).collect()
    }

    #[test]
    fn a_deleted_object_is_kept_for_a_while() {
        let (mut former, now) = (Former::default(), Instant::now());
        former.add(&object("first"));
        assert!(uids(&former).is_empty());
        former.update(&[object("second")], now);
        assert_eq!(uids(&former), ["first"]);
        former.update(&[object("second"), object("first")], now);
        assert!(uids(&former).is_empty(), "the watch was behind");
        former.update(&[], now);
        assert_eq!(uids(&former).len(), 2);
        former.update(&[], now + KEPT);
        assert!(uids(&former).is_empty());
    }

    #[test]
    fn the_oldest_is_dropped_if_they_are_too_many() {
        let (mut former, now) = (Former::default(), Instant::now());
        former.update(&[object("oldest")], now);
        former.update(&[], now);
        let others: Vec<_> = (0..MOST).map(|at| object(&at.to_string())).collect();
        former.update(&others, now);
        former.update(&[], now + Duration::from_secs(1));
        assert_eq!(uids(&former).len(), MOST);
        assert!(!uids(&former).contains(&"oldest".to_owned()));
    }
}
