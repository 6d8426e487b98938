//! An API server in memory, for whole passes without sockets: create conflicts, server-side apply, the status split, optimistic
//! locks, finalizers, watches, logs, the service proxy. It fails, hangs and loses answers on request, and records every call.
//!
//! It knows no schemas, no admission and no controllers; the lab has the real ones.

mod call;
mod fault;
mod kind;
mod log;
mod patch;
mod refusal;
mod route;
mod select;
mod service;
mod store;
mod usurp;
mod verbs;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Method;
use serde_json::{Value, json};

pub use call::Call;
pub use fault::Fault;
pub use kind::Kind;
pub use route::{KUBERNETES, VERBS};
pub use usurp::{is_a_strangers, is_forced};
pub use wire::{Line, Made, Strike, Wire};

pub use store::Changed;
use store::{Key, Store};

/// Answers a proxied request: method, path, body → status, body.
type Backend = Box<dyn FnMut(&Method, &str, &[u8]) -> (u16, String) + Send>;

/// An API server in memory. Clones are the same server.
#[derive(Clone)]
pub struct ApiServer(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    kinds: Vec<Kind>,
    store: Store,
    faults: Vec<Fault>,
    /// Namespaces that are being deleted.
    terminating: BTreeSet<String>,
    calls: Vec<Call>,
    /// By namespace, pod and container.
    logs: BTreeMap<(String, String, String), Vec<u8>>,
    /// The same of the containers before.
    previous_logs: BTreeMap<(String, String, String), Vec<u8>>,
    /// By namespace and `service:port`.
    backends: BTreeMap<(String, String), Backend>,
}

impl Default for ApiServer {
    fn default() -> Self {
        Self::new()
    }
}

impl ApiServer {
    /// A cluster with Dynamic Resource Allocation and our CRD, without Dynamo, without objects.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            kinds: kind::built_in(),
            ..State::default()
        })))
    }

    /// A client of this server, without retries.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }

    /// Objects get their times from this clock (seconds since 1970).
    pub fn set_clock(&self, clock: impl Fn() -> i64 + Send + 'static) {
        self.lock().store.set_clock(Box::new(clock));
    }

    /// How many changes there were so far.
    pub fn version(&self) -> u64 {
        self.lock().store.version()
    }

    /// What changed since a version, in order.
    pub fn changes_since(&self, version: u64) -> Vec<Changed> {
        self.lock().store.changes_since(version)
    }

    /// A namespace is being deleted: nothing is created in it any more.
    pub fn terminate(&self, namespace: &str) {
        self.lock().terminating.insert(namespace.to_owned());
    }

    /// Whether a namespace is being deleted.
    pub fn is_terminating(&self, namespace: &str) -> bool {
        self.lock().terminating.contains(namespace)
    }

    /// Whether a kind is served.
    pub fn serves(&self, plural: &str) -> bool {
        self.lock().kinds.iter().any(|kind| kind.plural == plural)
    }

    /// Serves another kind.
    pub fn serve(&self, kind: Kind) {
        self.lock().kinds.push(kind);
    }

    /// Stops serving a kind; its objects stay where they are.
    pub fn withdraw(&self, plural: &str) {
        self.lock().kinds.retain(|kind| kind.plural != plural);
    }

    /// Drops a field (a JSON pointer) from every write, as a CRD does that is older than the writer.
    pub fn prune(&self, plural: &str, pointer: &str) {
        let mut state = self.lock();
        for kind in state.kinds.iter_mut().filter(|kind| kind.plural == plural) {
            kind.unknown.push(pointer.to_owned());
        }
    }

    /// Installs Dynamo's CRD at some versions, as its operator's installation of a version does.
    pub fn install_dynamo(&self, versions: &[&str], operator_version: Option<&str>) {
        self.withdraw("dynamographdeployments");
        self.serve(kind::dynamo(versions));
        let mut crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "dynamographdeployments.nvidia.com"},
            "spec": {"versions": versions.iter().map(|name| json!({"name": name, "served": true})).collect::<Vec<_>>()},
        });
        if let Some(version) = operator_version {
            crd["metadata"]["annotations"] = json!({"dynamo.nvidia.com/operator-version": version});
        }
        self.put(crd);
    }

    /// Creates or replaces an object as another client would: unrecorded, status included. A new object keeps its
    /// generation.
    ///
    /// # Panics
    /// If its kind is not served, or it has no name.
    pub fn put(&self, object: Value) -> Value {
        let mut state = self.lock();
        let (kind, key) = state.key_of(&object);
        let object = if let Some(current) = state.store.get(&key) {
            let mut object = object;
            for field in ["uid", "creationTimestamp", "generation"] {
                object["metadata"][field] = current["metadata"][field].clone();
            }
            object
        } else {
            let generation = object["metadata"]["generation"].clone();
            let mut object = state.store.newborn(object, &kind);
            if !generation.is_null() {
                object["metadata"]["generation"] = generation;
            }
            object
        };
        state.store.put(&key, object)
    }

    /// Changes an object as another client would.
    ///
    /// # Panics
    /// If it does not exist.
    pub fn edit(&self, plural: &str, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) -> Value {
        let mut state = self.lock();
        let key = state.key(plural, namespace, name);
        let Some(mut object) = state.store.get(&key).cloned() else {
            panic!("there is no {plural} {namespace}/{name}");
        };
        change(&mut object);
        state.store.put(&key, object)
    }

    /// Deletes an object as another client would.
    pub fn delete(&self, plural: &str, namespace: &str, name: &str) {
        let mut state = self.lock();
        let key = state.key(plural, namespace, name);
        // Gone is gone.
        let _ = state.store.delete(&key);
    }

    /// Deletes the objects of a plural that were created before a time (RFC 3339, UTC), as the API server does with Events.
    pub fn expire(&self, plural: &str, until: &str) {
        let mut state = self.lock();
        let is_old = |object: &Value| {
            object["metadata"]["creationTimestamp"]
                .as_str()
                .is_some_and(|at| at < until)
        };
        let of = state
            .store
            .all()
            .filter(|(key, object)| key.1 == plural && is_old(object));
        let old: Vec<Key> = of.map(|(key, _)| key.clone()).collect();
        for key in old {
            // Gone is gone.
            let _ = state.store.delete(&key);
        }
    }

    /// Deletes an object as `kubectl delete --cascade=orphan` does: it owns nothing any more.
    pub fn orphan(&self, plural: &str, namespace: &str, name: &str) {
        let uid = self
            .get(plural, namespace, name)
            .map(|object| object["metadata"]["uid"].clone());
        let mut state = self.lock();
        let all: Vec<(Key, Value)> = state
            .store
            .all()
            .map(|(key, object)| (key.clone(), object.as_ref().clone()))
            .collect();
        for (key, mut object) in all {
            let Some(owners) = object["metadata"]["ownerReferences"].as_array_mut() else {
                continue;
            };
            owners.retain(|owner| Some(&owner["uid"]) != uid.as_ref());
            state.store.put(&key, object);
        }
        let key = state.key(plural, namespace, name);
        // Gone is gone.
        let _ = state.store.delete(&key);
    }

    /// An object; `None` if it does not exist. Where two groups share a plural, the core group counts.
    pub fn get(&self, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        let state = self.lock();
        state.store.get(&state.key(plural, namespace, name)).cloned()
    }

    /// All objects of a plural.
    pub fn objects(&self, plural: &str) -> Vec<Value> {
        self.shared(plural)
            .iter()
            .map(|object| object.as_ref().clone())
            .collect()
    }

    /// All objects of a plural, as they are now.
    pub fn shared(&self, plural: &str) -> Vec<Arc<Value>> {
        let state = self.lock();
        let groups = state.store.groups();
        let of = |group| state.store.shared_of_kind(group, plural, None).cloned();
        groups.into_iter().flat_map(of).collect()
    }

    /// Version of the last change of a plural.
    pub fn version_of(&self, plural: &str) -> u64 {
        self.lock().store.version_of(plural)
    }

    /// Whether an object exists.
    pub fn exists(&self, plural: &str, namespace: &str, name: &str) -> bool {
        let state = self.lock();
        state.store.get(&state.key(plural, namespace, name)).is_some()
    }

    /// Deletes what lost its owner, once, as the garbage collector does.
    pub fn collect_garbage(&self) {
        let mut state = self.lock();
        let orphans = state.store.take_orphans();
        for key in orphans {
            // Gone is gone.
            let _ = state.store.delete(&key);
        }
    }

    /// What a container has printed.
    pub fn set_log(&self, namespace: &str, pod: &str, container: &str, text: impl Into<Vec<u8>>) {
        let of = (namespace.into(), pod.into(), container.into());
        self.lock().logs.insert(of, text.into());
    }

    /// What the container before the current one has printed.
    pub fn set_previous_log(&self, namespace: &str, pod: &str, container: &str, text: impl Into<Vec<u8>>) {
        let of = (namespace.into(), pod.into(), container.into());
        self.lock().previous_logs.insert(of, text.into());
    }

    /// Who answers behind the service proxy.
    pub fn set_backend(
        &self,
        namespace: &str,
        service: &str,
        port: u16,
        answer: impl FnMut(&Method, &str, &[u8]) -> (u16, String) + Send + 'static,
    ) {
        let of = (namespace.into(), format!("http:{service}:{port}"));
        self.lock().backends.insert(of, Box::new(answer));
    }

    /// Something goes wrong from now on.
    pub fn fail(&self, fault: Fault) {
        self.lock().faults.push(fault);
    }

    /// Everything works again.
    pub fn heal(&self) {
        self.lock().faults.clear();
    }

    /// Every request since the last [`Self::forget_calls`], refused ones included.
    pub fn calls(&self) -> Vec<Call> {
        self.lock().calls.clone()
    }

    /// Number of requests since the last [`Self::forget_calls`]. The verb `*` stands for any.
    pub fn count_calls(&self, verb: &str, resource: &str) -> usize {
        let counts = |call: &&Call| (verb == "*" || call.verb == verb) && call.resource == resource;
        self.lock().calls.iter().filter(counts).count()
    }

    /// Every request since the last call, as [`Self::calls`].
    pub fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.lock().calls)
    }

    /// Keeps only the last so many changes from now on. A watch from an older version is answered with 410 Expired.
    pub fn keep_changes(&self, count: usize) {
        self.lock().store.keep_changes(count);
    }

    /// Begins a new recording.
    pub fn forget_calls(&self) {
        self.lock().calls.clear();
    }

    /// Ends every watch, as a restarting API server does.
    pub fn end_watches(&self) {
        self.lock().store.end_watches();
    }

    /// Ends every watch with 410 Expired, as after a compaction: only a new list goes on.
    pub fn expire_watches(&self) {
        self.lock().store.expire_watches();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn key(&self, plural: &str, namespace: &str, name: &str) -> Key {
        let kind = self.kinds.iter().find(|kind| kind.plural == plural);
        let Some(kind) = kind else {
            panic!("{plural} are not served")
        };
        (kind.group.clone(), plural.into(), namespace.into(), name.into())
    }

    fn key_of(&self, object: &Value) -> (Kind, Key) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let found = self
            .kinds
            .iter()
            .find(|known| known.group == group && known.kind == kind);
        let Some(found) = found.cloned() else {
            panic!("{api_version} {kind} is not served")
        };
        let meta = &object["metadata"];
        let key = (
            found.group.clone(),
            found.plural.clone(),
            text(&meta["namespace"]),
            text(&meta["name"]),
        );
        assert!(!key.3.is_empty(), "a {kind} without a name");
        (found, key)
    }
}

#[cfg(test)]
mod tests;
