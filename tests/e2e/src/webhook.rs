//! An admission webhook that denies whatever it is asked about, as the API server calls one: over TLS, on the lab's loopback.

use std::net::SocketAddr;

use axum::Router;
use axum::routing::post;
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview};
use rcgen::CertifiedKey;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::server::TlsStream;

use crate::lab::Lab;

const KIND: &str = "validatingwebhookconfiguration";

/// A webhook that is registered, until it is withdrawn.
pub struct Webhook {
    name: String,
    server: tokio::task::JoinHandle<()>,
}

/// What a webhook is asked about: objects of a kind that are created in a namespace.
pub struct Creation<'a> {
    /// Namespace of the objects.
    pub namespace: &'a str,
    /// Their API group.
    pub group: &'a str,
    /// Their kind, as in a path.
    pub plural: &'a str,
}

impl Webhook {
    /// Registers one that denies with these words. With `answers` unset nobody listens where the API server calls.
    ///
    /// # Panics
    /// If it cannot be served or registered.
    pub async fn register(lab: &Lab, of: &Creation<'_>, says: &'static str, answers: bool) -> Self {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
        let tls = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .expect("the certificate is the key's");
        let tcp = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = tcp.local_addr().expect("its address");
        let listener = Tls {
            tcp,
            acceptor: TlsAcceptor::from(std::sync::Arc::new(tls)),
        };
        let router = Router::new().route("/", post(move |review: String| async move { deny(&review, says) }));
        let server = tokio::spawn(async move {
            if answers && let Err(error) = axum::serve(listener, router).await {
                eprintln!("the webhook ended: {error}");
            }
        });
        lab.apply(&configuration(of, address, &cert.pem())).await;
        Self {
            name: of.namespace.to_owned(),
            server,
        }
    }

    /// Takes it away.
    ///
    /// # Panics
    /// If it stays.
    pub async fn withdraw(self, lab: &Lab) {
        lab.kubectl(&["delete", KIND, &self.name]).await;
        self.server.abort();
    }
}

fn configuration(of: &Creation<'_>, address: SocketAddr, certificate: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": of.namespace},
        "webhooks": [{
            "name": "policy.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "failurePolicy": "Fail", "timeoutSeconds": 5,
            "clientConfig": {"url": format!("https://{address}/"), "caBundle": base64(certificate)},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": of.namespace}},
            "rules": [{"apiGroups": [of.group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": [of.plural]}],
        }],
    })
}

/// As JSON has bytes.
fn base64(text: &str) -> Value {
    json!(k8s_openapi::ByteString(text.as_bytes().to_vec()))
}

fn deny(review: &str, says: &str) -> String {
    let review: AdmissionReview<DynamicObject> = serde_json::from_str(review).expect("a review");
    let request: AdmissionRequest<DynamicObject> = review.try_into().expect("a request");
    let answer = AdmissionResponse::from(&request).deny(says);
    serde_json::to_string(&answer.into_review()).expect("JSON")
}

/// Connections over TLS. One that does not come about is the caller's to report.
struct Tls {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl axum::serve::Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (connection, from) = axum::serve::Listener::accept(&mut self.tcp).await;
            match self.acceptor.accept(connection).await {
                Ok(stream) => return (stream, from),
                Err(error) => eprintln!("{from}: {error}"),
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}
