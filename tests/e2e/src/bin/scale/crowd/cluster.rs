//! A cluster on a loopback socket: the API server in memory with everything that moves, and prewritten lists of what rests.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::{Body as Answer, to_bytes};
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, Response, Uri};
use futures::StreamExt as _;
use kube::client::Body;
use perfval_testkit::api_server::ApiServer;
use perfval_testkit::world::{Play, World};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tower::Service as _;

use super::super::serve::{self, List, Snapshot, Written};
use super::Outcome;

/// Largest request body (bytes).
const BODY: usize = 8 << 20;
/// Pause between two steps of the world.
const STEP: Duration = Duration::from_millis(200);
/// Length of a watch without a time-out of its own.
const WATCH: Duration = Duration::from_mins(5);

/// The cluster, and what its clients did.
pub struct Cluster {
    pub server: ApiServer,
    pub requests: Arc<AtomicUsize>,
    writes: Arc<Mutex<Writes>>,
}

/// Time from the end of a trial's Job to the operator's next write of the run's status. Most other changes of its objects need no
/// write, and the pod ends some steps of the world earlier.
#[derive(Default)]
struct Writes {
    /// Version of the API server up to which ended trials are noted.
    noted: u64,
    /// Uids of the Jobs that have ended.
    ended: HashSet<String>,
    /// End of a trial without a write yet, by the name of its object.
    waiting: HashMap<String, Instant>,
    after: Vec<Duration>,
}

impl Cluster {
    /// A cluster of so many nodes, of which the first `free` have free GPUs; 20 pods on each.
    pub fn new(nodes: usize, free: usize) -> (Self, Resting) {
        let server = ApiServer::new();
        server.install_dynamo(&["v1alpha1", "v1beta1"], Some("1.4.2"));
        server.put(serve::class());
        for index in 0..free {
            server.put(typed("v1", "Node", serve::node(index, nodes)));
            server.put(typed("resource.k8s.io/v1", "ResourceSlice", serve::slice(index, nodes)));
        }
        (Self::around(server), Resting::of(nodes, free))
    }

    /// A cluster with the objects of a server.
    pub fn around(server: ApiServer) -> Self {
        Self {
            server,
            requests: Arc::default(),
            writes: Arc::default(),
        }
    }

    /// Serves the cluster. The answer is its address.
    pub async fn serve(&self, resting: Resting) -> Outcome<String> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (server, requests, writes) = (self.server.clone(), self.requests.clone(), self.writes.clone());
        let resting = Arc::new(resting);
        let answer = async move |request: Request| {
            requests.fetch_add(1, Ordering::Relaxed);
            // At every request: a write may follow the end of a trial within milliseconds.
            lock(&writes).note(&server);
            let (head, body) = request.into_parts();
            if head.method == Method::GET
                && let Some(page) = resting.page(&server, &head.uri)
            {
                return page;
            }
            if head.method == Method::PATCH && head.uri.path().ends_with("/status") {
                let name = head.uri.path().rsplit('/').nth(1).unwrap_or_default();
                lock(&writes).written(name);
            }
            let limit = watch_limit(&head.uri);
            let body = to_bytes(body, BODY).await.unwrap_or_default();
            let request = Request::from_parts(head, Body::from(body.to_vec()));
            let Ok(answer) = server.clone().call(request).await;
            match limit {
                None => answer.map(Answer::new),
                Some(limit) => answer.map(|body| {
                    let lines = Answer::new(body).into_data_stream();
                    Answer::from_stream(lines.take_until(tokio::time::sleep(limit)))
                }),
            }
        };
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
        Ok(format!("http://{address}"))
    }

    /// Lets the controllers, the scheduler and the kubelets work until the program ends; `besides` sees every step. `play`:
    /// the course of each pod, if they differ.
    pub fn live(&self, play: Option<Box<dyn Play>>, mut besides: impl FnMut(&ApiServer) + Send + 'static) {
        let (server, writes) = (self.server.clone(), self.writes.clone());
        std::thread::spawn(move || {
            let mut world = World::new(&server, Arc::new(seconds));
            world.play = play;
            loop {
                world.step();
                lock(&writes).note(&server);
                besides(&server);
                std::thread::sleep(STEP);
            }
        });
    }

    /// The times from the end of a trial to the next write, sorted, since the last call.
    pub fn take_reactions(&self) -> Vec<Duration> {
        let mut all = std::mem::take(&mut lock(&self.writes).after);
        all.sort_unstable();
        all
    }
}

impl Writes {
    /// Notes the trials that have ended since the last call.
    fn note(&mut self, server: &ApiServer) {
        let (now, since) = (Instant::now(), self.noted);
        self.noted = server.version();
        for changed in server
            .changes_since(since)
            .into_iter()
            .filter(|changed| changed.plural == "jobs")
        {
            let job = &changed.object;
            let mut conditions = job["status"]["conditions"].as_array().into_iter().flatten();
            let is_over = conditions.any(|condition| {
                matches!(condition["type"].as_str(), Some("Complete" | "Failed")) && condition["status"] == "True"
            });
            let uid = job["metadata"]["uid"].as_str().unwrap_or_default();
            let name = job["metadata"]["labels"]["perfvalidation.dev/name"].as_str();
            if let Some(name) = name.filter(|_| is_over && self.ended.insert(uid.to_owned())) {
                self.waiting.insert(name.to_owned(), now);
            }
        }
    }

    fn written(&mut self, name: &str) {
        if let Some(ended) = self.waiting.remove(name) {
            self.after.push(ended.elapsed());
        }
    }
}

/// Lists of what never changes, written beforehand, and the rest as it was last written.
pub struct Resting {
    /// By path, with the plural.
    lists: HashMap<&'static str, (&'static str, List)>,
    moving: Mutex<Moving>,
}

/// Objects by uid, with their versions.
type ByUid = HashMap<String, (String, Written)>;

/// What the API server has of each list, written: a page takes no longer than its own objects.
#[derive(Default)]
struct Moving {
    /// For each plural.
    written: HashMap<&'static str, ByUid>,
    /// Lists that were begun lately: the pages of one show the same moment.
    snapshots: BTreeMap<usize, Snapshot>,
    begun: usize,
}

/// Snapshots that are kept.
const SNAPSHOTS: usize = 32;

impl Resting {
    pub fn of(nodes: usize, free: usize) -> Self {
        let list = |kind, range: std::ops::Range<usize>, item: fn(usize, usize) -> Value| {
            let list = List::of(kind, range.len(), |index| item(range.start + index, usize::MAX));
            list.unwrap_or_else(|error| panic!("{kind}: {error}"))
        };
        let busy = free..nodes;
        let claims = free * serve::CLAIMS..nodes * serve::CLAIMS;
        let all = [
            ("/api/v1/nodes", "nodes", list("Node", busy.clone(), serve::node)),
            ("/api/v1/pods", "pods", list("Pod", 0..nodes * serve::PODS, serve::pod)),
            (
                "/apis/resource.k8s.io/v1/resourceslices",
                "resourceslices",
                list("ResourceSlice", busy, serve::slice),
            ),
            (
                "/apis/resource.k8s.io/v1/resourceclaims",
                "resourceclaims",
                list("ResourceClaim", claims, serve::claim),
            ),
        ];
        Self {
            lists: all
                .into_iter()
                .map(|(path, plural, list)| (path, (plural, list)))
                .collect(),
            moving: Mutex::default(),
        }
    }

    /// A page of a list of the whole cluster: what rests, then what the API server has.
    fn page(&self, server: &ApiServer, uri: &Uri) -> Option<Response<Answer>> {
        let (plural, resting) = self.lists.get(uri.path())?;
        let query = uri.query().unwrap_or_default();
        if query.contains("watch=true") || query.contains("labelSelector") || query.contains("spec.nodeName") {
            return None;
        }
        let asked = serve::snapshot_of(uri).map(|(snapshot, _)| snapshot);
        let snapshot = lock(&self.moving).snapshot(server, plural, asked)?;
        let page = resting.page(&snapshot, uri);
        Response::builder()
            .header(CONTENT_TYPE, "application/json")
            .body(Answer::from(page))
            .ok()
    }
}

impl Moving {
    /// The snapshot of a list that is continued, or a new one.
    fn snapshot(&mut self, server: &ApiServer, plural: &'static str, asked: Option<usize>) -> Option<Snapshot> {
        if let Some(known) = asked.and_then(|asked| self.snapshots.get(&asked)) {
            return Some(known.clone());
        }
        // Before the objects: a watch from it shows a change twice rather than never.
        let version = server.version();
        let mut before = self.written.remove(plural).unwrap_or_default();
        let mut after = HashMap::with_capacity(before.len());
        let mut all = Vec::with_capacity(before.len());
        for object in server.shared(plural) {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            let (uid, version) = (text("uid"), text("resourceVersion"));
            let known = before.remove(uid).filter(|(known, _)| known == version);
            let written = if let Some((_, written)) = known {
                written
            } else {
                serve::write(&object).ok()?.into()
            };
            all.push(written.clone());
            after.insert(uid.to_owned(), (version.to_owned(), written));
        }
        self.written.insert(plural, after);
        self.begun += 1;
        let snapshot = Snapshot {
            number: self.begun,
            version,
            more: all.into(),
        };
        self.snapshots.insert(self.begun, snapshot.clone());
        self.snapshots.retain(|number, _| number + SNAPSHOTS > self.begun);
        Some(snapshot)
    }
}

/// An object with its type, which lists leave out.
pub fn typed(api_version: &str, kind: &str, mut object: Value) -> Value {
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    object
}

/// Whether a request is a watch, and its length.
fn watch_limit(uri: &Uri) -> Option<Duration> {
    let mut pairs = uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    let watches = pairs.clone().any(|(key, value)| key == "watch" && value == "true");
    let limit = pairs.find_map(|(key, value)| (key == "timeoutSeconds").then(|| value.parse().ok())?);
    watches.then(|| limit.map_or(WATCH, Duration::from_secs))
}

/// Seconds since 1970.
pub fn seconds() -> i64 {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(passed.as_secs()).unwrap_or(i64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A validation of one node, as admission would store it.
pub fn validation(namespace: &str, name: &str, node: usize) -> Outcome<Value> {
    let spec = json!({
        "model": {"name": "lab/tiny"}, "workload": {"dynamo": {"image": "localhost/dynamo:1.4.2"}},
        "placement": {"nodeSelector": {"kubernetes.io/hostname": serve::name(node)}},
        "benchmark": {"image": "localhost/aiperf:test"},
        "gates": [{"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "5"}],
    });
    let spec: perfval_api::PerfValidationSpec = serde_json::from_value(spec)?;
    Ok(json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation",
        "metadata": {"name": name, "namespace": namespace}, "spec": serde_json::to_value(spec)?,
    }))
}
