//! A cluster, the operator in it, and their time.
//!
//! The clock is tokio's, paused: it jumps to the next timer whenever every task waits, so that hours take milliseconds.
//! Passes and the planner are the process's own; only the watches and the queue of a `Controller` are played here, in one
//! order each time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use kube::Client;
use kube::client::retry::RetryPolicy;
use kube::runtime::controller::Action;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use perfval_cluster::{Clock, Cluster, EndpointAccess, Wakeups};
use perfval_operator::controller::{Context, reconcile};
use perfval_operator::metrics::Metrics;
use perfval_operator::objects::{self, Guarded};
use perfval_operator::rights::Rights;
use perfval_operator::{planner, unreadable};
use perfval_run::Settings;
use perfval_testkit::api_server::{ApiServer, Line, Wire};
use perfval_testkit::inventory::{Cluster as Hardware, NodeBuilder, SliceBuilder};
use perfval_testkit::world::World;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tower::retry::RetryLayer;
use tower::{Layer as _, ServiceBuilder};

pub const NAMESPACE: &str = "perf";
/// Passes at once, as many as the process's default.
const WORKERS: usize = 8;
/// A child's change starts a pass after this time, with those that come meanwhile.
const DEBOUNCE: Duration = Duration::from_millis(10);
/// A process that ended is there again after this time.
const RESTART: Duration = Duration::from_secs(2);
/// Kinds whose changes wake the object that they belong to.
const WATCHED: [&str; 4] = ["jobs", "pods", "resourceclaims", "dynamographdeployments"];

/// Namespace and name of an object.
pub type Key = (String, String);

/// A cluster with the operator in it.
pub struct Rig {
    pub server: ApiServer,
    pub world: World,
    pub wire: Wire,
    began: Instant,
    /// Whether the client tries again by itself, as the process's does.
    pub patient: bool,
    /// From when to when no watch brings anything; after it everything is listed anew.
    pub deaf: Option<(Instant, Instant)>,
    pub crashes: usize,
    operator: Option<Operator>,
}

struct Operator {
    context: Arc<Context>,
    writer: Writer<Guarded>,
    answers: Wakeups,
    tasks: Vec<JoinHandle<()>>,
    seen: u64,
    known: BTreeMap<Key, Arc<Guarded>>,
    due: BTreeMap<Key, Instant>,
    passes: FuturesUnordered<BoxFuture<'static, (Key, Action)>>,
    running: BTreeSet<Key>,
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

fn epoch() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).expect("a time")
}

impl Rig {
    /// Two nodes with two GPUs each, and Dynamo at these versions.
    pub fn new(versions: &[&str], operator_version: &str) -> Self {
        let server = ApiServer::new();
        server.answer_in_json();
        let began = Instant::now();
        let world = World::new(
            &server,
            Arc::new(move || (epoch() + TimeDelta::from_std(began.elapsed()).expect("short")).timestamp()),
        );
        server.install_dynamo(versions, Some(operator_version));
        let hardware = ["n1", "n2"].into_iter().fold(Hardware::empty(), |hardware, node| {
            hardware
                .node(NodeBuilder::named(node))
                .slice(SliceBuilder::of(node).gpus(2))
        });
        for object in hardware.objects() {
            server.put(object);
        }
        server.put(json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "p",
            "metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        }));
        let wire = Wire::new(&server);
        Self {
            server,
            world,
            wire,
            began,
            patient: false,
            deaf: None,
            crashes: 0,
            operator: None,
        }
    }

    /// Starts the operator, if it does not run.
    pub fn start(&mut self) {
        if self.operator.is_some() {
            return;
        }
        let line = self.wire.connect();
        let client = || self.client(&line);
        let impatient = || Client::new(line.clone(), "default");
        let began = self.began;
        let clock = Clock::new(move || epoch() + TimeDelta::from_std(began.elapsed()).expect("short"));
        let (cluster, answers) = Cluster::new(client(), impatient(), EndpointAccess::ServiceProxy, "test".to_owned());
        let settings = Settings {
            aiperf_image: Some("localhost/aiperf:test".to_owned()),
            ..Settings::default()
        };
        let reporter = unreadable::Reporter::new(impatient(), "test".to_owned());
        let (objects, scopes) = objects::watched(vec![None]);
        let scope = scopes.into_iter().next().expect("one for all namespaces");
        let metrics = Arc::new(Metrics::new(false));
        let context = Arc::new(Context::new(
            cluster.with_clock(clock),
            settings,
            metrics,
            objects,
            reporter,
            Rights::default(),
        ));
        let stop = CancellationToken::new();
        let planned = tokio::spawn(planner::plan_until(context.clone(), stop.clone()));
        let published = context.clone();
        let published = tokio::spawn(async move { published.publish_until(stop).await });
        let mut writer = scope.writer;
        writer.apply_watcher_event(&Event::Init);
        writer.apply_watcher_event(&Event::InitDone);
        self.operator = Some(Operator {
            context,
            writer,
            answers,
            tasks: vec![planned, published],
            seen: 0,
            known: BTreeMap::new(),
            due: BTreeMap::new(),
            passes: FuturesUnordered::new(),
            running: BTreeSet::new(),
        });
    }

    fn client(&self, line: &Line) -> Client {
        if self.patient {
            let retrying = RetryLayer::new(RetryPolicy::server_retry()).layer(line.clone());
            Client::new(ServiceBuilder::new().service(retrying), "default")
        } else {
            Client::new(line.clone(), "default")
        }
    }

    /// The operator is gone, with all that it remembers.
    pub fn stop(&mut self) {
        self.wire.cut();
        self.operator = None;
    }

    /// Lets time pass until something is so; the error says that it never was.
    pub async fn until(&mut self, limit: Duration, is: impl Fn(&Self) -> bool) -> Result<(), String> {
        let end = Instant::now() + limit;
        loop {
            let next = self.world.step();
            self.listen();
            if is(self) {
                return Ok(());
            }
            if Instant::now() >= end {
                return Err(format!("not within {} s", limit.as_secs()));
            }
            let world_next =
                next.map(|at| self.began + Duration::from_secs(u64::try_from(at - epoch().timestamp()).unwrap_or(0)));
            self.work(end, world_next).await;
        }
    }

    /// Lets time pass.
    pub async fn wait(&mut self, time: Duration) {
        let end = Instant::now() + time;
        // It never is.
        let _ = self.until(time, |_| Instant::now() > end).await;
    }

    /// Works until something happens.
    async fn work(&mut self, end: Instant, world: Option<Instant>) {
        let stop = self.wire.stop.clone();
        let wrote = self.wire.wrote.clone();
        let Some(operator) = &mut self.operator else {
            sleep_until(end.min(Instant::now() + RESTART)).await;
            return;
        };
        operator.begin_passes();
        let due = operator.next_due();
        let wake = [Some(end), world, due, self.deaf.map(|(_, until)| until)]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(end);
        tokio::select! {
            biased;
            () = stop.notified() => {
                self.stop();
                self.crashes += 1;
                self.dead_for(RESTART).await;
                self.start();
            }
            Some((key, action)) = operator.passes.next(), if !operator.passes.is_empty() => operator.passed(key, &action),
            Some(object) = operator.answers.next() => {
                operator.wake((object.namespace.unwrap_or_default(), object.name), Instant::now());
            }
            () = wrote.notified() => {}
            () = sleep_until(wake) => {}
        }
    }

    /// The world goes on without the operator.
    async fn dead_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.world.step();
            sleep_until(end.min(Instant::now() + Duration::from_secs(1))).await;
        }
    }

    /// Hands the operator what its watches bring.
    fn listen(&mut self) {
        let Some(operator) = &mut self.operator else { return };
        let now = Instant::now();
        if let Some((from, until)) = self.deaf
            && now >= from
        {
            if now < until {
                return;
            }
            // Listed anew: everything that is there wakes its object.
            self.deaf = None;
            let all: Vec<Key> = operator.known.keys().cloned().collect();
            for key in all {
                operator.wake(key, now);
            }
        }
        let changes = self.server.changes_since(operator.seen);
        operator.seen = self.server.version();
        for change in changes {
            if change.plural == "perfvalidations" {
                operator.hear(change.kind, (change.namespace, change.name), &change.object, now);
            } else if WATCHED.contains(&change.plural.as_str()) {
                if let Some(owner) = change.object["metadata"]["labels"]["perfvalidation.dev/name"].as_str() {
                    operator.wake((change.namespace, owner.to_owned()), now + DEBOUNCE);
                }
            } else if change.plural == "customresourcedefinitions" {
                let all: Vec<Key> = operator.known.keys().cloned().collect();
                for key in all {
                    operator.wake(key, now + DEBOUNCE);
                }
            }
        }
    }
}

impl Operator {
    fn hear(&mut self, kind: &str, key: Key, object: &Value, now: Instant) {
        let object: Guarded = serde::Deserialize::deserialize(object).expect("an object has metadata");
        if kind == "DELETED" {
            self.context.saw_go(&object);
            self.writer.apply_watcher_event(&Event::Delete(object));
            self.known.remove(&key);
            self.due.remove(&key);
            return;
        }
        self.context.saw(&object);
        self.writer.apply_watcher_event(&Event::Apply(object.clone()));
        self.known.insert(key.clone(), Arc::new(object));
        self.wake(key, now + DEBOUNCE);
    }

    fn wake(&mut self, key: Key, at: Instant) {
        self.due.entry(key).and_modify(|due| *due = at.min(*due)).or_insert(at);
    }

    fn next_due(&self) -> Option<Instant> {
        let waiting = self.due.iter().filter(|(key, _)| !self.running.contains(*key));
        waiting.map(|(_, due)| *due).min()
    }

    fn begin_passes(&mut self) {
        let now = Instant::now();
        let ready = self
            .due
            .iter()
            .filter(|(key, due)| **due <= now && !self.running.contains(*key));
        let ready: Vec<Key> = ready.map(|(key, _)| key.clone()).collect();
        for key in ready.into_iter().take(WORKERS.saturating_sub(self.running.len())) {
            self.due.remove(&key);
            let Some(object) = self.known.get(&key).cloned() else {
                continue;
            };
            let context = self.context.clone();
            self.running.insert(key.clone());
            let pass = async move {
                let Ok(action) = reconcile(object, context).await;
                (key, action)
            };
            self.passes.push(pass.boxed());
        }
    }

    fn passed(&mut self, key: Key, action: &Action) {
        self.running.remove(&key);
        if let Some(pause) = pause(action) {
            self.wake(key, Instant::now() + pause);
        }
    }
}

/// The pause that an action asks for; kube shows it to its own `Controller` only.
fn pause(action: &Action) -> Option<Duration> {
    let shown = format!("{action:?}");
    let text = shown.split_once("Some(")?.1.split_once(')')?.0;
    let units = [("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let (number, unit) = units
        .into_iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))?;
    Some(Duration::from_secs_f64(number.parse::<f64>().expect("a number") * unit))
}

/// What users do.
impl Rig {
    pub fn apply(&self, name: &str, spec: &Value) {
        self.server.put(json!({
            "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation",
            "metadata": {"name": name, "namespace": NAMESPACE}, "spec": complete(spec),
        }));
    }

    pub fn get(&self, name: &str) -> Option<Value> {
        self.server.get("perfvalidations", NAMESPACE, name)
    }

    pub fn phase(&self, name: &str) -> String {
        let object = self.get(name).unwrap_or_default();
        object["status"]["phase"].as_str().unwrap_or_default().to_owned()
    }

    pub fn edit(&self, name: &str, change: impl FnOnce(&mut Value)) {
        if self.get(name).is_some() {
            self.server.edit("perfvalidations", NAMESPACE, name, change);
        }
    }

    pub fn annotate(&self, name: &str, key: &str, value: Option<&str>) {
        self.edit(name, |object| {
            let key = format!("perfvalidation.dev/{key}");
            if !object["metadata"]["annotations"].is_object() {
                object["metadata"]["annotations"] = json!({});
            }
            let annotations = object["metadata"]["annotations"].as_object_mut().expect("made above");
            match value {
                Some(value) => annotations.insert(key, value.into()),
                None => annotations.remove(&key),
            };
        });
    }
}

/// A spec as admission would store it: with its defaults.
fn complete(spec: &Value) -> Value {
    let spec: perfval_api::PerfValidationSpec = serde_json::from_value(spec.clone()).expect("a spec");
    serde_json::to_value(spec).expect("it is JSON")
}
