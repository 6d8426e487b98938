//! Objects, their versions, and who watches.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::kind::Kind;
use super::refusal::Refusal;
use super::select::selected;

/// Group, plural, namespace and name.
pub(super) type Key = (String, String, String, String);

pub(super) struct Store {
    objects: BTreeMap<Key, Arc<Value>>,
    /// What each manager applied last, by object and subresource.
    applied: BTreeMap<(Key, String, String), Value>,
    version: u64,
    uids: u64,
    history: Vec<Change>,
    watchers: Vec<Watcher>,
    clock: Clock,
}

/// Seconds since 1970.
pub(super) type Clock = Box<dyn Fn() -> i64 + Send>;

impl Default for Store {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            applied: BTreeMap::new(),
            version: 0,
            uids: 0,
            history: Vec::new(),
            watchers: Vec::new(),
            clock: Box::new(|| Timestamp::now().as_second()),
        }
    }
}

/// One change of an object.
#[derive(Clone, Debug)]
pub struct Changed {
    /// `ADDED`, `MODIFIED` or `DELETED`.
    pub kind: &'static str,
    /// Plural of the object.
    pub plural: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The object, as it is now or was last.
    pub object: Arc<Value>,
}

struct Change {
    version: u64,
    kind: &'static str,
    key: Key,
    object: Arc<Value>,
}

struct Watcher {
    /// Group, plural; namespace, if only one.
    of: (String, String, Option<String>),
    query: BTreeMap<String, String>,
    render: Box<dyn Fn(&Value) -> Value + Send>,
    to: UnboundedSender<Bytes>,
}

impl Store {
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Value> {
        self.objects.get(key).map(Arc::as_ref)
    }

    /// Objects of a kind, in the order of their names.
    pub(super) fn of_kind<'a>(
        &'a self,
        group: &'a str,
        plural: &'a str,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Value> {
        let of = move |key: &Key| key.0 == group && key.1 == plural && namespace.is_none_or(|wanted| key.2 == wanted);
        self.objects
            .iter()
            .filter(move |(key, _)| of(key))
            .map(|(_, object)| object.as_ref())
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        self.objects.iter()
    }

    pub(super) fn set_clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    pub(super) fn seconds(&self) -> i64 {
        (self.clock)()
    }

    fn now(&self) -> String {
        Timestamp::from_second(self.seconds()).map_or_else(|_| String::new(), |time| time.to_string())
    }

    /// Shows the objects as they were before the last so many changes, until [`Self::come_back`].
    pub(super) fn enter_the_past(&mut self, changes: u64) -> BTreeMap<Key, Arc<Value>> {
        let until = self.version.saturating_sub(changes);
        let mut past = BTreeMap::new();
        for change in self.history.iter().take_while(|change| change.version <= until) {
            if change.kind == "DELETED" {
                past.remove(&change.key);
            } else {
                past.insert(change.key.clone(), change.object.clone());
            }
        }
        std::mem::replace(&mut self.objects, past)
    }

    /// Shows the objects as they are.
    pub(super) fn come_back(&mut self, present: BTreeMap<Key, Arc<Value>>) {
        self.objects = present;
    }

    pub(super) fn changes_since(&self, version: u64) -> Vec<Changed> {
        let from = self.history.partition_point(|change| change.version <= version);
        let changed = |change: &Change| Changed {
            kind: change.kind,
            plural: change.key.1.clone(),
            namespace: change.key.2.clone(),
            name: change.key.3.clone(),
            object: change.object.clone(),
        };
        self.history[from..].iter().map(changed).collect()
    }

    /// Completes the metadata of a new object.
    pub(super) fn newborn(&mut self, mut object: Value, kind: &Kind) -> Value {
        let uid = format!("00000000-0000-4000-8000-{:012}", self.uids + 1);
        let meta = &mut object["metadata"];
        if meta["uid"].is_null() {
            self.uids += 1;
            meta["uid"] = uid.into();
        }
        if meta["creationTimestamp"].is_null() {
            meta["creationTimestamp"] = self.now().into();
        }
        meta["generation"] = json!(1);
        if kind.status
            && let Some(status) = &kind.default_status
            && object["status"].is_null()
        {
            object["status"] = status.clone();
        }
        object
    }

    /// Stores an object; one without finalizers that is being deleted goes instead. Equal content is no change.
    pub(super) fn put(&mut self, key: &Key, mut object: Value) -> Value {
        let old = self.objects.get(key).map(Arc::as_ref);
        if let Some(old) = old {
            object["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
            if *old == object {
                return object;
            }
            let generation = old["metadata"]["generation"].as_i64().unwrap_or(1);
            let changed = i64::from(old["spec"] != object["spec"]);
            object["metadata"]["generation"] = json!(generation + changed);
        }
        let known = old.is_some();
        let leaves = !object["metadata"]["deletionTimestamp"].is_null() && finalizers(&object).is_empty();
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        if leaves {
            self.objects.remove(key);
            self.applied.retain(|(of, ..), _| of != key);
            self.publish("DELETED", key, Arc::new(object.clone()));
        } else {
            let shared = Arc::new(object.clone());
            self.objects.insert(key.clone(), shared.clone());
            self.publish(if known { "MODIFIED" } else { "ADDED" }, key, shared);
        }
        object
    }

    /// Deletes an object, or marks it while finalizers hold it.
    pub(super) fn delete(&mut self, key: &Key) -> Result<Value, Refusal> {
        let mut object = self
            .get(key)
            .cloned()
            .ok_or_else(|| Refusal::not_found(&key.1, &key.3))?;
        if object["metadata"]["deletionTimestamp"].is_null() {
            object["metadata"]["deletionTimestamp"] = self.now().into();
        }
        Ok(self.put(key, object))
    }

    pub(super) fn last_applied(&mut self, key: &Key, manager: &str, subresource: &str, now: &Value) -> Option<Value> {
        let by = (key.clone(), manager.to_owned(), subresource.to_owned());
        self.applied.insert(by, now.clone())
    }

    /// A stream of changes after a version.
    pub(super) fn watch(
        &mut self,
        of: (String, String, Option<String>),
        query: BTreeMap<String, String>,
        render: Box<dyn Fn(&Value) -> Value + Send>,
    ) -> UnboundedReceiver<Bytes> {
        let (to, events) = unbounded();
        let since: u64 = query
            .get("resourceVersion")
            .and_then(|text| text.parse().ok())
            .unwrap_or_default();
        let watcher = Watcher { of, query, render, to };
        for change in self.history.iter().filter(|change| change.version > since) {
            watcher.offer(change);
        }
        self.watchers.push(watcher);
        events
    }

    fn publish(&mut self, kind: &'static str, key: &Key, object: Arc<Value>) {
        let change = Change {
            version: self.version,
            kind,
            key: key.clone(),
            object,
        };
        self.watchers.retain(|watcher| watcher.offer(&change));
        self.history.push(change);
    }

    /// Ends every watch, as a restarting API server does.
    pub(super) fn end_watches(&mut self) {
        self.watchers.clear();
    }

    /// Ends every watch with the word that its version is too old to go on from, as after etcd's compaction.
    pub(super) fn expire_watches(&mut self) {
        let expired = json!({"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "status": "Failure",
            "code": 410, "reason": "Expired", "message": "too old resource version"}});
        for watcher in self.watchers.drain(..) {
            // One that left needs no word.
            let _ = watcher.to.unbounded_send(Bytes::from(format!("{expired}\n")));
        }
    }
}

impl Watcher {
    /// Whether the watcher is still there.
    fn offer(&self, change: &Change) -> bool {
        let (group, plural, namespace) = &self.of;
        let (in_group, of_plural, in_namespace, _) = &change.key;
        let concerns = group == in_group
            && plural == of_plural
            && namespace.as_ref().is_none_or(|wanted| wanted == in_namespace)
            && selected(&self.query, &change.object);
        if !concerns {
            return !self.to.is_closed();
        }
        let line = format!(
            "{}\n",
            json!({"type": change.kind, "object": (self.render)(&change.object)})
        );
        self.to.unbounded_send(Bytes::from(line)).is_ok()
    }
}

fn finalizers(object: &Value) -> &[Value] {
    object["metadata"]["finalizers"].as_array().map_or(&[], Vec::as_slice)
}
