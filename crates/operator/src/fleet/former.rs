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
pub(super) struct Former {
    /// Objects of the last look.
    present: Vec<Arc<NodePerformance>>,
    deleted: HashMap<String, (Instant, Arc<NodePerformance>)>,
}

impl Former {
    /// Begins with the objects that a leader finds: one may be deleted before it writes the first.
    pub(super) fn new(present: Vec<Arc<NodePerformance>>) -> Self {
        let deleted = HashMap::new();
        Self { present, deleted }
    }

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

    /// Forgets the objects of a node that is still there, and others with their GPUs: a person deleted them, to begin a
    /// new past.
    pub(super) fn forget(&mut self, node_uid: &str) {
        let is_of_node = |object: &NodePerformance| object.owner_references().iter().any(|owner| owner.uid == node_uid);
        let deleted = self.deleted.values().map(|(_, object)| &**object);
        let gpus: HashSet<String> = deleted
            .filter(|object| is_of_node(object))
            .flat_map(uuids)
            .map(str::to_owned)
            .collect();
        self.deleted
            .retain(|_, (_, object)| !is_of_node(object) && !uuids(object).any(|uuid| gpus.contains(uuid)));
    }

    pub(super) fn list(&self) -> impl Iterator<Item = &NodePerformance> + Clone {
        self.deleted.values().map(|(_, object)| &**object)
    }
}

/// UUIDs of the GPUs of an object.
fn uuids(object: &NodePerformance) -> impl Iterator<Item = &str> {
    let gpus = object.status.iter().flat_map(|status| &status.gpus);
    gpus.map(|gpu| gpu.uuid.as_str())
}

#[cfg(test)]
mod tests {
    use perfval_api::fleet::NodePerformanceSpec;
    use serde_json::json;

    use super::*;

    fn object(uid: &str) -> Arc<NodePerformance> {
        let mut object = NodePerformance::new("n1", NodePerformanceSpec {});
        object.metadata.uid = Some(uid.to_owned());
        Arc::new(object)
    }

    /// An object with one GPU, of a node with this uid.
    fn owned(uid: &str, node_uid: &str, gpu: &str) -> Arc<NodePerformance> {
        let object: NodePerformance = serde_json::from_value(json!({
            "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "NodePerformance",
            "metadata": {
                "name": "n1", "uid": uid,
                "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": node_uid}],
            },
            "spec": {},
            "status": {
                "verdict": "Passed", "measuredAt": "2026-11-20T12:00:00Z", "gpus": [{"uuid": gpu}],
                "validation": {"namespace": "perf", "name": "v", "uid": "u", "run": 1},
            },
        }))
        .expect("an object");
        Arc::new(object)
    }

    fn uids(former: &Former) -> Vec<String> {
        former.list().filter_map(kube::ResourceExt::uid).collect()
    }

    #[test]
    fn a_deleted_object_is_kept_for_a_while() {
        let (mut former, now) = (Former::new(Vec::new()), Instant::now());
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
        let (mut former, now) = (Former::new(Vec::new()), Instant::now());
        former.update(&[object("oldest")], now);
        former.update(&[], now);
        let others: Vec<_> = (0..MOST).map(|at| object(&at.to_string())).collect();
        former.update(&others, now);
        former.update(&[], now + Duration::from_secs(1));
        assert_eq!(uids(&former).len(), MOST);
        assert!(!uids(&former).contains(&"oldest".to_owned()));
    }

    #[test]
    fn the_past_of_a_node_that_is_still_there_is_forgotten() {
        let found = ["moved in", "node", "elsewhere"];
        let gpus = ["GPU-a", "GPU-a", "GPU-b"];
        let found = found.iter().zip(gpus).map(|(owner, gpu)| owned(owner, owner, gpu));
        let mut former = Former::new(found.collect());
        former.update(&[], Instant::now());
        former.forget("another node");
        assert_eq!(uids(&former).len(), 3, "what the leader found is remembered");
        former.forget("node");
        assert_eq!(uids(&former), ["elsewhere"]);
    }
}
