//! Objects, their versions, and who watches.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
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

#[derive(Default)]
pub(super) struct Store {
    objects: BTreeMap<Key, Arc<Value>>,
    /// Uids of the objects.
    living: HashSet<String>,
    /// Whether an object may have lost its owners since garbage was collected.
    has_orphans: bool,
    /// What each manager applied last, by object and subresource.
    applied: BTreeMap<(Key, String, String), Value>,
    version: u64,
    /// Version of the last change, by plural.
    changed: HashMap<String, u64>,
    uids: u64,
    history: VecDeque<Change>,
    /// Changes that are kept; `None`: all of them.
    kept: Option<usize>,
    /// Version of the last forgotten change, by group and plural.
    forgotten: HashMap<(String, String), u64>,
    watchers: Vec<Watcher>,
    /// `None`: the machine's.
    clock: Option<Clock>,
}

/// Seconds since 1970.
pub(super) type Clock = Box<dyn Fn() -> i64 + Send>;

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
    /// The object before; `None` for a new one.
    before: Option<Arc<Value>>,
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

    /// Version of the last change of a plural.
    pub(super) fn version_of(&self, plural: &str) -> u64 {
        self.changed.get(plural).copied().unwrap_or_default()
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
        self.shared_of_kind(group, plural, namespace).map(Arc::as_ref)
    }

    /// The same, shared.
    pub(super) fn shared_of_kind<'a>(
        &'a self,
        group: &'a str,
        plural: &'a str,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Arc<Value>> {
        let first: Key = (
            group.into(),
            plural.into(),
            namespace.unwrap_or_default().into(),
            String::new(),
        );
        let of = move |key: &Key| key.0 == group && key.1 == plural && namespace.is_none_or(|wanted| key.2 == wanted);
        self.objects
            .range(first..)
            .take_while(move |(key, _)| of(key))
            .map(|(_, object)| object)
    }

    /// Groups that have objects.
    pub(super) fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = Vec::new();
        let mut next = self.objects.keys().next();
        while let Some((group, ..)) = next {
            groups.push(group);
            let behind = (format!("{group}\0"), String::new(), String::new(), String::new());
            next = self.objects.range(behind..).next().map(|(key, _)| key);
        }
        groups
    }

    /// Whether an object with this uid exists.
    fn lives(&self, uid: &str) -> bool {
        self.living.contains(uid)
    }

    /// Objects whose owners are all gone, if one may have become so since the last call: 5,000 nodes have 20,000 objects.
    pub(super) fn take_orphans(&mut self) -> Vec<Key> {
        if !std::mem::take(&mut self.has_orphans) {
            return Vec::new();
        }
        let orphans = self.objects.iter().filter(|(_, object)| self.is_orphan(object));
        orphans.map(|(key, _)| key.clone()).collect()
    }

    fn is_orphan(&self, object: &Value) -> bool {
        let owners = object["metadata"]["ownerReferences"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        !owners.is_empty() && !owners.iter().any(|owner| self.lives(uid_of(owner)))
    }

    /// Forgets all but the last so many changes from now on, as etcd's compaction does.
    pub(super) fn keep_changes(&mut self, count: usize) {
        self.kept = Some(count);
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        self.objects.iter()
    }

    pub(super) fn set_clock(&mut self, clock: Clock) {
        self.clock = Some(clock);
    }

    pub(super) fn seconds(&self) -> i64 {
        let clock = self.clock.as_ref();
        clock.map_or_else(|| Timestamp::now().as_second(), |clock| clock())
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
        self.history.range(from..).map(changed).collect()
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
        let before = self.objects.get(key).cloned();
        let is_deleted = !object["metadata"]["deletionTimestamp"].is_null();
        let leaves = is_deleted && finalizers(&object).is_empty();
        if let Some(old) = before.as_deref() {
            object["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
            if *old == object {
                return object;
            }
            let generation = old["metadata"]["generation"].as_i64().unwrap_or(1);
            // A deletion that finalizers hold counts as a change of the spec.
            let begins_to_leave = is_deleted && !leaves && old["metadata"]["deletionTimestamp"].is_null();
            let changed = i64::from(begins_to_leave || old["spec"] != object["spec"]);
            object["metadata"]["generation"] = json!(generation + changed);
        }
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        if leaves {
            self.objects.remove(key);
            self.living.remove(uid(&object));
            self.has_orphans = true;
            self.forget_applied(key);
            self.publish("DELETED", key, Arc::new(object.clone()), before);
        } else {
            let shared = Arc::new(object.clone());
            self.objects.insert(key.clone(), shared.clone());
            if let Some(old) = before.as_deref() {
                self.living.remove(uid(old));
                self.has_orphans |= uid(old) != uid(&shared);
            }
            self.living.insert(uid(&shared).to_owned());
            self.has_orphans |= self.is_orphan(&shared);
            let kind = if before.is_some() { "MODIFIED" } else { "ADDED" };
            self.publish(kind, key, shared, before);
        }
        object
    }

    fn forget_applied(&mut self, key: &Key) {
        let first = (key.clone(), String::new(), String::new());
        let of = self.applied.range(first..).take_while(|((of, ..), _)| of == key);
        let gone: Vec<_> = of.map(|(by, _)| by.clone()).collect();
        for by in gone {
            self.applied.remove(&by);
        }
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
        let (group, plural, _) = &of;
        let forgotten = self.forgotten.get(&(group.clone(), plural.clone()));
        let is_too_old = forgotten.is_some_and(|forgotten| since < *forgotten);
        let watcher = Watcher { of, query, render, to };
        if is_too_old {
            watcher.expire();
            return events;
        }
        for change in self.history.iter().filter(|change| change.version > since) {
            watcher.offer(change);
        }
        self.watchers.push(watcher);
        events
    }

    fn publish(&mut self, kind: &'static str, key: &Key, object: Arc<Value>, before: Option<Arc<Value>>) {
        let change = Change {
            version: self.version,
            kind,
            key: key.clone(),
            object,
            before,
        };
        match self.changed.get_mut(&key.1) {
            Some(version) => *version = self.version,
            None => _ = self.changed.insert(key.1.clone(), self.version),
        }
        self.watchers.retain(|watcher| watcher.offer(&change));
        self.history.push_back(change);
        let surplus = self.kept.map_or(0, |kept| self.history.len().saturating_sub(kept));
        for change in self.history.drain(..surplus) {
            let (group, plural, ..) = change.key;
            self.forgotten.insert((group, plural), change.version);
        }
    }

    /// Ends every watch, as a restarting API server does.
    pub(super) fn end_watches(&mut self) {
        self.watchers.clear();
    }

    /// Ends every watch with the word that its version is too old to go on from, as after etcd's compaction.
    pub(super) fn expire_watches(&mut self) {
        for watcher in self.watchers.drain(..) {
            watcher.expire();
        }
    }
}

impl Watcher {
    /// The version to start from is too old.
    fn expire(&self) {
        let expired = json!({"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "status": "Failure",
            "code": 410, "reason": "Expired", "message": "too old resource version"}});
        // One that left needs no word.
        let _ = self.to.unbounded_send(Bytes::from(format!("{expired}\n")));
    }

    /// Whether the watcher is still there. An object that begins to match its selectors is a new one for it. One that stops is
    /// deleted, and comes as it was before, with the new version.
    fn offer(&self, change: &Change) -> bool {
        let (group, plural, namespace) = &self.of;
        let (in_group, of_plural, in_namespace, _) = &change.key;
        let concerns =
            group == in_group && plural == of_plural && namespace.as_ref().is_none_or(|wanted| wanted == in_namespace);
        let is_selected = |object: &Value| concerns && selected(&self.query, object);
        let was_selected = change.before.as_deref().is_some_and(is_selected);
        let is_gone = change.kind == "DELETED";
        let (kind, object) = match (was_selected, !is_gone && is_selected(&change.object)) {
            (false, false) => return !self.to.is_closed(),
            (false, true) => ("ADDED", (self.render)(&change.object)),
            (true, true) => ("MODIFIED", (self.render)(&change.object)),
            (true, false) if is_gone => ("DELETED", (self.render)(&change.object)),
            (true, false) => {
                let mut last = change.before.as_deref().cloned().unwrap_or_default();
                last["metadata"]["resourceVersion"] = change.version.to_string().into();
                ("DELETED", (self.render)(&last))
            }
        };
        let line = format!("{}\n", json!({"type": kind, "object": object}));
        self.to.unbounded_send(Bytes::from(line)).is_ok()
    }
}

pub(super) fn finalizers(object: &Value) -> &[Value] {
    object["metadata"]["finalizers"].as_array().map_or(&[], Vec::as_slice)
}

fn uid(object: &Value) -> &str {
    uid_of(&object["metadata"])
}

fn uid_of(metadata: &Value) -> &str {
    metadata["uid"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, StreamExt as _};

    use super::*;

    fn watch(store: &mut Store, since: u64, selector: &str) -> Vec<String> {
        let query = [
            ("resourceVersion", since.to_string()),
            ("labelSelector", selector.to_owned()),
        ];
        let query = query.map(|(key, value)| (key.to_owned(), value)).into();
        let of = (String::new(), "pods".to_owned(), None);
        let mut events = store.watch(of, query, Box::new(Value::clone));
        let next = || events.next().now_or_never().flatten();
        std::iter::from_fn(next)
            .map(|line| String::from_utf8_lossy(&line).into_owned())
            .collect()
    }

    #[test]
    fn a_watch_from_a_forgotten_version_expires_and_a_later_one_goes_on() {
        let mut store = Store::default();
        store.keep_changes(2);
        for name in ["a", "b", "c", "d"] {
            let key = (String::new(), "pods".to_owned(), "n".to_owned(), name.to_owned());
            store.put(&key, json!({"metadata": {"name": name, "uid": name}}));
        }
        let expired = watch(&mut store, 1, "");
        assert!(expired.len() == 1 && expired[0].contains("410"), "{expired:?}");
        let later = watch(&mut store, 2, "");
        assert!(later.len() == 2 && later[0].contains("ADDED"), "{later:?}");
    }

    #[test]
    fn a_deletion_that_a_finalizer_holds_raises_the_generation_once() {
        let mut store = Store::default();
        let key = (String::new(), "pods".to_owned(), "n".to_owned(), "a".to_owned());
        store.put(
            &key,
            json!({"metadata": {"name": "a", "uid": "a", "generation": 1, "finalizers": ["f"]}}),
        );
        for _ in 0..2 {
            let marked = store.delete(&key).expect("it is held");
            assert_eq!(marked["metadata"]["generation"], 2);
        }
    }

    #[test]
    fn an_object_that_stops_matching_a_selector_is_deleted_for_its_watch() {
        let mut store = Store::default();
        let key = (String::new(), "pods".to_owned(), "n".to_owned(), "a".to_owned());
        for of in ["us", "others", "nobody", "us"] {
            store.put(
                &key,
                json!({"metadata": {"name": "a", "uid": "a", "labels": {"of": of}}}),
            );
        }
        let seen = watch(&mut store, 0, "of=us");
        let seen: Vec<Value> = seen.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let seen = seen.iter().map(|event| {
            let metadata = &event["object"]["metadata"];
            [&event["type"], &metadata["labels"]["of"], &metadata["resourceVersion"]]
        });
        let expected = [["ADDED", "us", "1"], ["DELETED", "us", "2"], ["ADDED", "us", "4"]];
        assert_eq!(seen.collect::<Vec<_>>(), expected);
    }
}
