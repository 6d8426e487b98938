//! Commands to type next: they are about the same manifest, namespace and cluster.

use perfval_testkit::api_server::Fault;

use super::super::desk::edited_sample;
use super::{QUICK, healthy};

#[tokio::test]
async fn a_remedy_is_about_the_same_manifest_namespace_and_cluster() {
    let desk = healthy();
    desk.server.fail(Fault::refuse("list", "nodes", 403));
    let answer = desk.types(&format!("{QUICK} -n perf --context prod")).await;
    answer.prints("→ kubectl perfval size -n perf -f ../../config/samples/quick.yaml --context prod\n");
    answer.prints("→ kubectl --context prod get nodes\n");
    answer.prints("Next: kubectl perfval run -n perf -f ../../config/samples/quick.yaml --context prod\n");
    desk.server.heal();
    let pull = desk.types(QUICK).await;
    pull.prints("→ kubectl run pull -n perf --rm -it");
    let again = desk.types("doctor --operator-namespace elsewhere").await;
    assert_eq!(again.code, 1, "{again:?}");
    again.prints("Then look again: kubectl perfval doctor -n perf --operator-namespace elsewhere\n");
}

#[tokio::test]
async fn a_namespace_of_the_flags_and_another_of_the_manifest_are_refused() {
    let file = edited_sample(&[("name: quick\n", "name: quick\n  namespace: perf\n")]);
    for verb in ["doctor", "size"] {
        let typed = format!("{verb} -n other -f {}", file.path().display());
        let answer = healthy().types(&typed).await;
        answer.exits(2, "the manifest has namespace perf, and the flags have other");
    }
}

#[tokio::test]
async fn what_dynamo_refuses_for_any_image_is_a_gap_without_a_manifest_too() {
    let desk = healthy();
    let long = desk.types(&format!("doctor -n {}", "n".repeat(60))).await;
    assert_eq!(long.code, 1, "{long:?}");
    long.prints("→ kubectl create namespace NAME, with a shorter name");
    desk.server.install_dynamo(&["v1beta1"], Some("1.0.2"));
    let old = desk.types("doctor").await;
    assert_eq!(old.code, 1, "{old:?}");
    old.prints("✗  Dynamo 1.0.2: Dynamo 1.0 does not know router mode");
    old.prints("→ install Dynamo's operator 1.1 to 1.6");
}

#[tokio::test]
async fn a_dynamo_that_this_release_does_not_support_is_a_note() {
    let desk = healthy();
    for (version, shown) in [
        (
            Some("1.7.0"),
            "•  Dynamo 1.7.0, nvidia.com/v1beta1; this release supports 1.1 to 1.6",
        ),
        (Some("2.0.0"), "•  Dynamo 2.0.0, "),
        (None, "•  Dynamo of an unknown version, "),
        (Some("1.6.9"), "✓  Dynamo 1.6.9, nvidia.com/v1beta1\n"),
    ] {
        desk.server.install_dynamo(&["v1beta1"], version);
        let answer = desk.types("doctor").await;
        assert_eq!(answer.code, 0, "{answer:?}");
        answer.prints(shown);
    }
}
