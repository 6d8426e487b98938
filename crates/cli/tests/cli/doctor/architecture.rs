//! Architectures of the nodes and of the operator's images.

use perfval_testkit::inventory::{Cluster, NodeBuilder};

use super::healthy;

#[tokio::test]
async fn architectures_of_nodes_stand_beside_those_of_the_operators_images() {
    let desk = healthy();
    let put = |architecture: &str| {
        let node = NodeBuilder::named(architecture).label("kubernetes.io/arch", architecture);
        let cluster = Cluster::empty().node(node.offers("nvidia.com/gpu", "4"));
        let objects = cluster.objects().into_iter();
        objects
            .filter(|object| object["kind"] == "Node")
            .for_each(|node| drop(desk.server.put(node)));
    };
    let answer = async |words: &str| {
        let answer = desk.types(words).await;
        (answer.code, answer.out.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    put("arm64");
    let (code, mixed) = answer("doctor").await;
    let text = "• nodes with GPUs: 1 amd64, 1 arm64; the operator's images: amd64, arm64; an image for one of them fails on the others: \
                write kubernetes.io/arch in placement.nodeSelector → docker manifest inspect IMAGE";
    assert!(code == 0 && mixed.contains(text), "{mixed}");

    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("quick.yaml");
    let of = |architecture: &str| {
        let text = include_str!("../../../../../config/samples/quick.yaml");
        let selector = format!("  placement:\n    nodeSelector: {{kubernetes.io/arch: {architecture}}}\n");
        std::fs::write(&file, text.replace("  placement:\n", &selector)).expect("written");
        format!("doctor -f {}", file.display())
    };
    let (_, selected) = answer(&of("arm64")).await;
    let text = "• nodes with GPUs: 1 arm64; the operator's images: amd64, arm64 \
                → docker manifest inspect nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.6.1";
    assert!(selected.contains(text), "{selected}");
    let (_, selected) = answer(&of("amd64")).await;
    assert!(
        selected.contains("✓ nodes with GPUs: 1 amd64; the operator's images: amd64, arm64"),
        "{selected}"
    );

    put("riscv64");
    let (code, selected) = answer(&of("riscv64")).await;
    assert!(
        code == 1 && selected.contains("✗ nodes with GPUs: 1 riscv64;"),
        "{selected}"
    );
}
