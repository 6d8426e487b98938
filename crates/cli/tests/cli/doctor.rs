//! What is missing for a first run, and what to type.

mod architecture;
mod operator;
mod pod_security;
mod remedies;
mod unknown;

use perfval_testkit::api_server::Fault;
use perfval_testkit::inventory::{Cluster, NodeBuilder};
use serde_json::json;

use super::desk::{Desk, edited_sample, golden};

fn put_pod(desk: &Desk, namespace: &str, label: &str, value: &str) {
    desk.server.put(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": value, "namespace": namespace, "labels": {label: value}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }));
}

/// Eight free GPUs, Dynamo, the operator, the exporter.
fn healthy() -> Desk {
    let desk = Desk::new();
    for mut object in Cluster::of_gpus(8).objects() {
        if object["kind"] == "Node" {
            object["metadata"]["labels"]["kubernetes.io/arch"] = json!("amd64");
        }
        desk.server.put(object);
    }
    desk.server.install_dynamo(&["v1beta1"], Some("1.6.1"));
    for crd in perfval_api::crds() {
        desk.server.put(serde_json::to_value(crd).expect("JSON"));
    }
    put_pod(
        &desk,
        "perfvalidation-system",
        "app.kubernetes.io/part-of",
        "perfvalidation-operator",
    );
    put_pod(&desk, "gpu-operator", "app", "nvidia-dcgm-exporter");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "perf"}});
    desk.server.put(namespace);
    desk
}

const QUICK: &str = "doctor -f ../../config/samples/quick.yaml";

/// A text in which the link to a release is the one that a build in development has.
fn without_version(text: &str) -> String {
    let release = concat!("/releases/download/v", env!("CARGO_PKG_VERSION"), "/");
    text.replace(release, "/releases/latest/download/")
}

#[tokio::test]
async fn a_cluster_that_has_everything() {
    let answer = healthy().types("doctor").await;
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    golden("doctor-healthy", &answer.out);
}

#[tokio::test]
async fn a_namespace_without_permission_is_reported_with_the_command_that_allows_it() {
    let desk = healthy();
    desk.server
        .delete("pods", "perfvalidation-system", "perfvalidation-operator");
    desk.server.put(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "gpu-perfvalidation-operator-7d9f6c5b8-x2x4z", "namespace": "perfvalidation-system",
            "labels": {"app.kubernetes.io/part-of": "perfvalidation-operator"},
        },
        "spec": {"serviceAccountName": "theirs", "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }));
    let refused = Fault::refuse("create", "dynamographdeployments", 403).in_namespace("perf");
    desk.server.fail(refused);
    let answer = desk.types("doctor").await;
    assert_eq!((answer.code, answer.err.as_str()), (1, ""));
    answer.prints("✗  the operator may create nothing in perf");
    let command = "kubectl create rolebinding perfvalidation -n perf --clusterrole gpu-perfvalidation-operator-runs \
                   --serviceaccount perfvalidation-system:theirs";
    answer.prints(command);

    desk.server.heal();
    desk.server.fail(Fault::refuse("create", "perfvalidations", 403));
    let role = "gpu-perfvalidation-operator-edit";
    desk.types("doctor").await.prints(&format!(
        "kubectl create rolebinding {role} --clusterrole={role} --user=YOU -n perf"
    ));

    desk.server.heal();
    let operator = "gpu-perfvalidation-operator-7d9f6c5b8-x2x4z";
    let looks_at = |namespaces: &str| {
        desk.server.edit("pods", "perfvalidation-system", operator, |pod| {
            pod["spec"]["containers"][0]["env"] = json!([{"name": "PERFVAL_WATCH_NAMESPACES", "value": namespaces}]);
        });
    };
    looks_at("a,b");
    let answer = desk.types("doctor").await;
    assert_eq!(answer.code, 1);
    answer.prints("✗  the operator does not look at perf");
    looks_at("a, perf");
    assert_eq!(desk.types("doctor").await.code, 0);

    desk.server.fail(Fault::refuse("create", "subjectaccessreviews", 403));
    let answer = desk.types("doctor").await;
    answer.prints("?  it is not known whether the operator may run validations in perf");
    let question = "kubectl auth can-i create dynamographdeployments.nvidia.com -n perf --as \
                    system:serviceaccount:perfvalidation-system:theirs";
    answer.prints(question);
    let no_role = "perfvalidation-operator-edit";
    assert!(!answer.out.contains(no_role), "it allows no reviews: {}", answer.out);
}

#[tokio::test]
async fn a_cluster_that_has_nothing() {
    let mut desk = Desk::new();
    desk.server.withdraw("perfvalidations");
    desk.unicode = false;
    let answer = desk.types("doctor").await;
    assert_eq!((answer.code, answer.err.as_str()), (1, ""));
    golden("doctor-nothing", &without_version(&answer.out));
}

#[tokio::test]
async fn a_script_gets_every_check_and_the_same_exit_code() {
    let healthy = healthy().types("doctor -o json").await;
    assert_eq!((healthy.code, healthy.err.as_str()), (0, ""));
    let json = healthy.json();
    assert_eq!((&json["missing"], &json["unknown"]), (&json!(0), &json!(0)));
    assert_eq!(
        json["checks"][0],
        json!({"found": "Good", "what": "Kubernetes v1.36.4"})
    );
    let desk = Desk::new();
    desk.server.withdraw("perfvalidations");
    let answer = desk.types("doctor -o yaml").await;
    assert_eq!((answer.code, answer.err.as_str()), (1, ""));
    let yaml: serde_json::Value = serde_saphyr::from_str(&without_version(&answer.out)).expect("YAML");
    let checks = yaml["checks"].as_array().expect("a list");
    let missing: Vec<_> = checks.iter().filter(|check| check["found"] == "Missing").collect();
    assert_eq!(yaml["missing"], json!(missing.len()));
    assert_eq!(
        missing[0],
        &json!({
            "found": "Missing", "what": "PerfValidations are not known to the cluster",
            "next": "kubectl apply --server-side -f https://github.com/perfvalidation/perfvalidation-operator/releases/latest/download/install.yaml",
        })
    );
}

#[tokio::test]
async fn the_images_and_secrets_of_a_manifest_are_looked_for() {
    let desk = healthy();
    let answer = desk.types(QUICK).await;
    answer.prints("vllm-runtime:1.6.1: the first run pulls it");
    assert_eq!(answer.code, 0, "a pull is no obstacle");
    let frontend = "vllm-runtime:1.6.1\n      frontend: {image: \"mirror.example/frontend:1.6.1\"}\n";
    let file = edited_sample(&[("vllm-runtime:1.6.1\n", frontend)]);
    let answer = desk.types(&format!("doctor -f {}", file.path().display())).await;
    answer.prints("no node lists mirror.example/frontend:1.6.1: the first run pulls it");
    let calls = desk.server.calls();
    assert!(
        calls.iter().all(|call| call.resource != "secrets"),
        "no Secret is named, so none is asked for"
    );
    desk.server.install_dynamo(&["v1beta1"], Some("1.2.0"));
    let skewed = desk.types(QUICK).await;
    assert_eq!(skewed.code, 1);
    skewed.prints("✗  Dynamo 1.2.0:");
}

#[tokio::test]
async fn rights_that_are_missing_are_named_and_what_cannot_be_read_is_not_called_missing() {
    let desk = healthy();
    desk.server.fail(Fault::refuse("create", "perfvalidations", 403));
    desk.server.fail(Fault::refuse("get", "pods/log", 403));
    let answer = desk.types("doctor").await;
    assert_eq!(answer.code, 1);
    answer.prints("in perf you may not run, not read logs");
    desk.server.heal();
    desk.server.fail(Fault::refuse("list", "nodes", 403));
    let answer = desk.types("doctor").await;
    assert_eq!(answer.code, 4, "{}", answer.out);
    answer.prints("?  the GPUs:");
    answer.prints("Checks without an answer: 1.");
}

#[tokio::test]
async fn a_definition_of_another_version_is_noticed() {
    let desk = healthy();
    desk.server.edit(
        "customresourcedefinitions",
        "",
        "perfvalidations.perfvalidation.dev",
        |crd| {
            crd["spec"]["versions"][0]["schema"] = json!({"openAPIV3Schema": {"type": "object"}});
        },
    );
    let answer = desk.types("doctor").await;
    assert_eq!(answer.code, 0);
    answer.prints("in another version than this program's");
}

#[tokio::test]
async fn a_definition_that_is_missing_is_noticed() {
    let desk = healthy();
    desk.server.delete(
        "customresourcedefinitions",
        "",
        "perfvalidationpolicies.perfvalidation.dev",
    );
    let answer = desk.types("doctor").await;
    assert_eq!(answer.code, 1);
    let missing = "the cluster does not serve PerfValidationPolicy";
    answer.prints(missing);
    // A user of a release has no `config/`.
    answer.prints("/install.yaml");
}

#[tokio::test]
async fn a_secret_that_is_missing_has_the_command_that_creates_one_of_its_kind() {
    let with_token = "Qwen3-0.6B\n    tokenSecretRef: {name: hub, key: hf-token}\n";
    let with_pull_secret = "spec:\n  podTemplate: {spec: {imagePullSecrets: [{name: mirror}]}}\n";
    let file = edited_sample(&[("Qwen3-0.6B\n", with_token), ("spec:\n", with_pull_secret)]);
    let words = format!("doctor -o json -f {}", file.path().display());
    let answer = healthy().types(&words).await;
    assert_eq!(answer.code, 1, "{}", answer.err);
    let json = answer.json();
    let missing = json["checks"].as_array().expect("a list").iter();
    let missing = missing.filter(|check| check["found"] == "Missing");
    let next: Vec<&str> = missing.filter_map(|check| check["next"].as_str()).collect();
    assert_eq!(
        next,
        [
            "kubectl create secret docker-registry mirror --docker-server=… --docker-username=… -n perf",
            "kubectl create secret generic hub --from-literal=hf-token=… -n perf",
        ]
    );
}

#[tokio::test]
async fn a_claim_of_the_manifest_is_looked_for() {
    let with_cache = "Qwen3-0.6B\n    cache: {persistentVolumeClaim: {claimName: weights}}\n";
    let file = edited_sample(&[("Qwen3-0.6B\n", with_cache)]);
    let desk = healthy();
    let words = format!("doctor -f {}", file.path().display());
    let answer = desk.types(&words).await;
    assert_eq!(answer.code, 1, "{}", answer.out);
    let missing = "the manifest uses PersistentVolumeClaim weights, which is not in perf";
    answer.prints(missing);
    desk.server.put(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": "perf", "name": "weights"},
    }));
    let answer = desk.types(&words).await;
    assert_eq!(answer.code, 0, "{}", answer.out);
    answer.prints("PersistentVolumeClaim weights is there");
}

fn put_operator(desk: &Desk, image: &str) {
    desk.server
        .edit("pods", "perfvalidation-system", "perfvalidation-operator", |pod| {
            pod["spec"]["containers"] = json!([{"name": "operator", "image": image}]);
        });
}

#[tokio::test]
async fn the_operators_version_is_shown_and_another_minor_is_a_gap() {
    let desk = healthy();
    let own = env!("CARGO_PKG_VERSION");
    // A release and what is developed towards it, in either direction: one of them is this program.
    for other in [
        own.trim_end_matches("-dev").to_owned(),
        format!("{}-dev", own.trim_end_matches("-dev")),
    ] {
        put_operator(&desk, &format!("registry:5000/perfvalidation-operator:v{other}"));
        let answer = desk.types("doctor").await;
        answer.prints(&format!("✓  the operator {other} is ready in perfvalidation-system"));
        assert!(!answer.out.contains("this program is"), "{}", answer.out);
    }
    put_operator(&desk, "registry:5000/perfvalidation-operator:v99.7.1@sha256:00");
    let answer = desk.types("doctor").await;
    let other = format!("•  the operator is 99.7.1, and this program is {own}");
    answer.prints(&other);
    assert_eq!(answer.code, 0, "a run works");
    let (namespace, name) = ("perfvalidation-system", "perfvalidation-operator");
    desk.server.edit("pods", namespace, name, |pod| {
        let containers = pod["spec"]["containers"].as_array_mut().expect("a list");
        containers.insert(0, json!({"name": "istio-proxy", "image": "istio/proxyv2:1.29.0"}));
    });
    let answer = desk.types("doctor").await;
    answer.prints(&other);
    put_operator(&desk, "registry:5000/perfvalidation-operator@sha256:00");
    let answer = desk.types("doctor").await;
    answer.prints("its image names no version");
    assert!(!answer.out.contains("this program is"), "{}", answer.out);
    desk.server.edit("pods", namespace, name, |pod| {
        pod["metadata"]["labels"]["app.kubernetes.io/version"] = json!("99.7.1");
    });
    let answer = desk.types("doctor").await;
    assert!(answer.out.contains(&other), "the chart's label: {}", answer.out);
}

#[tokio::test]
async fn the_namespace_of_the_manifest_counts() {
    let file = edited_sample(&[("name: quick\n", "name: quick\n  namespace: perf\n")]);
    let mut desk = healthy();
    desk.namespace = "other";
    let refused = Fault::refuse("list", "perfvalidations", 403).in_namespace("other");
    desk.server.fail(refused);
    let answer = desk.types(&format!("doctor -f {}", file.path().display())).await;
    assert_eq!(answer.code, 0, "{answer:?}");
    answer.prints("✓  the cluster serves PerfValidations");
}

#[tokio::test]
async fn the_dra_driver_is_looked_for_and_its_absence_is_no_second_failure() {
    let desk = healthy();
    let absent = "no DRA driver publishes GPUs";
    for slice in desk.server.objects("resourceslices") {
        let name = slice["metadata"]["name"].as_str().expect("a name");
        desk.server.delete("resourceslices", "", name);
    }
    let answer = desk.types("doctor").await;
    assert_eq!(answer.code, 1);
    answer.prints(&format!("•  {absent}"));
    answer.prints("One thing is missing");
    answer.prints("DeviceClass gpu.nvidia.com is there, and no ResourceSlice");
    for object in Cluster::empty()
        .node(NodeBuilder::named("n1").offers("nvidia.com/gpu", "8"))
        .objects()
    {
        desk.server.put(object);
    }
    let answer = desk.types("doctor").await;
    assert_eq!(answer.code, 0, "{}", answer.out);
    answer.prints(&format!("•  {absent}"));
    answer.prints("a device plugin gives nvidia.com/gpu out");
    desk.server.fail(Fault::refuse("list", "resourceslices", 403));
    let answer = desk.types("doctor").await;
    answer.prints("?  the DRA driver: ");
    assert!(!answer.out.contains(absent), "a refusal is no absence: {}", answer.out);
}
