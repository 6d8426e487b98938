//! The operator's own process in a world: its passes and its planner are the real ones, only the watches and the queue of a
//! `Controller` are played, in one order each time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::PartialObjectMeta;
use kube::core::DynamicObject;
use kube::runtime::controller::Action;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use perfval_api::Phase;
use perfval_cluster::{Cluster, Copied, Copies, EndpointAccess, TimeSource, Wakeups};
use perfval_operator::context::Context;
use perfval_operator::controller::reconcile;
use perfval_operator::metrics::OperatorMetrics;
use perfval_operator::objects;
use perfval_operator::rights::Rights;
use perfval_operator::stored::Stored;
use perfval_operator::{planner, sweeper};
use perfval_run::Settings;
use perfval_testkit::api_server::{ApiServer, Changed};
use serde_json::Value;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Passes at once, half of the process's default.
const WORKERS: usize = 8;
/// A child's change starts a pass after this time, with those that come meanwhile.
const DEBOUNCE: Duration = Duration::from_millis(10);
/// Kinds whose changes wake the object that they belong to.
const WATCHED: [&str; 4] = ["jobs", "pods", "resourceclaims", "dynamographdeployments"];
/// Objects in Pending are woken so long after a change of Dynamo's CRD.
const DISCOVERY_LAG: Duration = Duration::from_secs(2);
/// How often a process that works alone looks at what its watches bring.
const LISTENS: Duration = Duration::from_millis(50);

/// Namespace and name of an object.
pub type Key = (String, String);

/// One process of the operator.
pub struct Operator {
    context: Arc<Context>,
    copies: Copies,
    writer: Writer<Stored>,
    answers: Wakeups,
    /// What it does next to its passes.
    besides: BoxFuture<'static, ()>,
    seen: u64,
    known: BTreeMap<Key, Arc<Stored>>,
    due: BTreeMap<Key, Instant>,
    passes: FuturesUnordered<BoxFuture<'static, (Key, Action)>>,
    running: BTreeSet<Key>,
}

impl Operator {
    /// A process that has just begun. `patient` may try again by itself.
    pub fn start(patient: Client, impatient: Client, clock: TimeSource, settings: Settings) -> Self {
        let (cluster, answers) = Cluster::new(patient, impatient, EndpointAccess::ServiceProxy, "test".to_owned());
        let copies = cluster.copies();
        let (objects, scopes) = objects::watched(vec![None]);
        let scope = scopes.into_iter().next().expect("one for all namespaces");
        let metrics = Arc::new(OperatorMetrics::new(false));
        let context = Arc::new(Context::new(
            cluster.with_clock(clock),
            settings,
            metrics,
            objects,
            Rights::default(),
        ));
        let stop = CancellationToken::new();
        let shared = context.clone();
        let besides = async move {
            futures::join!(
                planner::plan_until(shared.clone(), stop.clone()),
                sweeper::sweep_until(shared.clone(), stop.clone()),
                shared.publish_until(stop)
            );
        };
        let mut writer = scope.writer;
        writer.apply_watcher_event(&Event::Init);
        writer.apply_watcher_event(&Event::InitDone);
        list(&copies);
        Self {
            context,
            copies,
            writer,
            answers,
            besides: besides.boxed(),
            seen: 0,
            known: BTreeMap::new(),
            due: BTreeMap::new(),
            passes: FuturesUnordered::new(),
            running: BTreeSet::new(),
        }
    }

    /// Works for as long as it is let.
    pub async fn run(mut self, server: ApiServer) {
        loop {
            self.listen(&server);
            self.work(Instant::now() + LISTENS).await;
        }
    }

    /// Works until something has come of it, and no longer than until then.
    pub async fn work(&mut self, until: Instant) {
        self.begin_passes();
        let wake = self.next_due().map_or(until, |due| due.min(until));
        tokio::select! {
            biased;
            () = &mut self.besides => {}
            Some((key, action)) = self.passes.next(), if !self.passes.is_empty() => self.passed(key, &action),
            Some(object) = self.answers.next() => {
                self.wake((object.namespace.unwrap_or_default(), object.name), Instant::now());
            }
            () = sleep_until(wake) => {}
        }
    }

    /// Hears what the watches bring.
    pub fn listen(&mut self, server: &ApiServer) {
        let now = Instant::now();
        let changes = server.changes_since(self.seen);
        self.seen = server.version();
        for change in changes {
            if change.plural == "perfvalidations" {
                self.hear(change.kind, (change.namespace, change.name), &change.object, now);
            } else if WATCHED.contains(&change.plural.as_str()) {
                match change.plural.as_str() {
                    "jobs" => self.copies.follow(None, &Ok(event_of::<Job>(&change))),
                    "pods" => self.copies.follow(None, &Ok(event_of::<Pod>(&change))),
                    "dynamographdeployments" => self.copies.follow(None, &Ok(event_of::<DynamicObject>(&change))),
                    _ => {}
                }
                if let Some(owner) = change.object["metadata"]["labels"]["perfvalidation.dev/name"].as_str() {
                    self.wake((change.namespace, owner.to_owned()), now + DEBOUNCE);
                }
            } else if change.plural == "customresourcedefinitions" && change.kind != "DELETED" {
                self.wake_if(|object| object.phase() == Some(Phase::Pending), now + DISCOVERY_LAG);
            }
        }
    }

    /// The watches of children list them again.
    pub fn list_children(&self) {
        list(&self.copies);
    }

    /// Everything is listed anew.
    pub fn wake_all(&mut self, at: Instant) {
        self.wake_if(|_| true, at);
    }

    fn wake_if(&mut self, is_wanted: impl Fn(&Stored) -> bool, at: Instant) {
        let wanted = self.known.iter().filter(|(_, object)| is_wanted(object));
        let wanted: Vec<Key> = wanted.map(|(key, _)| key.clone()).collect();
        for key in wanted {
            self.wake(key, at);
        }
    }

    fn hear(&mut self, kind: &str, key: Key, object: &Value, now: Instant) {
        let object: Stored = serde::Deserialize::deserialize(object).expect("an object has metadata");
        if kind == "DELETED" {
            self.context.observe_removal(&object);
            self.writer.apply_watcher_event(&Event::Delete(object));
            self.known.remove(&key);
            self.due.remove(&key);
            return;
        }
        self.context.observe(&object);
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

fn list(copies: &Copies) {
    list_kind::<Pod>(copies);
    list_kind::<Job>(copies);
    list_kind::<DynamicObject>(copies);
}

fn list_kind<K: Copied>(copies: &Copies) {
    copies.follow::<K>(None, &Ok(Event::Init));
    copies.follow::<K>(None, &Ok(Event::InitDone));
}

fn event_of<K: Copied>(change: &Changed) -> Event<PartialObjectMeta<K>> {
    let object = serde::Deserialize::deserialize(&*change.object).expect("an object has metadata");
    match change.kind {
        "DELETED" => Event::Delete(object),
        _ => Event::Apply(object),
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
