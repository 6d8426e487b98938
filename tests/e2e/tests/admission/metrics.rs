//! Who may read the operator's metrics, by the tokens and roles of a real API server.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use perfval_e2e::eventually;
use rcgen::CertifiedKey;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::{NOTICED, cluster, kubectl};

const NAMESPACE: &str = "metrics-readers";

/// Writes a certificate for `localhost` as a Secret is mounted. Returns what trusts it.
fn certificate(folder: &Path) -> TlsConnector {
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    std::fs::write(folder.join("tls.crt"), cert.pem()).expect("written");
    std::fs::write(folder.join("tls.key"), signing_key.serialize_pem()).expect("written");
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).expect("a root");
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

async fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    listener.local_addr().expect("its address")
}

/// Status line and body of a request.
async fn get(
    address: SocketAddr,
    tls: Option<&TlsConnector>,
    path: &str,
    token: Option<&str>,
) -> std::io::Result<String> {
    let authorization = token.map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{authorization}Connection: close\r\n\r\n");
    let mut stream = TcpStream::connect(address).await?;
    let mut answer = String::new();
    if let Some(tls) = tls {
        let name = ServerName::try_from("localhost").expect("a name");
        let mut stream = tls.connect(name, stream).await?;
        stream.write_all(request.as_bytes()).await?;
        stream.read_to_string(&mut answer).await?;
    } else {
        stream.write_all(request.as_bytes()).await?;
        stream.read_to_string(&mut answer).await?;
    }
    Ok(answer.strip_prefix("HTTP/1.1 ").unwrap_or(&answer).to_owned())
}

async fn token_of(account: &str) -> String {
    kubectl(&["create", "token", account, "-n", NAMESPACE], "")
        .await
        .0
        .trim()
        .to_owned()
}

#[tokio::test]
#[ignore = "needs the lab: just admission"]
async fn the_metrics_are_for_readers_with_the_right_to_them() {
    cluster().await;
    let account = |name: &str| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE}});
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        account("reader"),
        account("stranger"),
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": NAMESPACE},
         "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": NAMESPACE},
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAMESPACE},
         "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": NAMESPACE}]},
    ]});
    kubectl(&["apply", "--server-side", "-f", "-"], &objects.to_string()).await;
    let (reader, stranger) = (token_of("reader").await, token_of("stranger").await);

    let folder = tempfile::tempdir().expect("a folder");
    let tls = certificate(folder.path());
    let (open, secure) = (free_address().await, free_address().await);
    let program = std::env::var_os("PERFVAL_OPERATOR").expect("PERFVAL_OPERATOR names the operator's program");
    let mut operator = Command::new(program)
        .args(["run", "--leader-elect=false", "--watch-namespaces", NAMESPACE])
        .args([
            "--metrics-addr",
            &open.to_string(),
            "--secure-metrics-addr",
            &secure.to_string(),
        ])
        .arg("--metrics-tls-folder")
        .arg(folder.path())
        .kill_on_drop(true)
        .spawn()
        .expect("the operator starts");
    eventually("the operator is alive", NOTICED, async || {
        let answer = get(open, None, "/healthz", None)
            .await
            .map_err(|error| error.to_string())?;
        answer.starts_with("200").then_some(()).ok_or(answer)
    })
    .await;

    let read = async |token: Option<&str>| get(secure, Some(&tls), "/metrics", token).await.expect("an answer");
    for (token, status, text) in [
        (None, "401", "bearer token"),
        (Some("no-token-of-this-cluster"), "401", "bearer token"),
        (
            Some(stranger.as_str()),
            "403",
            "system:serviceaccount:metrics-readers:stranger may not get the path /metrics",
        ),
        (Some(reader.as_str()), "200", "perfvalidation_leader"),
    ] {
        let answer = read(token).await;
        assert!(
            answer.starts_with(status) && answer.contains(text),
            "{status}: {answer}"
        );
    }
    let answer = get(open, None, "/metrics", Some(&reader)).await.expect("an answer");
    assert!(
        answer.starts_with("404") && !answer.contains("perfvalidation_leader"),
        "{answer}"
    );

    operator.kill().await.expect("it ends");
    kubectl(&["delete", "--wait=false", "-f", "-"], &objects.to_string()).await;
}
