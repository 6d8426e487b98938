//! Architectures of the nodes, of the operator's images and of the manifest's.

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use perfval_testkit::inventory::{Cluster, NodeBuilder};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::super::desk::{Desk, edited_sample};
use super::healthy;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Configuration of the image with the tag `single`.
const CONFIG: &str = r#"{"architecture":"amd64","os":"linux"}"#;
/// Its SHA-256.
const CONFIG_DIGEST: &str = "sha256:9d99a75171aea000c711b34c0e5e3f28d3d537dd99d110eafbfbc2bd8e52c2bf";

/// A node with GPUs.
fn put(desk: &Desk, architecture: &str) {
    let node = NodeBuilder::named(architecture).label("kubernetes.io/arch", architecture);
    put_node(desk, node.offers("nvidia.com/gpu", "4"));
}

fn put_node(desk: &Desk, node: NodeBuilder) {
    let objects = Cluster::empty().node(node).objects().into_iter();
    objects
        .filter(|object| object["kind"] == "Node")
        .for_each(|node| drop(desk.server.put(node)));
}

async fn answer(desk: &Desk, words: &str) -> (u8, String) {
    let answer = desk.types(words).await;
    (answer.code, answer.in_one_line())
}

/// A registry on this machine, which gives everyone a token, as the public ones do. The tag of an image is the list of its
/// architectures; `private` wants credentials, and of `absent` there is nothing.
async fn registry() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let challenge = format!("Bearer realm=\"http://{address}/token\",service=\"lab\"");
    let app = Router::new()
        .route(
            "/v2/",
            get(async || (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)])),
        )
        .route("/token", get(token))
        .route("/v2/vllm/manifests/{tag}", get(manifest))
        .route("/v2/vllm/blobs/{digest}", get(async || CONFIG));
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

/// Refuses a client that sends credentials.
async fn token(headers: HeaderMap) -> Response {
    if headers.contains_key(header::AUTHORIZATION) {
        return StatusCode::BAD_REQUEST.into_response();
    }
    json!({"token": "for-everyone"}).to_string().into_response()
}

async fn manifest(Path(tag): Path<String>, headers: HeaderMap) -> Response {
    let token = headers.get(header::AUTHORIZATION).and_then(|token| token.to_str().ok());
    if token != Some("Bearer for-everyone") || tag == "private" {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let entry = |os: &str, architecture: &str| json!({"mediaType": MANIFEST, "digest": CONFIG_DIGEST, "size": 1, "platform": {"os": os, "architecture": architecture}});
    let (kind, body) = match tag.as_str() {
        "absent" => {
            let errors = json!({"errors": [{"code": "MANIFEST_UNKNOWN", "message": "no \u{1b}[2J", "detail": {}}]});
            return (StatusCode::NOT_FOUND, errors.to_string()).into_response();
        }
        "proxy" => return (StatusCode::BAD_GATEWAY, "<html>".repeat(1000)).into_response(),
        "single" => {
            let config =
                json!({"mediaType": "application/vnd.oci.image.config.v1+json", "digest": CONFIG_DIGEST, "size": 2});
            (
                MANIFEST,
                json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": []}),
            )
        }
        tag => {
            let others = [entry("unknown", "unknown"), entry("windows", "arm64")];
            let entries: Vec<Value> = tag.split('-').map(|name| entry("linux", name)).chain(others).collect();
            (
                INDEX,
                json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}),
            )
        }
    };
    ([(header::CONTENT_TYPE, kind)], body.to_string()).into_response()
}

#[tokio::test]
async fn without_a_manifest_the_architectures_of_nodes_are_listed() {
    let desk = healthy();
    let (_, out) = answer(&desk, "doctor").await;
    assert!(
        out.contains("✓ nodes with GPUs: 1 amd64; the operator's images: amd64, arm64"),
        "{out}"
    );
    assert!(!out.contains("an image may lack"), "{out}");
    put(&desk, "arm64");
    let (code, out) = answer(&desk, "doctor").await;
    let text = "✓ nodes with GPUs: 1 amd64, 1 arm64; the operator's images: amd64, arm64 \
                • an image may lack an architecture of these nodes → kubectl perfval doctor -n perf -f FILE";
    assert!(code == 0 && out.contains(text), "{out}");
}

/// Types a command about a manifest with an image for frontend and workers, and further fields below these places.
async fn answer_on(desk: &Desk, verb: &str, image: &str, more: &[(&str, String)]) -> (u8, String) {
    let more: Vec<_> = (more.iter())
        .map(|(place, field)| (*place, format!("{place}{field}")))
        .collect();
    let mut changes = vec![("nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.6.1", image)];
    changes.extend(more.iter().map(|(place, text)| (*place, text.as_str())));
    let file = edited_sample(&changes);
    answer(desk, &format!("{verb} -f {}", file.path().display())).await
}

fn selected(architecture: &str) -> (&'static str, String) {
    let selector = format!("    nodeSelector: {{kubernetes.io/arch: {architecture}}}\n");
    ("  placement:\n", selector)
}

#[tokio::test]
async fn an_image_without_the_architecture_of_nodes_is_reported_before_a_run() {
    let desk = healthy();
    put(&desk, "arm64");
    let registry = registry().await;
    let other = "IMAGE is for amd64, and its pod may get a node of another architecture: 1 arm64";
    let selector = "write kubernetes.io/arch in placement.nodeSelector";
    for (tag, node, alone, text) in [
        ("amd64-arm64", None, 0, "✓ IMAGE is for amd64, arm64".to_owned()),
        ("amd64-arm64", Some("arm64"), 0, "✓ IMAGE is for amd64, arm64".to_owned()),
        ("amd64", None, 0, format!("• {other} → {selector} ")),
        (
            "amd64",
            Some("arm64"),
            1,
            format!("✗ {other} → use an image for the architecture of these nodes"),
        ),
        ("single", Some("arm64"), 1, format!("✗ {other}")),
        (
            "absent",
            None,
            4,
            "? architectures of IMAGE: REGISTRY refused (ManifestUnknown): it has none, or wants credentials → docker manifest inspect IMAGE"
                .to_owned(),
        ),
        ("proxy", None, 4, "? architectures of IMAGE: REGISTRY answered with HTTP 502 →".to_owned()),
        ("private", None, 4, "? architectures of IMAGE: REGISTRY wants credentials →".to_owned()),
    ] {
        let image = format!("{registry}/vllm:{tag}");
        let more: Vec<_> = node.into_iter().map(selected).collect();
        let (code, out) = answer_on(&desk, "doctor", &image, &more).await;
        let text = text.replace("IMAGE", &image).replace("REGISTRY", &registry);
        assert!(out.contains(&text), "{text}\n{out}");
        // The tag is no version that Dynamo's operator could have.
        let others = out.matches('✗').count() - usize::from(text.starts_with('✗'));
        assert_eq!(code, if others > 0 { 1 } else { alone }, "{out}");
    }
    let (_, out) = answer_on(&desk, "doctor", "127.0.0.1:9/vllm:1", &[]).await;
    let text = "? architectures of 127.0.0.1:9/vllm:1: 127.0.0.1:9 cannot be reached: Connection refused";
    assert!(out.contains(text), "{out}");
}

#[tokio::test]
async fn sizing_reports_an_image_that_the_planned_node_cannot_run() {
    let desk = healthy();
    put(&desk, "arm64");
    let registry = registry().await;
    for (tag, node, note) in [
        (
            "amd64",
            "arm64",
            "note: IMAGE is for amd64, and the node is arm64: the run would end with ContainerFailed",
        ),
        (
            "private",
            "arm64",
            "note: architectures of IMAGE are not known: REGISTRY wants credentials",
        ),
        ("amd64-arm64", "arm64", ""),
        ("arm64", "amd64", ""),
    ] {
        let image = format!("{registry}/vllm:{tag}");
        let (code, out) = answer_on(&desk, "size", &image, &[selected(node)]).await;
        assert_eq!((code, out.contains("plan: 1 of")), (0, true), "{out}");
        let note = note.replace("IMAGE", &image).replace("REGISTRY", &registry);
        assert_eq!(
            (out.contains("note: "), out.contains(&note)),
            (!note.is_empty(), true),
            "{out}"
        );
    }
}

#[tokio::test]
async fn an_image_is_compared_with_the_nodes_that_its_pods_may_get() {
    let desk = healthy();
    let registry = registry().await;
    // A node without GPUs, which the load generator prefers.
    put_node(&desk, NodeBuilder::named("cpu").label("kubernetes.io/arch", "arm64"));
    let generator = format!("{registry}/vllm:amd64");
    let benchmark = ("  benchmark:\n", format!("    image: {generator}\n"));
    let (_, out) = answer_on(&desk, "doctor", "127.0.0.1:9/vllm:1", std::slice::from_ref(&benchmark)).await;
    assert!(!out.contains("architectures of"), "workers get amd64 nodes only: {out}");
    let text = format!(
        "• {generator} is for amd64, and its pod may get a node of another architecture: 1 arm64 \
         → write kubernetes.io/arch in placement.nodeSelector, and benchmark.placement: WorkloadNode"
    );
    assert!(out.contains(&text), "{text}\n{out}");
    // A frontend without an image has that of the workers.
    let anywhere = ("    dynamo:\n", "      frontend: {placement: Anywhere}\n".to_owned());
    let (_, out) = answer_on(&desk, "doctor", &generator, &[anywhere]).await;
    let text = text.replace("benchmark.placement", "workload.dynamo.frontend.placement");
    assert!(out.contains(&text), "{text}\n{out}");
    let bound = ("  benchmark:\n", "    placement: WorkloadNode\n".to_owned());
    let (_, out) = answer_on(&desk, "doctor", "127.0.0.1:9/vllm:1", &[benchmark, bound]).await;
    assert!(!out.contains(&format!("{generator} is for")), "{out}");
}

#[tokio::test]
async fn nodes_that_even_the_operators_images_do_not_fit_are_reported() {
    let desk = healthy();
    put(&desk, "riscv64");
    let (code, out) = answer_on(
        &desk,
        "doctor",
        "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.6.1",
        &[selected("riscv64")],
    )
    .await;
    assert!(code == 1 && out.contains("✗ nodes with GPUs: 1 riscv64;"), "{out}");
}
