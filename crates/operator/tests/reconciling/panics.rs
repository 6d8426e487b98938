//! A panic in the pass of one object.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::Request;
use kube::Client;
use kube::client::Body;
use perfval_operator::objects;
use perfval_operator::rights::Rights;
use perfval_testkit::api_server::ApiServer;
use tower::{Service as _, service_fn};

use crate::{Operator, change_child, condition, eventually, is_blocked, manifest, reaches, with_two_nodes};

/// A client whose pass panics while it puts the finalizer on an object called `victim`, as long as `broken` says so.
fn panicking(server: &ApiServer, broken: &Arc<AtomicBool>) -> Client {
    let (server, broken) = (server.clone(), broken.clone());
    let service = service_fn(move |request: Request<Body>| {
        let of_victim = request.method() == http::Method::PATCH && request.uri().path().ends_with("/victim");
        let broken = broken.clone();
        let answer = server.clone().call(request);
        async move {
            assert!(!of_victim || !broken.load(Ordering::Relaxed), "no number 3");
            answer.await
        }
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn a_panic_in_the_pass_of_one_object_is_written_to_it_and_the_others_go_on() {
    let server = with_two_nodes();
    let broken = Arc::new(AtomicBool::new(true));
    let (objects, scopes) = objects::watched(vec![None]);
    let client = panicking(&server, &broken);
    let operator = Operator::start_through(&server, &client, objects.clone(), scopes, Rights::default());
    server.put(manifest("victim"));
    eventually(&server, "the panic is written", |server| {
        condition(server, "victim", "Reconciling").is_some_and(|blocked| {
            let message = blocked["message"].as_str().unwrap_or_default();
            blocked["reason"] == "OperatorBug" && message.contains("no number 3")
        })
    })
    .await;
    eventually(&server, "an event says so", |server| {
        let is_ours = |event: &serde_json::Value| event["reason"] == "OperatorBug" && event["type"] == "Warning";
        server.objects("events").iter().any(is_ours)
    })
    .await;
    let metrics = objects.scraped(operator.metrics());
    assert!(
        metrics.contains("perfvalidation_reconcile_errors_total{reason=\"PassPanicked\"}"),
        "{metrics}"
    );

    server.put(manifest("other"));
    reaches(&server, "other", "WaitingForReady").await;

    broken.store(false, Ordering::Relaxed);
    change_child(&server, "victim");
    eventually(&server, "taken back", |server| !is_blocked(server, "victim")).await;
}
