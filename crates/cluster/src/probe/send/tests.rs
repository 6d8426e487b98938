use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::*;

fn request(timeout: Duration) -> ProbeRequest {
    ProbeRequest {
        namespace: "perf".into(),
        service: "pv-1-frontend".into(),
        port: 8000,
        model: "lab/tiny-qwen3".into(),
        timeout,
    }
}

#[test]
fn a_frontend_is_named_as_any_pod_resolves_it() {
    let base = Way::dns().base(&request(CONNECT), "cluster.local");
    assert_eq!(base, "http://pv-1-frontend.perf.svc.cluster.local:8000");
}

/// A listener on a free port, and the base of its URLs.
async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    (listener, base)
}

/// A frontend that gives these answers, one a connection, and the first lines of the requests.
async fn frontend(answers: &'static [(&'static str, &'static str)]) -> (String, JoinHandle<Vec<String>>) {
    let (listener, base) = listener().await;
    let requests = tokio::spawn(async move {
        let mut requests = Vec::new();
        for (status, body) in answers {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 4096];
            let read = connection.read(&mut head).await.unwrap();
            let head = String::from_utf8_lossy(&head[..read]);
            requests.push(head.lines().next().unwrap().to_owned());
            let length = body.len();
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
            connection.write_all(answer.as_bytes()).await.unwrap();
        }
        requests
    });
    (base, requests)
}

#[tokio::test]
async fn a_completion_comes_over_plain_http() {
    const HELLO: &str = r#"{"choices":[{"message":{"content":"Hello"}}]}"#;
    let (base, requests) = frontend(&[("404 Not Found", ""), ("200 OK", HELLO)]).await;
    let answer = probe(&Way::dns(), &base, &request(Duration::from_mins(1))).await;
    assert_eq!(answer, ProbeAnswer::Completion);
    let expected = [
        "GET /v1/models/lab/tiny-qwen3/ready HTTP/1.1",
        "POST /v1/chat/completions HTTP/1.1",
    ];
    assert_eq!(requests.await.unwrap(), expected);
}

#[tokio::test]
async fn a_frontend_of_other_models_is_reported_with_its_models() {
    const UNKNOWN: (&str, &str) = ("404 Not Found", "Model not found");
    let request = request(Duration::from_mins(1));
    let (other, _) = frontend(&[
        UNKNOWN,
        UNKNOWN,
        ("200 OK", r#"{"data":[{"id":"lab/other","object":"model"}]}"#),
    ])
    .await;
    let answer = probe(&Way::dns(), &other, &request).await;
    assert_eq!(answer, ProbeAnswer::OtherModels(vec!["lab/other".into()]));
    // Not there yet, or listed and not ready: the frontend's answer is passed on.
    for models in [
        &[UNKNOWN, UNKNOWN, ("200 OK", r#"{"data":[]}"#)],
        &[UNKNOWN, UNKNOWN, ("200 OK", r#"{"data":[{"id":"lab/tiny-qwen3"}]}"#)],
        &[UNKNOWN, UNKNOWN, ("404 Not Found", "")],
    ] {
        let (base, _) = frontend(models).await;
        let answer = probe(&Way::dns(), &base, &request).await;
        assert_eq!(answer, ProbeAnswer::Refused(404, "Model not found".into()));
    }
}

#[tokio::test]
async fn a_refused_connection_is_reported_as_refused() {
    let (listener, base) = listener().await;
    drop(listener);
    let answer = probe(&Way::dns(), &base, &request(Duration::from_mins(1))).await;
    let ProbeAnswer::Failed(why) = answer else {
        panic!("{answer:?}")
    };
    assert!(why.contains("refused"), "{why}");
}

#[tokio::test]
async fn a_silent_frontend_ends_at_the_deadline() {
    let (listener, base) = listener().await;
    let answer = probe(&Way::dns(), &base, &request(Duration::from_millis(50))).await;
    assert!(matches!(answer, ProbeAnswer::Failed(why) if why.contains("no answer")));
    drop(listener);
}

/// A frontend that sends `first`, then `again` over and over until the client leaves.
async fn endless(first: String, again: &'static [u8], pause: Duration) -> (String, Arc<AtomicUsize>) {
    let (listener, base) = listener().await;
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = sent.clone();
    tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 4096];
        let _ = connection.read(&mut head).await.unwrap();
        let mut next = first.into_bytes();
        while connection.write_all(&next).await.is_ok() {
            counter.fetch_add(next.len(), Ordering::SeqCst);
            tokio::time::sleep(pause).await;
            next = again.to_vec();
        }
    });
    (base, sent)
}

#[tokio::test]
async fn a_frontend_without_end_is_read_to_a_bound_and_in_time() {
    const OK: &str = "HTTP/1.1 200 OK\r\n";
    const BLOCK: &[u8] = &[b'a'; 1 << 16];
    const SLOW: Duration = Duration::from_millis(50);
    let headers: &'static [u8] = "x-a: b\r\n".repeat(8192).leak().as_bytes();
    let rows: [(&str, &'static [u8], Duration, &str); 6] = [
        ("\r\n", BLOCK, Duration::ZERO, "length limit"),
        ("transfer-encoding: chunked\r\n\r\n", b"1\r\na\r\n", SLOW, "no answer"),
        ("content-length: 100000\r\n\r\n", b"a", SLOW, "no answer"),
        ("", headers, Duration::ZERO, "too large"),
        ("x-a: ", BLOCK, Duration::ZERO, "too large"),
        ("x-a: ", b"a", SLOW, "no answer"),
    ];
    for (head, again, pause, expected) in rows {
        let (base, sent) = endless(format!("{OK}{head}"), again, pause).await;
        // A slow machine needs its time to send as many bytes.
        let limit = Duration::from_secs(if expected == "no answer" { 2 } else { 30 });
        let answer = probe(&Way::dns(), &base, &request(limit)).await;
        let ProbeAnswer::Failed(why) = answer else {
            panic!("{head:?}: {answer:?}")
        };
        assert!(why.contains(expected) && why.len() < 300, "{head:?}: {why}");
        // Bytes read, and bytes in the sockets of a loopback.
        assert!(sent.load(Ordering::SeqCst) < BODY_BYTES + (8 << 20), "{head:?}");
    }
}

#[tokio::test]
async fn a_frontend_that_points_elsewhere_is_not_followed() {
    let tenant = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let elsewhere = format!("location: http://{}/", tenant.local_addr().unwrap());
    for (code, reason) in [(301, "Moved"), (302, "Found"), (307, "Temporary"), (308, "Permanent")] {
        let redirect: &'static str = format!("{code} {reason}\r\n{elsewhere}").leak();
        // The first request checks if the model is ready; a redirect does not answer that.
        let (base, requests) = frontend(vec![(redirect, ""); 2].leak()).await;
        let answer = probe(&Way::dns(), &base, &request(Duration::from_mins(1))).await;
        assert_eq!(answer, ProbeAnswer::Refused(code, String::new()));
        assert_eq!(requests.await.unwrap().len(), 2);
    }
    let asked = tokio::time::timeout(Duration::from_millis(100), tenant.accept()).await;
    assert!(asked.is_err(), "a redirect was followed");
}
