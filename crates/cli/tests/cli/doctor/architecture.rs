//! Architectures of the nodes, of the operator's images and of the manifest's.

use axum::Router;
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use perfval_testkit::inventory::{Cluster, NodeBuilder};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::super::desk::Desk;
use super::healthy;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// SHA-256 of what [`config`] returns.
const CONFIG: &str = "sha256:9d99a75171aea000c711b34c0e5e3f28d3d537dd99d110eafbfbc2bd8e52c2bf";

fn put(desk: &Desk, architecture: &str) {
    let node = NodeBuilder::named(architecture).label("kubernetes.io/arch", architecture);
    let cluster = Cluster::empty().node(node.offers("nvidia.com/gpu", "4"));
    let objects = cluster.objects().into_iter();
    objects
        .filter(|object| object["kind"] == "Node")
        .for_each(|node| drop(desk.server.put(node)));
}

async fn answer(desk: &Desk, words: &str) -> (u8, String) {
    let answer = desk.types(words).await;
    (answer.code, answer.out.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A registry on this machine. The tags of an image are the architectures it has; `private` wants credentials, and of
/// `absent` there is nothing.
async fn registry() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let app = Router::new()
        .route("/v2/", get(async || StatusCode::OK))
        .route("/v2/vllm/manifests/{tag}", get(manifest))
        .route("/v2/vllm/blobs/{digest}", get(async || config()));
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

async fn manifest(Path(tag): Path<String>) -> Response {
    let entry = |architecture: &str| json!({"mediaType": MANIFEST, "digest": CONFIG, "size": 1, "platform": {"os": "linux", "architecture": architecture}});
    let (kind, body) = match tag.as_str() {
        "absent" => {
            let errors = json!({"errors": [{"code": "MANIFEST_UNKNOWN", "message": "no", "detail": {}}]});
            return (StatusCode::NOT_FOUND, errors.to_string()).into_response();
        }
        "private" => return StatusCode::UNAUTHORIZED.into_response(),
        "single" => {
            let config = json!({"mediaType": "application/vnd.oci.image.config.v1+json", "digest": CONFIG, "size": 2});
            (
                MANIFEST,
                json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": []}),
            )
        }
        tag => {
            let entries: Vec<Value> = tag.split('-').map(entry).chain([entry("unknown")]).collect();
            (
                INDEX,
                json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}),
            )
        }
    };
    ([(header::CONTENT_TYPE, kind)], body.to_string()).into_response()
}

/// Configuration of the image with the tag `single`.
fn config() -> String {
    json!({"architecture": "amd64", "os": "linux"}).to_string()
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
                • an image may lack an architecture of these nodes → kubectl perfval doctor -f FILE";
    assert!(code == 0 && out.contains(text), "{out}");
}

#[tokio::test]
async fn an_image_without_the_architecture_of_nodes_is_reported_before_a_run() {
    let desk = healthy();
    put(&desk, "arm64");
    let registry = registry().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("quick.yaml");
    let write = |image: &str, selected: Option<&str>| {
        let text = include_str!("../../../../../config/samples/quick.yaml");
        let mut text = text.replace("nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.6.1", image);
        if let Some(architecture) = selected {
            let selector = format!("  placement:\n    nodeSelector: {{kubernetes.io/arch: {architecture}}}\n");
            text = text.replace("  placement:\n", &selector);
        }
        assert!(text.contains(image), "{text}");
        std::fs::write(&file, text).expect("written");
        format!("doctor -f {}", file.display())
    };
    for (tag, selected, failed, text) in [
        ("amd64-arm64", None, 0, "✓ IMAGE is for amd64, arm64"),
        ("amd64-arm64", Some("arm64"), 0, "✓ IMAGE is for amd64, arm64"),
        (
            "amd64",
            None,
            0,
            "• IMAGE is for amd64; it cannot run on nodes with GPUs: 1 arm64 → write kubernetes.io/arch in placement.nodeSelector",
        ),
        (
            "amd64",
            Some("arm64"),
            1,
            "✗ IMAGE is for amd64; it cannot run on nodes with GPUs: 1 arm64 → use an image for the architecture of these nodes",
        ),
        (
            "single",
            Some("arm64"),
            1,
            "✗ IMAGE is for amd64; it cannot run on nodes with GPUs: 1 arm64",
        ),
        (
            "absent",
            None,
            1,
            "✗ its registry has no IMAGE → correct the image in the manifest",
        ),
        (
            "private",
            None,
            0,
            "? architectures of IMAGE: REGISTRY wants credentials → docker manifest inspect IMAGE",
        ),
    ] {
        let image = format!("{registry}/vllm:{tag}");
        let (code, out) = answer(&desk, &write(&image, selected)).await;
        let text = text.replace("IMAGE", &image).replace("REGISTRY", &registry);
        assert!(out.contains(&text), "{text}\n{out}");
        // The tag is no version that Dynamo's operator could have.
        let others = out.matches('✗').count() - usize::from(text.starts_with('✗'));
        assert_eq!(code, u8::from(others > 0 || failed > 0), "{out}");
    }
    // Nodes of another architecture are left out by the selector: nothing is asked.
    let (_, out) = answer(&desk, &write("127.0.0.1:9/vllm:1", Some("amd64"))).await;
    assert!(!out.contains("architectures of"), "{out}");
    let (_, out) = answer(&desk, &write("127.0.0.1:9/vllm:1", None)).await;
    assert!(
        out.contains("? architectures of 127.0.0.1:9/vllm:1: 127.0.0.1:9 cannot be reached:"),
        "{out}"
    );
}

#[tokio::test]
async fn nodes_that_even_the_operators_images_do_not_fit_are_reported() {
    let desk = healthy();
    put(&desk, "riscv64");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("quick.yaml");
    let text = include_str!("../../../../../config/samples/quick.yaml");
    let selector = "  placement:\n    nodeSelector: {kubernetes.io/arch: riscv64}\n";
    std::fs::write(&file, text.replace("  placement:\n", selector)).expect("written");
    let (code, out) = answer(&desk, &format!("doctor -f {}", file.display())).await;
    assert!(code == 1 && out.contains("✗ nodes with GPUs: 1 riscv64;"), "{out}");
}
