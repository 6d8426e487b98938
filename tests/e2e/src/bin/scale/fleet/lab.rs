//! The fleet on the control plane of a lab: etcd, the API server, the controllers, the scheduler and the garbage collector are
//! real, as are the roles of the operator. kwok makes the nodes ready. This program is the kubelet of the runs' pods.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path as PathOf, RawQuery};
use axum::http::StatusCode;
use axum::routing::get;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use kube::core::DynamicObject;
use perfval_e2e::process::Process;
use perfval_e2e::tls::Tls;
use perfval_e2e::{AuditTail, Lab, OPERATOR, eventually};
use perfval_testkit::api_server::{ApiServer, Call, VERBS};
use perfval_testkit::world::World;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::process::Command;

use super::super::crowd::cluster::seconds;
use super::super::{Outcome, real};
use super::hardware::{self, Hardware, OTHERS};
use super::mirror::Mirror;
use super::play::Runs;
use super::scene::delete;
use super::{NAMESPACE, Watched, lock, policy};

/// Namespace and name of the operator's account.
const ACCOUNT: (&str, &str) = ("perfvalidation-system", "perfvalidation-operator");
/// Address of all nodes, and port of their kubelets.
const NODE: &str = "127.0.0.1";
const KUBELET_PORT: u16 = 10_250;
/// Network of the pods, each address of which is this machine's, and port of a frontend.
const PODS: &str = "100.64.0.0/10";
const FRONTEND_PORT: u16 = 8_000;
/// Longest wait until kwok has made all nodes ready.
const READY: Duration = Duration::from_mins(10);
/// Pause between two steps of the kubelet.
const STEP: Duration = Duration::from_millis(200);

/// Fills the cluster and lets the runs play. The answer is a client, and the operator's kubeconfig.
pub async fn open(
    folder: &Path,
    server: &ApiServer,
    hardware: &Hardware,
    runs: Runs,
    watched: Arc<Mutex<Watched>>,
) -> Outcome<(Client, PathBuf)> {
    let lab = Lab::connect().await;
    let kubeconfig = account(&lab, folder).await?;
    lab.namespace(NAMESPACE).await;
    lab.namespace_without_runs(OTHERS).await;
    listen(server).await?;
    fill(&lab.client, hardware).await?;
    await_ready_nodes(&lab.client, hardware.nodes).await;
    // It took a third of a core, deleted each pod 2.6 times, and read all pods again and again. The nodes stay ready for a day.
    Process::of_lab("kwok")?.pause()?;
    let mirror = Mirror::start(&lab.client, server, NAMESPACE);
    let tail = AuditTail::new(&lab).await?;
    let kubelet = play(
        lab.client.clone(),
        mirror,
        runs,
        tail,
        watched.clone(),
        hardware.clone(),
    );
    tokio::spawn(async move {
        if let Err(error) = kubelet.await {
            lock(&watched).laws.broken.push(format!("the kubelets ended: {error}"));
        }
    });
    let policies = (
        "perfvalidation.dev/v1alpha1",
        "PerfValidationPolicy",
        "perfvalidationpolicies",
        None,
    );
    let policy: DynamicObject = serde_json::from_value(policy(hardware.nodes))?;
    real::api(&lab.client, policies)
        .create(&PostParams::default(), &policy)
        .await?;
    Ok((lab.client, kubeconfig))
}

/// The account of an installed operator, with its rights.
async fn account(lab: &Lab, folder: &Path) -> Outcome<PathBuf> {
    let (namespace, name) = ACCOUNT;
    let token = lab
        .kubectl(&["create", "token", name, "-n", namespace, "--duration=24h"])
        .await;
    let admin = lab
        .kubectl(&["config", "view", "--raw", "--minify", "--output=json"])
        .await;
    let mut config: Value = serde_json::from_str(&admin)?;
    config["users"][0]["user"] = json!({"token": token.trim()});
    // The operator takes its lease in the namespace of its kubeconfig.
    config["contexts"][0]["context"]["namespace"] = json!(namespace);
    let path = folder.join("kubeconfig");
    fs::write(&path, config.to_string())?;
    Ok(path)
}

async fn fill(client: &Client, hardware: &Hardware) -> Outcome<()> {
    let all = 0..hardware.nodes;
    let nodes = all.clone().map(|index| {
        let mut node = hardware::node(index);
        node["status"]["addresses"] =
            json!([{"type": "InternalIP", "address": NODE}, {"type": "Hostname", "address": node["metadata"]["name"]}]);
        node["status"]["daemonEndpoints"] = json!({"kubeletEndpoint": {"Port": KUBELET_PORT}});
        node
    });
    real::account(client, OTHERS).await;
    real::write_nodes(client, nodes).await?;
    real::write_slices(client, all.map(hardware::slice)).await?;
    let busy = hardware.busy().map(|(index, _)| hardware::claim(index));
    real::write_claims(client, OTHERS, busy).await?;
    real::write_pods(client, OTHERS, hardware.nodes).await
}

async fn await_ready_nodes(client: &Client, count: usize) {
    let nodes = Api::<Node>::all(client.clone());
    let params = ListParams::default();
    eventually("ready nodes", READY, || async {
        let listed = nodes.list(&params).await.map_err(|error| error.to_string())?;
        let ready = listed.items.iter().filter(|node| is_ready(node)).count();
        if ready == count {
            Ok(())
        } else {
            Err(format!("{ready} of {count}"))
        }
    })
    .await;
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Listens as the kubelets, of which the API server wants logs, and as the frontends.
async fn listen(logs: &ApiServer) -> Outcome<()> {
    let added = Command::new("ip")
        .args(["route", "add", "local", PODS, "dev", "lo"])
        .status()
        .await?;
    if !added.success() {
        return Err(format!("{PODS} cannot become this machine's: {added}").into());
    }
    let (kubelets, _) = Tls::bind(&format!("0.0.0.0:{KUBELET_PORT}")).await?;
    let logs = logs.clone();
    let log = async move |PathOf((namespace, pod, container)): PathOf<(String, String, String)>, RawQuery(query)| {
        let query = query.map(|query| format!("&{query}")).unwrap_or_default();
        let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/log?container={container}{query}");
        log_of(&logs, &path).await
    };
    let kubelet = Router::new().route("/containerLogs/{namespace}/{pod}/{container}", get(log));
    tokio::spawn(async move { axum::serve(kubelets, kubelet).await });
    let frontends = TcpListener::bind(("0.0.0.0", FRONTEND_PORT)).await?;
    let answer = json!({"choices": [{"message": {"role": "assistant", "content": "hello"}}]}).to_string();
    let completion = axum::routing::post(async move || answer.clone());
    let frontend = Router::new().route("/v1/chat/completions", completion);
    tokio::spawn(async move { axum::serve(frontends, frontend).await });
    Ok(())
}

/// The log of a container, which is empty until something is printed.
async fn log_of(logs: &ApiServer, path: &str) -> Result<String, (StatusCode, String)> {
    let request = http::Request::get(path).body(Vec::new());
    let request = request.map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    match logs.client().request_text(request).await {
        Err(kube::Error::Api(refusal)) if refusal.is_not_found() => Ok(String::new()),
        other => other.map_err(|error| (StatusCode::BAD_REQUEST, error.to_string())),
    }
}

/// Runs the pods of the runs for as long as the program lives.
async fn play(
    client: Client,
    mut mirror: Mirror,
    runs: Runs,
    mut log: AuditTail,
    watched: Arc<Mutex<Watched>>,
    hardware: Hardware,
) -> Outcome<()> {
    let server = mirror.server.clone();
    let mut world = World::new(&server, Arc::new(seconds));
    world.play = Some(Box::new(runs));
    loop {
        mirror.follow()?;
        let before = server.version();
        world.run_kubelets();
        mirror.report_pods_since(before).await?;
        // The reads of logs.
        server.take_calls();
        let calls = log.calls(OPERATOR)?.into_iter().filter_map(call).collect();
        let doomed = lock(&watched).step(&server, calls, &hardware);
        for doomed in &doomed {
            delete(&client, doomed).await?;
        }
        tokio::time::sleep(STEP).await;
    }
}

/// A request as the stub notes it; `None` for what it does not know.
fn call(call: perfval_e2e::Call) -> Option<Call> {
    Some(Call {
        verb: VERBS.into_iter().find(|verb| *verb == call.verb)?,
        group: String::new(),
        resource: call.kind,
        namespace: (!call.namespace.is_empty()).then_some(call.namespace),
        name: (!call.name.is_empty()).then_some(call.name),
        dry_run: call.dry_run,
    })
}
