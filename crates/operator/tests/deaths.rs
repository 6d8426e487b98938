//! The program itself, killed in the pass of one object: the third time it leaves that object aside.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::Method;
use kube::client::Body;
use perfval_testkit::api_server::ApiServer;
use perfval_testkit::inventory::Cluster;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tower::Service as _;

const LIMIT: Duration = Duration::from_mins(1);

/// Serves the API server on a socket; patches of objects called `victim` are counted and never answered. The answer is its
/// address.
async fn served(server: &ApiServer, patches: &Arc<AtomicUsize>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it has one");
    let (server, patches) = (server.clone(), patches.clone());
    let answer = async move |request: Request| {
        let (head, body) = request.into_parts();
        if head.method == Method::PATCH && head.uri.path().ends_with("/victim") {
            patches.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<()>().await;
        }
        let body = to_bytes(body, 8 << 20).await.expect("a body");
        let request = Request::from_parts(head, Body::from(body.to_vec()));
        let Ok(answer) = server.clone().call(request).await;
        answer.map(axum::body::Body::new)
    };
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    format!("http://{address}")
}

struct Process(Child);

impl Process {
    fn start(folder: &Path, address: &str) -> Self {
        let kubeconfig = folder.join("kubeconfig");
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": address}}],
            "users": [{"name": "c", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        });
        fs::write(&kubeconfig, config.to_string()).expect("a kubeconfig");
        let log = fs::File::create(folder.join("log")).expect("a log");
        let child = Command::new(env!("CARGO_BIN_EXE_perfvalidation-operator"))
            .args([
                "run",
                "--metrics-addr",
                "127.0.0.1:0",
                "--identity",
                "me",
                "--benchmark-images",
                "localhost",
                "--in-flight-file",
            ])
            .arg(folder.join("in-flight"))
            .env("KUBECONFIG", kubeconfig)
            .stdout(log.try_clone().expect("a log"))
            .stderr(Stdio::from(log))
            .spawn()
            .expect("the program runs");
        Self(child)
    }

    /// As the kernel does where memory is short.
    fn kill(mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ends");
    }

    /// As the kubelet does.
    fn stop(mut self) -> ExitStatus {
        let id = self.0.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status().expect("kill");
        self.0.wait().expect("it ends")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn eventually(what: &str, folder: &Path, is: impl Fn() -> bool) {
    let waiting = async {
        while !is() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(LIMIT, waiting).await;
    let log = || fs::read_to_string(folder.join("log")).unwrap_or_default();
    assert!(waited.is_ok(), "never: {what}\n{}", log());
}

fn put(server: &ApiServer, name: &str) {
    server.put(json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation",
        "metadata": {"name": name, "namespace": "perf"},
        "spec": {
            "model": {"name": "lab/tiny"}, "workload": {"dynamo": {"image": "localhost/dynamo:1.4.2"}},
            "benchmark": {"image": "localhost/aiperf:test"},
            "gates": [{"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "5"}],
        },
    }));
}

fn status(server: &ApiServer, name: &str) -> Value {
    server.get("perfvalidations", "perf", name).unwrap_or_default()["status"].clone()
}

fn is_set_aside(server: &ApiServer, name: &str) -> bool {
    let conditions = status(server, name)["conditions"].clone();
    let mut conditions = conditions.as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Reconciling" && condition["reason"] == "OperatorBug")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_in_whose_pass_the_program_was_killed_twice_is_set_aside_and_the_others_go_on() {
    let server = ApiServer::new();
    server.install_dynamo(&["v1alpha1", "v1beta1"], Some("1.4.2"));
    Cluster::of_nodes(&["n1", "n2"])
        .objects()
        .into_iter()
        .for_each(|object| drop(server.put(object)));
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let patches = Arc::new(AtomicUsize::new(0));
    let address = served(&server, &patches).await;
    let in_flight = || fs::read_to_string(folder.join("in-flight")).unwrap_or_default();

    put(&server, "victim");
    for death in 1..=2 {
        let process = Process::start(folder, &address);
        eventually("its pass is under way", folder, || {
            patches.load(Ordering::SeqCst) == death
        })
        .await;
        process.kill();
        assert!(in_flight().contains("perf/victim"), "{}", in_flight());
    }
    put(&server, "other");
    let process = Process::start(folder, &address);
    eventually("it is set aside", folder, || is_set_aside(&server, "victim")).await;
    eventually("the other goes on", folder, || {
        status(&server, "other")["phase"] == "WaitingForReady"
    })
    .await;
    let ended = process.stop();
    assert!(ended.success(), "{ended}");
    assert_eq!(
        in_flight().trim(),
        "",
        "a process that ends by itself leaves no suspects"
    );
}
