//! The process's loop against an API server in memory: what wakes it, what it reports, and what it leaves alone.

mod baseline;
mod blocked;
mod deaths;
mod deletion;
mod dynamo_later;
mod health;
mod lease;
mod nodes;
mod older_crd;
mod panics;
mod planning;
mod policy;
mod queueing;
mod quiet;
mod resting;
mod rights;
mod saving;
mod unreadable;
mod unrecorded;
mod watches;

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use perfval_cluster::{Cluster, EndpointAccess, Wakeups};
use perfval_operator::context::Context;
use perfval_operator::fleet;
use perfval_operator::metrics::OperatorMetrics;
use perfval_operator::objects::{self, Objects, WatchScope};
use perfval_operator::planner;
use perfval_operator::rights::Rights;
use perfval_operator::streams;
use perfval_run::Settings;
use perfval_testkit::api_server::ApiServer;
use perfval_testkit::inventory::Cluster as Hardware;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

const NAMESPACE: &str = "perf";

/// A client whose every answer takes a while, so that passes over several objects really overlap.
fn client(server: &ApiServer) -> Client {
    let slow = server.clone().map_future(|answer| async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        answer.await
    });
    Client::new(slow, "default")
}

/// What the passes share, and the answers of probes as they come.
fn context(server: &ApiServer, objects: Objects, rights: Rights) -> (Arc<Context>, Wakeups) {
    let (context, _, answers) = context_through(&client(server), objects, rights);
    (Arc::new(context), answers)
}

/// The same, with a client of the passes.
fn context_through(client: &Client, objects: Objects, rights: Rights) -> (Context, Arc<OperatorMetrics>, Wakeups) {
    let (cluster, answers) = Cluster::new(
        client.clone(),
        client.clone(),
        EndpointAccess::ServiceProxy,
        "test".to_owned(),
    );
    let settings = Settings {
        aiperf_image: Some("localhost/aiperf:test".to_owned()),
        ..Settings::default()
    };
    let metrics = Arc::new(OperatorMetrics::new(true));
    let context = Context::new(cluster, settings, metrics.clone(), objects, rights);
    (context, metrics, answers)
}

/// The operator, at work on a server until dropped.
struct Operator {
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
    metrics: Arc<OperatorMetrics>,
}

impl Operator {
    fn start(server: &ApiServer) -> Self {
        let (objects, scopes) = objects::watched(vec![None]);
        Self::start_in(server, objects, scopes)
    }

    fn start_in(server: &ApiServer, objects: Objects, scopes: Vec<WatchScope>) -> Self {
        Self::start_through(server, &client(server), objects, scopes, Rights::default())
    }

    /// Its passes use this client.
    fn start_through(
        server: &ApiServer,
        client: &Client,
        objects: Objects,
        scopes: Vec<WatchScope>,
        rights: Rights,
    ) -> Self {
        let (context, metrics, answers) = context_through(client, objects.clone(), rights);
        Self::start_context(server, context, metrics, answers, objects, scopes)
    }

    fn start_context(
        server: &ApiServer,
        context: Context,
        metrics: Arc<OperatorMetrics>,
        answers: Wakeups,
        objects: Objects,
        scopes: Vec<WatchScope>,
    ) -> Self {
        let stop = CancellationToken::new();
        let context = Arc::new(context);
        let mut tasks = vec![tokio::spawn(async move { objects.wake_from(answers).await })];
        tasks.push(tokio::spawn(planner::plan_until(context.clone(), stop.clone())));
        tasks.push(tokio::spawn(fleet::work_until(
            context.clone(),
            client(server),
            stop.clone(),
        )));
        let publishing = (context.clone(), stop.clone());
        tasks.push(tokio::spawn(
            async move { publishing.0.publish_until(publishing.1).await },
        ));
        for scope in scopes {
            tasks.push(tokio::spawn(streams::reconcile_all(
                scope,
                client(server),
                context.clone(),
                8,
                stop.clone(),
            )));
        }
        Self { stop, tasks, metrics }
    }

    fn metrics(&self) -> &OperatorMetrics {
        &self.metrics
    }

    /// Ends it at once; every pass under way is dropped.
    async fn end(mut self) {
        for task in std::mem::take(&mut self.tasks) {
            task.abort();
            // An aborted task says so.
            let _ = task.await;
        }
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.stop.cancel();
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Waits until the server is as described, and shows the objects when it never is.
async fn eventually(server: &ApiServer, what: &str, is: impl Fn(&ApiServer) -> bool) {
    let waiting = async {
        while !is(server) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(Duration::from_mins(1), waiting).await.is_err() {
        let objects = server.objects("perfvalidations");
        panic!(
            "never: {what}\n{}",
            serde_json::to_string_pretty(&objects).expect("it is JSON")
        );
    }
}

/// Waits until the run of an object is in a phase.
async fn reaches(server: &ApiServer, name: &str, wanted: &str) {
    let what = format!("{name} is in {wanted}");
    eventually(server, &what, |server| phase(server, name) == wanted).await;
}

/// Waits until the run of an object has its deployment.
async fn is_deployed(server: &ApiServer, name: &str) {
    eventually(server, "it is deployed", |server| {
        phase(server, name) == "WaitingForReady" && !server.objects("dynamographdeployments").is_empty()
    })
    .await;
}

/// Waits until an object is gone.
async fn goes(server: &ApiServer, name: &str) {
    eventually(server, "it is gone", |server| {
        server.get("perfvalidations", NAMESPACE, name).is_none()
    })
    .await;
}

/// Waits until an object has a reason.
async fn has_reason(server: &ApiServer, name: &str, wanted: &str) {
    let what = format!("{name} has the reason {wanted}");
    eventually(server, &what, |server| reason(server, name) == wanted).await;
}

/// Changes a Job that has the label of an object, so that the operator looks at the object again.
fn change_child(server: &ApiServer, name: &str) {
    let labels = json!({"perfvalidation.dev/name": name, "change": server.version().to_string()});
    let metadata = json!({"name": "child", "namespace": NAMESPACE, "labels": labels});
    server.put(json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}));
}

/// Number of writes of the objects of a kind and of their statuses.
fn count_writes(server: &ApiServer, plural: &str) -> usize {
    let calls = server.calls().into_iter();
    calls
        .filter(|call| call.writes() && call.resource.starts_with(plural))
        .count()
}

/// A manifest that passes every prerequisite.
fn manifest(name: &str) -> Value {
    json!({
        "apiVersion": "perfvalidation.dev/v1alpha1",
        "kind": "PerfValidation",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "model": {"name": "lab/tiny"},
            "workload": {"dynamo": {"image": "localhost/dynamo:1.4.2"}},
            "gates": [{"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "5"}],
        },
    })
}

/// What the operator has written; the definition's default is not its word.
fn status(server: &ApiServer, name: &str) -> Value {
    let status = server.get("perfvalidations", NAMESPACE, name).unwrap_or_default()["status"].clone();
    if status["observedGeneration"] == -1 {
        Value::Null
    } else {
        status
    }
}

fn phase(server: &ApiServer, name: &str) -> String {
    status(server, name)["phase"].as_str().unwrap_or_default().to_owned()
}

fn condition(server: &ApiServer, name: &str, kind: &str) -> Option<Value> {
    let conditions = status(server, name)["conditions"].clone();
    conditions
        .as_array()?
        .iter()
        .find(|condition| condition["type"] == kind)
        .cloned()
}

fn reason(server: &ApiServer, name: &str) -> String {
    status(server, name)["reason"].as_str().unwrap_or_default().to_owned()
}

fn is_blocked(server: &ApiServer, name: &str) -> bool {
    !status(server, name)["operatorState"]["blocked"].is_null()
}

/// A cluster with Dynamo and one node with GPUs.
fn with_gpus(count: usize) -> ApiServer {
    with_hardware(&Hardware::of_gpus(count))
}

/// A cluster with Dynamo and two nodes with GPUs: one may be held for an object that comes no further.
fn with_two_nodes() -> ApiServer {
    with_hardware(&Hardware::of_nodes(&["n1", "n2"]))
}

fn with_hardware(hardware: &Hardware) -> ApiServer {
    let server = ApiServer::new();
    server.install_dynamo(&["v1alpha1", "v1beta1"], Some("1.4.2"));
    for object in hardware.objects() {
        server.put(object);
    }
    server
}
