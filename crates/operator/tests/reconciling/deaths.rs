//! Processes that died in passes of one object.

use std::fs;
use std::path::{Path, PathBuf};

use futures::future::pending;
use http::Request;
use kube::Client;
use kube::client::Body;
use perfval_operator::leader::Candidate;
use perfval_operator::objects;
use perfval_operator::rights::Rights;
use perfval_operator::suspects::Suspects;
use perfval_testkit::api_server::ApiServer;
use serde_json::{Value, json};
use tower::{Service as _, service_fn};

use crate::{
    NAMESPACE, Operator, condition, context_through, eventually, goes, is_blocked, manifest, phase, reaches,
    with_two_nodes,
};

/// A client that never gets an answer about the finalizer of an object called `victim`: its pass is under way until the process ends.
fn hanging(server: &ApiServer) -> Client {
    let server = server.clone();
    let service = service_fn(move |request: Request<Body>| {
        let of_victim = request.method() == http::Method::PATCH && request.uri().path().ends_with("/victim");
        let answer = server.clone().call(request);
        async move {
            if of_victim {
                pending::<()>().await;
            }
            answer.await
        }
    });
    Client::new(service, "default")
}

/// A process that leads, as `perfvalidation-operator run` does.
async fn lead(server: &ApiServer, client: &Client, file: &Path) -> Operator {
    let suspects = Suspects::new(Some(file));
    let candidate = Candidate::new(server.client(), "operators", "lease", "me".to_owned());
    candidate.with_suspects(suspects.clone()).acquire().await;
    let (objects, scopes) = objects::watched(vec![None]);
    let (context, metrics, answers) = context_through(client, objects.clone(), Rights::default());
    let context = context.with_suspects(suspects);
    Operator::start_context(server, context, metrics, answers, objects, scopes)
}

/// A process leads, and dies in the pass of `victim`: nothing of it is dropped.
async fn die(server: &ApiServer, file: &Path) {
    let operator = lead(server, &hanging(server), file).await;
    eventually(server, "its pass is under way", |_| {
        in_flight(file).contains("perf/victim")
    })
    .await;
    let left = fs::read(file).expect("the file");
    operator.end().await;
    fs::write(file, left).expect("the file");
}

fn in_flight(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_default().trim().to_owned()
}

fn is_set_aside(server: &ApiServer, name: &str) -> bool {
    condition(server, name, "Reconciling").is_some_and(|blocked| blocked["reason"] == "OperatorBug")
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("in-flight");
    (folder, file)
}

#[tokio::test]
async fn an_object_in_whose_pass_two_processes_died_is_set_aside_until_it_is_edited() {
    let server = with_two_nodes();
    let (_folder, file) = folder();
    server.put(manifest("victim"));
    die(&server, &file).await;
    die(&server, &file).await;
    assert!(!is_blocked(&server, "victim"));

    let _operator = lead(&server, &server.client(), &file).await;
    server.put(manifest("other"));
    eventually(&server, "it is set aside", |server| is_set_aside(server, "victim")).await;
    eventually(&server, "an event says so", |server| {
        let is_ours = |event: &Value| event["reason"] == "OperatorBug" && event["regarding"]["name"] == "victim";
        server.objects("events").iter().any(is_ours)
    })
    .await;
    reaches(&server, "other", "WaitingForReady").await;
    assert!(is_set_aside(&server, "victim"));

    server.edit("perfvalidations", NAMESPACE, "victim", |victim| {
        victim["spec"]["gates"][0]["threshold"] = "6".into();
    });
    eventually(&server, "it is taken back", |server| {
        !is_blocked(server, "victim") && !phase(server, "victim").is_empty()
    })
    .await;
}

#[tokio::test]
async fn an_object_that_is_set_aside_goes_when_it_is_deleted() {
    let server = with_two_nodes();
    let (_folder, file) = folder();
    server.put(manifest("victim"));
    die(&server, &file).await;
    die(&server, &file).await;
    let _operator = lead(&server, &server.client(), &file).await;
    eventually(&server, "it is set aside", |server| is_set_aside(server, "victim")).await;
    // As if a pass had got further.
    server.edit("perfvalidations", NAMESPACE, "victim", |victim| {
        victim["metadata"]["finalizers"] = json!(["perfvalidation.dev/cleanup"]);
    });
    server.delete("perfvalidations", NAMESPACE, "victim");
    goes(&server, "victim").await;
}

#[tokio::test]
async fn an_object_whose_pass_ends_after_a_death_is_as_any_other() {
    let server = with_two_nodes();
    let (_folder, file) = folder();
    server.put(manifest("victim"));
    server.put(manifest("other"));
    die(&server, &file).await;
    let counted = |server: &ApiServer| {
        let lease = server.get("leases", "operators", "lease").expect("the lease");
        lease["metadata"]["annotations"]["perfvalidation.dev/deaths"]
            .as_str()
            .map(str::to_owned)
    };
    assert_eq!(counted(&server), None);
    let operator = lead(&server, &server.client(), &file).await;
    assert!(counted(&server).is_some_and(|deaths| deaths.contains("perf/victim")));
    eventually(&server, "both go on", |server| {
        [phase(server, "victim"), phase(server, "other")] == ["WaitingForReady", "WaitingForReady"]
    })
    .await;
    operator.end().await;
    assert_eq!(in_flight(&file), "", "a process that ends by itself leaves no suspects");
    assert!(!is_set_aside(&server, "victim"));
}
