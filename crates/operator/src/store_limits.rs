//! Bytes that the watch's store keeps, in all and for one namespace.
//!
//! A tenant without a quota may create any number of objects of 16 KiB. The operator keeps those for which there is room, and only
//! the metadata of the others. Metadata is not counted: it has at most some 12 KB, and a quota limits the number of objects.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use kube::Resource as _;
use kube::api::ObjectMeta;
use parking_lot::Mutex;
use perfval_api::Phase;

use crate::stored::Stored;

/// Bytes for the packed objects of a namespace: about 10,000 finished ones of eight GPUs, which take 2.3 KB each. A policy keeps one of each
/// healthy node, and up to four of others, all in one namespace.
const NAMESPACE_BYTES: usize = 24 << 20;
/// Bytes for all packed objects: a sixth of the memory limit that the chart sets.
const ALL_BYTES: usize = 40 << 20;
/// Pause before an object for which there was no room is tried again.
pub(crate) const TRY_AGAIN: Duration = Duration::from_mins(5);

const NAMESPACE_IS_FULL: &str = "the operator has no room for this object, because the PerfValidations of its namespace take 24 MiB: \
                                 delete finished ones, or set ttlSecondsAfterFinished; the operator tries again within 5 minutes";
const STORE_IS_FULL: &str = "the operator has no room for this object, because all PerfValidations together take 40 MiB: delete \
                             finished ones, or set ttlSecondsAfterFinished; the operator tries again within 5 minutes";

/// Bytes of the objects that the store keeps.
#[derive(Default)]
pub struct StoreLimits(Mutex<StoreUsage>);

#[derive(Default)]
struct StoreUsage {
    bytes: usize,
    namespaces: HashMap<String, NamespaceShare>,
    /// Versions of objects whose status shows that there is no room, by uid. A change may remove the report.
    reported: HashMap<String, Option<String>>,
}

#[derive(Default)]
struct NamespaceShare {
    bytes: usize,
    /// By uid.
    objects: HashMap<String, usize>,
}

impl StoreUsage {
    fn forget(&mut self, namespace: &str, uid: &str) {
        let Some(share) = self.namespaces.get_mut(namespace) else {
            return;
        };
        let bytes = share.objects.remove(uid).unwrap_or(0);
        share.bytes -= bytes;
        self.bytes -= bytes;
        if share.objects.is_empty() {
            self.namespaces.remove(namespace);
        }
    }

    fn keep(&mut self, namespace: String, uid: String, bytes: usize) {
        self.reported.remove(&uid);
        self.bytes += bytes;
        let share = self.namespaces.entry(namespace).or_default();
        share.bytes += bytes;
        share.objects.insert(uid, bytes);
    }

    fn refusal(&self, namespace: &str, bytes: usize) -> Option<&'static str> {
        let share = self.namespaces.get(namespace).map_or(0, |share| share.bytes);
        if share + bytes > NAMESPACE_BYTES {
            return Some(NAMESPACE_IS_FULL);
        }
        (self.bytes + bytes > ALL_BYTES).then_some(STORE_IS_FULL)
    }
}

impl StoreLimits {
    /// Counts an object that the watch brought. Without room, only its metadata stays in it.
    pub(crate) fn admit(&self, object: &mut Stored) {
        let (namespace, uid) = key(object.meta());
        let bytes = object.bytes();
        let mut state = self.0.lock();
        state.forget(&namespace, &uid);
        if bytes == 0 {
            // The next report shows another reason.
            state.reported.remove(&uid);
            return;
        }
        // Runs that hold GPUs are as few as the nodes, and must end.
        let refusal = state.refusal(&namespace, bytes).filter(|_| rests(object));
        if let Some(refusal) = refusal {
            object.refuse(refusal);
            return;
        }
        state.keep(namespace, uid, bytes);
    }

    /// Reserves room for an object of this many packed bytes, until the watch brings it again. Returns false if there is none.
    /// Without the reservation, all refused objects would take the room of the first that goes.
    pub(crate) fn reserve(&self, object: &ObjectMeta, bytes: usize) -> bool {
        let (namespace, uid) = key(object);
        let mut state = self.0.lock();
        state.forget(&namespace, &uid);
        let has_room = state.refusal(&namespace, bytes).is_none();
        if has_room {
            state.keep(namespace, uid, bytes);
        }
        has_room
    }

    /// Notes that the status of an object shows that there is no room.
    pub(crate) fn report(&self, object: &ObjectMeta) {
        let version = object.resource_version.clone();
        self.0.lock().reported.insert(key(object).1, version);
    }

    /// Returns true if the status of an object shows that there is no room.
    pub(crate) fn is_reported(&self, object: &ObjectMeta) -> bool {
        self.0.lock().reported.get(&key(object).1) == Some(&object.resource_version)
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&self, object: &ObjectMeta) {
        let (namespace, uid) = key(object);
        let mut state = self.0.lock();
        state.forget(&namespace, &uid);
        state.reported.remove(&uid);
    }

    /// Forgets all objects that are not among these, after a new list.
    pub(crate) fn retain(&self, uids: &HashSet<String>) {
        let mut state = self.0.lock();
        state.reported.retain(|uid, _| uids.contains(uid));
        for share in state.namespaces.values_mut() {
            share.objects.retain(|uid, _| uids.contains(uid));
            share.bytes = share.objects.values().sum();
        }
        state.namespaces.retain(|_, share| !share.objects.is_empty());
        state.bytes = state.namespaces.values().map(|share| share.bytes).sum();
    }
}

fn key(object: &ObjectMeta) -> (String, String) {
    (
        object.namespace.clone().unwrap_or_default(),
        object.uid.clone().unwrap_or_default(),
    )
}

/// Returns true if a run holds no GPUs: it has not begun, or it is over and has removed its objects.
fn rests(object: &Stored) -> bool {
    let phase = matches!(
        object.phase(),
        None | Some(Phase::Pending | Phase::Sizing | Phase::Completed | Phase::Suspended)
    );
    phase && object.outline().node.is_none()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use perfval_testkit::random::random_numbers;
    use serde_json::{Value, json};

    use super::*;
    use crate::test_object;

    /// An object of about 14 KiB, which no compression makes smaller than 10 KiB.
    fn object(namespace: &str, number: u32, phase: &str) -> Stored {
        with_status(namespace, number, &json!({"phase": phase, "observedGeneration": 1}))
    }

    fn with_status(namespace: &str, number: u32, status: &Value) -> Stored {
        let mut noise = String::new();
        let mut random = random_numbers(u64::from(number) + 1);
        while noise.len() < 14_000 {
            let _ = write!(noise, "{:x}", random() >> 16);
        }
        let uid = format!("{namespace}-{number}");
        let metadata = json!({"name": number.to_string(), "namespace": namespace, "uid": uid});
        let mut object: Value = test_object::object(&metadata, status);
        object["spec"]["workload"]["dynamo"]["worker"] = json!({"args": [noise]});
        serde_json::from_value(object).expect("an object has metadata")
    }

    #[test]
    fn a_missing_room_is_not_for_good() {
        for message in [NAMESPACE_IS_FULL, STORE_IS_FULL] {
            assert!(message.ends_with(perfval_api::condition::TRIED_AGAIN), "{message}");
        }
    }

    fn admit(limits: &StoreLimits, namespace: &str, number: u32, phase: &str) -> bool {
        let mut object = object(namespace, number, phase);
        assert!(object.is_readable());
        limits.admit(&mut object);
        object.is_readable()
    }

    #[test]
    fn a_namespace_that_is_full_takes_no_room_from_others_and_gets_room_when_objects_go() {
        let limits = StoreLimits::default();
        let admitted = (0..4_000)
            .filter(|number| admit(&limits, "hostile", *number, "Sizing"))
            .count();
        assert!((1_400..3_600).contains(&admitted), "{admitted}");
        assert!(admit(&limits, "good", 1, "Sizing"));
        assert!(admit(&limits, "hostile", 1, "Sizing"), "it has its room already");
        assert!(admit(&limits, "hostile", 9_000, "Benchmarking"), "it holds GPUs");

        let mut refused = object("hostile", 5_000, "Sizing");
        limits.admit(&mut refused);
        let bytes = refused.lacks_room().expect("there is no room");
        let invalid = refused.unpack().expect_err("only its name is kept");
        assert!(invalid.error.contains("24 MiB"), "{}", invalid.error);
        limits.report(&invalid.metadata);
        for number in 0..2 {
            assert!(!limits.reserve(&invalid.metadata, bytes));
            assert!(limits.is_reported(&invalid.metadata));
            limits.forget(object("hostile", number, "Sizing").meta());
        }
        let changed = ObjectMeta {
            resource_version: Some("2".to_owned()),
            ..invalid.metadata.clone()
        };
        assert!(!limits.is_reported(&changed), "the change may have removed it");
        assert!(limits.reserve(&invalid.metadata, bytes));
        assert!(!admit(&limits, "hostile", 6_000, "Sizing"), "the room is reserved");
        assert!(admit(&limits, "hostile", 5_000, "Sizing"));
        assert!(
            !limits.is_reported(&invalid.metadata),
            "a later refusal is reported again"
        );

        let placement = json!({"node": "n1", "allocation": "DRA", "gpus": 8, "nodeGPUs": 8});
        let status = json!({"phase": "Completed", "observedGeneration": 1, "placement": placement});
        let mut kept = with_status("hostile", 9_001, &status);
        limits.admit(&mut kept);
        assert!(kept.is_readable(), "its objects have to be removed");
    }

    #[test]
    fn many_namespaces_together_have_a_limit_and_a_new_list_frees_the_deleted_objects() {
        let limits = StoreLimits::default();
        for namespace in 0..9 {
            for number in 0..600 {
                admit(&limits, &namespace.to_string(), number, "Completed");
            }
        }
        assert!(!admit(&limits, "late", 1, "Completed"));
        limits.retain(&["0-1".to_owned()].into());
        assert!(admit(&limits, "late", 1, "Completed"));
        assert_eq!(limits.0.lock().namespaces.len(), 2);
    }
}
