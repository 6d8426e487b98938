//! What works next to the operator in a cluster, on the API server in memory: Dynamo's operator, the Job controller, the
//! scheduler with its allocation of GPUs, the kubelets and the garbage collector.
//!
//! They advance in steps, each as far as the clock allows, and always in the same order: a world that is played twice is
//! the same twice. Everything they know is in the objects; what they remember is since when something has been so.

mod dynamo;
mod endpoint;
mod jobs;
mod kubelet;
mod play;
mod pods;
mod refusals;
mod result;
mod scheduler;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::api_server::ApiServer;
pub use endpoint::Answer;
use endpoint::Endpoints;
pub use play::{Measured, Play};
use refusals::Tries;
pub use result::Trial;

/// Seconds since 1970.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// Held by a pod until its kubelet has ended it: the API server in memory knows no grace period.
const KUBELET: &str = "world/kubelet";
/// Held by a claim until no pod uses it any more.
const IN_USE: &str = "resource.kubernetes.io/delete-protection";

/// The cluster around the operator.
pub struct World {
    server: ApiServer,
    clock: Clock,
    /// Since when something has been so, by uid of the object and what it is.
    since: HashMap<(String, &'static str), i64>,
    /// When the next thing happens.
    next: Option<i64>,
    endpoints: Endpoints,
    /// What the last step left: version of the objects, and the faults it was made with.
    left: Option<(u64, Faults)>,
    /// Version of the nodes that have reported, and whether they reported to be ready.
    reported: Option<(u64, bool)>,
    born: u64,
    /// Tries of controllers that were refused, by uid of what they make pods for.
    tries: HashMap<String, Tries>,
    /// Course of each pod; without it they are all alike.
    pub play: Option<Box<dyn Play>>,
    /// What goes wrong.
    pub faults: Faults,
    /// What the clocks of others show.
    pub clocks: Clocks,
}

/// How far the clocks of other machines are ahead of the API server's (s).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// Of the scheduler and the controllers.
    pub controllers: i64,
    /// Of the nodes.
    pub nodes: i64,
}

/// What can go wrong in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one switch of the world")]
pub struct Faults {
    /// What the trials show, by number; the last one stands for all that follow.
    pub trials: Vec<Trial>,
    /// What the frontends answer.
    pub answer: Answer,
    /// No worker becomes ready.
    pub never_ready: bool,
    /// Pods do not end.
    pub stuck: bool,
    /// Dynamo's operator does not work.
    pub no_dynamo_operator: bool,
    /// Nobody deletes what has lost its owner.
    pub no_garbage_collector: bool,
    /// The Job that fills the model cache fails.
    pub cache_fails: bool,
    /// No GPU is ever allocated.
    pub no_allocation: bool,
    /// A GPU is allocated so long after its pod was made (s).
    pub allocates_after: i64,
    /// A container is ready so long after its start (s).
    pub starts_after: i64,
    /// The kubelets report that they are not ready.
    pub nodes_unready: bool,
    /// The API server has not loaded its roles: no controller may create pods.
    pub no_roles: bool,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            trials: vec![Trial::Good],
            answer: Answer::Completion,
            never_ready: false,
            stuck: false,
            no_dynamo_operator: false,
            no_garbage_collector: false,
            cache_fails: false,
            no_allocation: false,
            allocates_after: 0,
            starts_after: 3,
            nodes_unready: false,
            no_roles: false,
        }
    }
}

impl World {
    /// A world around a server, by a clock.
    pub fn new(server: &ApiServer, clock: Clock) -> Self {
        let shown = clock.clone();
        server.set_clock(move || shown());
        Self {
            server: server.clone(),
            clock,
            since: HashMap::new(),
            next: None,
            endpoints: Endpoints::default(),
            left: None,
            reported: None,
            born: 0,
            tries: HashMap::new(),
            play: None,
            faults: Faults::default(),
            clocks: Clocks::default(),
        }
    }

    /// Does all that can be done now. The answer is when there is more to do, as far as is known.
    pub fn step(&mut self) -> Option<i64> {
        let as_left = |(version, faults): &(u64, Faults)| *version == self.server.version() && *faults == self.faults;
        if self.left.as_ref().is_some_and(as_left) && self.next.is_none_or(|next| next > self.now()) {
            return self.next;
        }
        // Each works on what the others did: a few rounds, until nothing changes.
        for _ in 0..8 {
            let before = self.server.version();
            self.next = None;
            self.collect_garbage();
            self.report_nodes();
            self.run_dynamo();
            self.run_jobs();
            self.schedule();
            self.run_kubelets();
            self.release_claims();
            if self.server.version() == before {
                break;
            }
        }
        self.serve_endpoints();
        self.left = Some((self.server.version(), self.faults.clone()));
        self.next
    }

    fn now(&self) -> i64 {
        (self.clock)()
    }

    /// A time as the scheduler or a controller writes it.
    fn by_controllers(&self) -> Value {
        rfc3339(self.now() + self.clocks.controllers)
    }

    /// A time as a node writes it.
    fn by_nodes(&self) -> Value {
        rfc3339(self.now() + self.clocks.nodes)
    }

    /// More is to be done at this time.
    fn wake_at(&mut self, due: i64) {
        self.next = Some(self.next.map_or(due, |next| next.min(due)));
    }

    /// Whether something has been so for this long; asked for the first time, it has just begun.
    fn has_lasted(&mut self, uid: &str, what: &'static str, seconds: i64) -> bool {
        let now = self.now();
        let due = *self.since.entry((uid.to_owned(), what)).or_insert(now) + seconds;
        if due > now {
            self.wake_at(due);
        }
        due <= now
    }

    /// Time for which something has been so (s).
    fn lasted(&self, uid: &str, what: &'static str) -> i64 {
        let since = self.since.get(&(uid.to_owned(), what));
        since.map_or(0, |since| self.now() - since)
    }

    /// A new suffix for a name.
    fn suffix(&mut self) -> String {
        self.born += 1;
        format!("{:04x}", self.born)
    }

    /// Deletes objects whose owner is gone.
    fn collect_garbage(&self) {
        if !self.faults.no_garbage_collector {
            self.server.collect_garbage();
        }
    }

    /// A claim goes with its pod, and is given back once no pod holds it.
    fn release_claims(&self) {
        let pods = self.server.shared("pods");
        let alive: BTreeSet<&str> = pods.iter().filter_map(|pod| pod["metadata"]["uid"].as_str()).collect();
        for claim in self.server.shared("resourceclaims") {
            let leaves = !claim["metadata"]["deletionTimestamp"].is_null();
            let user = claim["metadata"]["ownerReferences"][0]["uid"]
                .as_str()
                .unwrap_or_default();
            if leaves && !alive.contains(user) {
                self.without_finalizer("resourceclaims", &claim, IN_USE);
            }
        }
    }

    /// Pods by the uid of their first owner.
    fn pods_by_owner(&self) -> HashMap<String, Vec<Arc<Value>>> {
        let mut by_owner: HashMap<String, Vec<Arc<Value>>> = HashMap::new();
        for pod in self.server.shared("pods") {
            if let Some(owner) = pod["metadata"]["ownerReferences"][0]["uid"].as_str() {
                by_owner.entry(owner.to_owned()).or_default().push(pod.clone());
            }
        }
        by_owner
    }

    fn without_finalizer(&self, plural: &str, object: &Value, finalizer: &str) {
        let (namespace, name) = whose(object);
        if self.server.get(plural, &namespace, &name).is_none() {
            return;
        }
        self.server.edit(plural, &namespace, &name, |object| {
            if let Some(all) = object["metadata"]["finalizers"].as_array_mut() {
                all.retain(|held| held != finalizer);
            }
        });
    }
}

/// Namespace and name.
fn whose(object: &Value) -> (String, String) {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

fn leaves(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// The reference of a controller to what it made.
fn owner(of: &Value) -> Value {
    json!([{
        "apiVersion": of["apiVersion"], "kind": of["kind"], "name": of["metadata"]["name"], "uid": of["metadata"]["uid"],
        "controller": true,
    }])
}

/// A condition of a status, as `True` or `False`.
fn condition(object: &Value, kind: &str) -> Option<bool> {
    let all = object["status"]["conditions"].as_array()?;
    let found = all.iter().find(|condition| condition["type"] == kind)?;
    Some(found["status"] == "True")
}

/// A time as the API writes it.
fn rfc3339(seconds: i64) -> Value {
    k8s_openapi::jiff::Timestamp::from_second(seconds).map_or(Value::Null, |time| time.to_string().into())
}
