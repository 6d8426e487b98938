use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use perfval_operator::error::Error;
use perfval_operator::health::{Health, serve};
use perfval_operator::metrics::OperatorMetrics;
use perfval_operator::objects;
use perfval_operator::rights::Rights;
use perfval_testkit::api_server::{ApiServer, Fault};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{Operator, eventually, manifest, reaches};

async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it answers");
    answer
}

async fn start_serving(health: &Health) -> (SocketAddr, CancellationToken, JoinHandle<Result<(), Error>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let end = CancellationToken::new();
    let serving = tokio::spawn(serve(listener, health.clone(), true, end.clone()));
    (address, end, serving)
}

#[tokio::test]
async fn a_follower_is_ready_and_a_leader_once_it_has_listed_the_objects() {
    let server = ApiServer::new();
    server.put(manifest("waits"));
    let (objects, scopes) = objects::watched(vec![Some(crate::NAMESPACE.to_owned())]);
    let health = Health::new(Arc::new(OperatorMetrics::new(true)), objects.clone(), Rights::default());
    let (address, end, serving) = start_serving(&health).await;

    assert!(get(address, "/healthz").await.starts_with("HTTP/1.1 200"));
    assert!(
        get(address, "/readyz").await.starts_with("HTTP/1.1 200"),
        "a follower stands by"
    );
    health.leads();
    assert!(
        get(address, "/readyz").await.starts_with("HTTP/1.1 503"),
        "nothing is listed yet"
    );

    let operator = Operator::start_in(&server, objects, scopes);
    reaches(&server, "waits", "Pending").await;
    assert!(get(address, "/readyz").await.starts_with("HTTP/1.1 200"));
    let metrics = get(address, "/metrics").await;
    for line in [
        "perfvalidation_leader 1",
        "perfvalidation_active_runs{phase=\"Pending\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} is missing in\n{metrics}");
    }
    drop(operator);
    end.cancel();
    serving.await.unwrap().unwrap();
}

// The clock is paused: it jumps to the next timer whenever every task waits.
#[tokio::test(start_paused = true)]
async fn a_silent_connection_ends() {
    let (objects, _scopes) = objects::watched(vec![None]);
    let health = Health::new(Arc::new(OperatorMetrics::new(true)), objects, Rights::default());
    let (address, end, serving) = start_serving(&health).await;
    let mut silent = TcpStream::connect(address).await.expect("it listens");
    let mut byte = [0];
    let ended = timeout(Duration::from_hours(1), silent.read(&mut byte)).await;
    assert_eq!(ended.expect("it ends").expect("it is closed"), 0);
    end.cancel();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_object_of_another_namespace_is_left_alone() {
    let server = ApiServer::new();
    let mut elsewhere = manifest("elsewhere");
    elsewhere["metadata"]["namespace"] = "others".into();
    server.put(elsewhere);
    server.put(manifest("ours"));
    let (objects, scopes) = objects::watched(vec![Some(crate::NAMESPACE.to_owned()), Some("empty".to_owned())]);
    let _operator = Operator::start_in(&server, objects, scopes);
    reaches(&server, "ours", "Pending").await;
    let elsewhere = server.get("perfvalidations", "others", "elsewhere").unwrap();
    assert_eq!(elsewhere["status"]["observedGeneration"], -1, "{elsewhere}");
    let of_others = |call: &&perfval_testkit::api_server::Call| call.namespace.as_deref() == Some("others");
    assert_eq!(server.calls().iter().find(of_others), None);
}

#[tokio::test]
async fn a_missing_right_is_named_by_leader_and_follower() {
    let server = ApiServer::new();
    server.fail(Fault::refuse("list", "perfvalidations", 403));
    let (objects, _scopes) = objects::watched(vec![None]);
    let (metrics, rights) = (Arc::new(OperatorMetrics::new(true)), Rights::default());
    let _looking = crate::rights::looking(&server, &rights, &metrics);
    let health = Health::new(metrics, objects, rights.clone());
    let (address, end, serving) = start_serving(&health).await;
    eventually(&server, "known", |_| rights.complaint().is_some()).await;
    for _ in ["follower", "leader"] {
        let answer = get(address, "/readyz").await;
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(
            answer.contains("list perfvalidations.perfvalidation.dev (cluster-wide)"),
            "{answer}"
        );
        health.leads();
    }
    assert!(
        get(address, "/healthz").await.starts_with("HTTP/1.1 200"),
        "a restart grants nothing"
    );
    end.cancel();
    serving.await.unwrap().unwrap();
}
