//! A cluster, the operator in it, and their time.
//!
//! The clock is tokio's, paused: it jumps to the next timer whenever every task waits, so that hours take milliseconds.

mod operator;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures::FutureExt as _;
use http::Request;
use kube::Client;
use kube::client::Body;
use kube::client::retry::RetryPolicy;
use perfval_operator::server_clock::{ServerClock, Watched};
use perfval_run::Settings;
use perfval_testkit::api_server::{ApiServer, Line, Wire};
use perfval_testkit::inventory::Cluster as Hardware;
use perfval_testkit::world::World;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};
use tower::retry::RetryLayer;
use tower::{Layer as _, ServiceBuilder, ServiceExt as _};

pub use operator::Operator;

pub const NAMESPACE: &str = "perf";
/// A process that ended is there again after this time.
const RESTART: Duration = Duration::from_secs(2);

/// Steps of a world whose operators are processes of their own.
const TICK: Duration = Duration::from_millis(100);

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
    pub settings: Settings,
    /// How far the API server's own clock was set ahead since the beginning (s).
    pub server_ahead: Arc<AtomicI64>,
    /// How far the clock of the operator's machine is ahead of the API server's (s).
    pub machine: i64,
    operator: Option<Operator>,
}

fn epoch() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).expect("a time")
}

impl Rig {
    /// Two nodes with two GPUs each, and Dynamo at these versions.
    pub fn new(versions: &[&str], operator_version: &str) -> Self {
        let server = ApiServer::new();
        let (began, server_ahead) = (Instant::now(), Arc::new(AtomicI64::new(0)));
        let ahead = server_ahead.clone();
        let clock = move || {
            let passed = TimeDelta::from_std(began.elapsed()).expect("short");
            (epoch() + passed).timestamp() + ahead.load(Ordering::Relaxed)
        };
        let world = World::new(&server, Arc::new(clock));
        server.install_dynamo(versions, Some(operator_version));
        for object in Hardware::of_nodes_with(&["n1", "n2"], 2).objects() {
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
            settings: Settings {
                aiperf_image: Some("localhost/aiperf:test".to_owned()),
                benchmark_images: vec!["localhost/aiperf".to_owned()],
                ..Settings::default()
            },
            server_ahead,
            machine: 0,
            operator: None,
        }
    }

    /// Starts the operator, if it does not run.
    pub fn start(&mut self) {
        if self.operator.is_none() {
            let clock = self.clock_of(self.machine);
            let line = clock.layer(self.wire.connect());
            let impatient = Client::new(line.clone(), "default");
            let settings = self.settings.clone();
            self.operator = Some(Operator::start(self.client(&line), impatient, clock.clock(), settings));
        }
    }

    /// The clock of a process, on a machine whose own clock is so far ahead (s). It knows what the lists showed that watches
    /// begin with.
    pub fn clock_of(&self, ahead: i64) -> ServerClock {
        let began = self.began;
        let machine =
            move || epoch() + TimeDelta::from_std(began.elapsed()).expect("short") + TimeDelta::seconds(ahead);
        let clock = ServerClock::new(Arc::new(machine));
        let list = Request::get("/version").body(Body::empty()).expect("well-formed");
        let listed = clock.layer(self.server.clone()).oneshot(list).now_or_never();
        assert!(listed.is_some(), "it is in memory");
        clock
    }

    /// Seconds since the API server made an object.
    pub fn age_of(&self, object: &Value) -> i64 {
        let made = object["metadata"]["creationTimestamp"].as_str().unwrap_or_default();
        let made: DateTime<Utc> = made.parse().expect("a time");
        let passed = i64::try_from(self.began.elapsed().as_secs()).expect("short");
        (epoch() - made).num_seconds() + passed + self.server_ahead.load(Ordering::Relaxed)
    }

    fn client(&self, line: &Watched<Line>) -> Client {
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
            let world_began = epoch().timestamp() + self.server_ahead.load(Ordering::Relaxed);
            let world_next =
                next.map(|at| self.began + Duration::from_secs(u64::try_from(at - world_began).unwrap_or(0)));
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
            sleep_until(end.min(Instant::now() + TICK)).await;
            return;
        };
        let wake = [Some(end), world, self.deaf.map(|(_, until)| until)];
        let wake = wake.into_iter().flatten().min().unwrap_or(end);
        tokio::select! {
            biased;
            () = stop.notified() => {
                self.stop();
                self.crashes += 1;
                self.dead_for(RESTART).await;
                self.start();
            }
            () = operator.work(wake) => {}
            () = wrote.notified() => {}
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
            self.deaf = None;
            operator.list_children();
            operator.wake_all(now);
        }
        operator.listen(&self.server);
    }
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

/// What administrators do.
impl Rig {
    /// As an uninstallation does: the objects go with their CRD, whoever held them.
    pub fn remove_dynamo(&self) {
        let plural = "dynamographdeployments";
        if !self.server.serves(plural) {
            return;
        }
        for object in self.server.objects(plural) {
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            self.server.edit(plural, NAMESPACE, &name, |object| {
                object["metadata"]["finalizers"] = json!([]);
            });
            self.server.delete(plural, NAMESPACE, &name);
        }
        self.server
            .delete("customresourcedefinitions", "", "dynamographdeployments.nvidia.com");
        self.server.withdraw(plural);
    }

    /// Everything in the namespace is deleted, and nothing is created in it any more.
    pub fn delete_namespace(&self) {
        self.server.terminate(NAMESPACE);
        let plurals = [
            "perfvalidations",
            "configmaps",
            "jobs",
            "services",
            "resourceclaimtemplates",
            "dynamographdeployments",
            "persistentvolumeclaims",
            "pods",
            "resourceclaims",
        ];
        for plural in plurals.into_iter().filter(|plural| self.server.serves(plural)) {
            for object in self.server.objects(plural) {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                self.server.delete(plural, NAMESPACE, name);
            }
        }
    }
}

/// A spec as admission would store it: with its defaults.
fn complete(spec: &Value) -> Value {
    let spec: perfval_api::PerfValidationSpec = serde_json::from_value(spec.clone()).expect("a spec");
    serde_json::to_value(spec).expect("it is JSON")
}
