//! An admission webhook that denies whatever it is asked about, as the API server calls one: over TLS, on the lab's loopback.

use std::net::SocketAddr;

use axum::Router;
use axum::routing::post;
use axum::serve::Listener as _;
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview};
use serde_json::{Value, json};

use crate::lab::Lab;
use crate::tls::Tls;

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
        let (listener, certificate) = Tls::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let router = Router::new().route("/", post(move |review: String| async move { deny(&review, says) }));
        let server = tokio::spawn(async move {
            if answers && let Err(error) = axum::serve(listener, router).await {
                eprintln!("the webhook ended: {error}");
            }
        });
        lab.apply(&configuration(of, address, &certificate)).await;
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
