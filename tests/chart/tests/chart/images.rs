//! Which images are used.

use perfval_chart::object::{id, unknown_fields};
use perfval_chart::render;
use serde_json::{Value, json};

use crate::{deployment, objects, variable};

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn image(object: &Value) -> &str {
    object["spec"]["template"]["spec"]["containers"][0]["image"]
        .as_str()
        .expect("well-formed")
}

#[test]
fn the_runner_comes_from_the_operators_own_image() {
    for values in [
        json!({}),
        json!({"image": {"tag": "v9"}}),
        json!({"image": {"digest": DIGEST}}),
        json!({"global": {"imageRegistry": "mirror.example.com"}}),
    ] {
        let objects = objects(&values);
        let deployment = &objects["Deployment perfvalidation-system/perfvalidation-operator"];
        assert_eq!(
            variable(deployment, "PERFVAL_RUNNER_IMAGE").as_deref(),
            Some(image(deployment))
        );
        let test = &objects["Pod perfvalidation-system/perfvalidation-operator-test"];
        assert_eq!(test["spec"]["containers"][0]["image"], image(deployment));
    }
}

#[test]
fn a_digest_wins_over_the_tag() {
    let deployment = deployment(&json!({
        "image": {"tag": "v9", "digest": DIGEST},
        "aiperf": {"image": {"digest": DIGEST}},
    }));
    assert_eq!(
        image(&deployment),
        format!("ghcr.io/perfvalidation/perfvalidation-operator@{DIGEST}")
    );
    let aiperf = variable(&deployment, "PERFVAL_AIPERF_IMAGE").expect("well-formed");
    assert_eq!(aiperf, format!("ghcr.io/perfvalidation/aiperf@{DIGEST}"));
}

/// Images of the operator and of AIPerf in a published chart.
fn published(values: &Value) -> [String; 2] {
    let objects = render::published(DIGEST, values).unwrap_or_else(|error| panic!("{error}"));
    let mut deployments = objects.iter().filter(|object| object["kind"] == "Deployment");
    let deployment = deployments.next().expect("the operator");
    let aiperf = variable(deployment, "PERFVAL_AIPERF_IMAGE").expect("an image");
    [image(deployment).to_owned(), aiperf]
}

#[test]
fn a_published_chart_pins_its_own_images() {
    let own = |registry: &str| {
        ["perfvalidation-operator", "aiperf"].map(|name| format!("{registry}/perfvalidation/{name}@{DIGEST}"))
    };
    assert_eq!(published(&json!({})), own("ghcr.io"));
    // A mirror keeps digests.
    let mirror = json!({"global": {"imageRegistry": "mirror.example.com/hub"}});
    assert_eq!(published(&mirror), own("mirror.example.com/hub"));
    let mirror = json!({
        "image": {"registry": "mirror.example.com"},
        "aiperf": {"image": {"registry": "mirror.example.com"}},
    });
    assert_eq!(published(&mirror), own("mirror.example.com"));
}

#[test]
fn another_repository_tag_or_digest_replaces_the_published_one() {
    let published = |set: &Value| published(&json!({"image": set, "aiperf": {"image": set}}));
    assert_eq!(
        published(&json!({"tag": "v9"})),
        [
            "ghcr.io/perfvalidation/perfvalidation-operator:v9",
            "ghcr.io/perfvalidation/aiperf:v9"
        ]
    );
    assert_eq!(
        published(&json!({"repository": "team/image", "tag": "v9"})),
        ["ghcr.io/team/image:v9"; 2]
    );
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        published(&json!({"repository": "team/image"})),
        [
            format!("ghcr.io/team/image:v{version}"),
            "ghcr.io/team/image:0.13.0".to_owned()
        ]
    );
    let digest = DIGEST.replace("0123", "4567");
    let own = format!("ghcr.io/team/image@{digest}");
    assert_eq!(
        published(&json!({"repository": "team/image", "digest": digest})),
        [&*own; 2]
    );
}

#[test]
fn one_value_moves_every_image_to_a_mirror() {
    let values = json!({"global": {"imageRegistry": "mirror.example.com:5000/hub/"}});
    let text = format!("{:?}", objects(&values));
    assert!(!text.contains("ghcr.io"), "an image still comes from its own registry");
    let deployment = deployment(&values);
    assert_eq!(
        image(&deployment),
        concat!(
            "mirror.example.com:5000/hub/perfvalidation/perfvalidation-operator:v",
            env!("CARGO_PKG_VERSION")
        )
    );
    let aiperf = variable(&deployment, "PERFVAL_AIPERF_IMAGE").expect("well-formed");
    assert_eq!(aiperf, "mirror.example.com:5000/hub/perfvalidation/aiperf:0.13.0");
}

#[test]
fn the_chart_lists_the_images_that_it_uses() {
    let chart: Value = serde_saphyr::from_str(include_str!("../../../../charts/perfvalidation-operator/Chart.yaml"))
        .expect("well-formed");
    let listed: Vec<Value> = serde_saphyr::from_str(
        chart["annotations"]["artifacthub.io/images"]
            .as_str()
            .expect("well-formed"),
    )
    .expect("well-formed");
    let deployment = deployment(&json!({}));
    let used = [
        image(&deployment).to_owned(),
        variable(&deployment, "PERFVAL_AIPERF_IMAGE").expect("well-formed"),
    ];
    let listed: Vec<_> = listed
        .iter()
        .map(|image| image["image"].as_str().expect("well-formed"))
        .collect();
    assert_eq!(listed, used);
}

#[test]
fn pull_secrets_reach_every_pod() {
    let objects =
        objects(&json!({"global": {"imagePullSecrets": [{"name": "mirror"}]}, "image": {"pullPolicy": "Always"}}));
    let deployment = &objects["Deployment perfvalidation-system/perfvalidation-operator"];
    let test = &objects["Pod perfvalidation-system/perfvalidation-operator-test"];
    for pod in [&deployment["spec"]["template"]["spec"], &test["spec"]] {
        assert_eq!(pod["imagePullSecrets"], json!([{"name": "mirror"}]));
        assert_eq!(pod["containers"][0]["imagePullPolicy"], "Always");
    }
}

#[test]
fn two_releases_share_no_object_and_no_lease() {
    let first = render::release("one", "gpu", &json!({"crds": {"enabled": false}})).expect("well-formed");
    let second = render::release("two", "gpu", &json!({"crds": {"enabled": false}})).expect("well-formed");
    for object in &first {
        assert!(!second.iter().any(|other| id(other) == id(object)), "{}", id(object));
    }
    let lease = |objects: &[Value]| {
        let deployment = objects
            .iter()
            .find(|object| object["kind"] == "Deployment")
            .expect("well-formed");
        variable(deployment, "PERFVAL_LEADER_ELECT_NAME")
    };
    assert_eq!(lease(&first).as_deref(), Some("one-perfvalidation-operator"));
    assert_eq!(lease(&second).as_deref(), Some("two-perfvalidation-operator"));
}

/// YAML takes them for numbers, which no label and no namespace may be.
#[test]
fn names_of_digits_stay_text() {
    let values = json!({
        "runNamespaces": ["456"],
        "serviceAccount": {"name": "12"},
        "priorityClassName": "34",
        "secureMetrics": {"enabled": true, "secretName": "56"},
        "serviceMonitor": {"enabled": true},
    });
    for object in render::release("123", "789", &values).expect("well-formed") {
        assert_eq!(unknown_fields(&object), Vec::<String>::new(), "{}", id(&object));
    }
}

#[test]
fn names_stay_within_what_a_label_holds() {
    let objects = render::release(&"r".repeat(53), "gpu", &json!({"watchNamespaces": ["a"]})).expect("well-formed");
    for object in objects
        .iter()
        .filter(|object| object["kind"] != "CustomResourceDefinition")
    {
        let name = object["metadata"]["name"].as_str().expect("well-formed");
        assert!(name.len() <= 63, "{name}");
    }
}
