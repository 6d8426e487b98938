//! The operator: its place, and what it refuses.

use perfval_testkit::api_server::Fault;
use serde_json::{Value, json};

use super::super::desk::{Desk, edited_sample};
use super::{healthy, put_pod};

const PART: &str = "app.kubernetes.io/part-of";
const NAME: &str = "perfvalidation-operator";
const NAMESPACE: &str = "perfvalidation-system";

/// A healthy cluster whose operator has these variables.
fn with_variables(variables: &Value) -> Desk {
    let desk = healthy();
    for name in ["kube-system", NAMESPACE, "prod"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        desk.server.put(namespace);
    }
    desk.server.edit("pods", NAMESPACE, NAME, |pod| {
        pod["spec"]["containers"][0]["env"] = variables.clone();
    });
    desk
}

#[tokio::test]
async fn an_operator_in_another_namespace_is_found_and_no_second_one_is_advised() {
    let desk = healthy();
    desk.server.delete("pods", NAMESPACE, NAME);
    put_pod(&desk, "gpu-ops", PART, NAME);
    let answer = desk.types("doctor --context prod").await;
    assert_eq!(answer.code, 1, "{}", answer.out);
    answer.prints("✗  no operator runs in perfvalidation-system, but one runs in gpu-ops\n");
    answer.prints("→ kubectl perfval doctor -n perf --context prod --operator-namespace gpu-ops\n");
    assert!(!answer.out.contains("kubectl apply"), "{}", answer.out);
    let answer = desk.types("doctor --operator-namespace gpu-ops").await;
    assert_eq!(answer.code, 0, "{}", answer.out);

    // A person who may list the pods of the one namespace only. An operator may run in another one.
    desk.server.fail(Fault::refuse("list", "pods", 403).skip(1));
    let answer = desk.types("doctor").await;
    answer.prints("✗  no operator runs in perfvalidation-system (another place: --operator-namespace)\n");
}

#[tokio::test]
async fn a_namespace_that_the_operator_refuses_is_a_gap_that_no_role_closes() {
    let refused = |names: &str| json!([{"name": "PERFVAL_REFUSED_NAMESPACES", "value": names}]);
    for (variables, namespace, is_refused) in [
        (json!([]), "kube-system", true),
        (json!([]), NAMESPACE, true),
        (json!([]), "perf", false),
        (refused("a, prod"), "prod", true),
        (refused("a, prod"), "kube-system", false),
        (refused(""), "kube-system", false),
        // As the API server returns an empty value.
        (json!([{"name": "PERFVAL_REFUSED_NAMESPACES"}]), NAMESPACE, false),
    ] {
        let answer = with_variables(&variables)
            .types(&format!("doctor -n {namespace}"))
            .await;
        assert_eq!(answer.code, u8::from(is_refused), "{variables}: {}", answer.out);
        if is_refused {
            answer.prints(&format!("✗  the operator runs nothing in {namespace}\n"));
            answer.prints(
                "→ choose another namespace, or change its PERFVAL_REFUSED_NAMESPACES (in the chart: refusedNamespaces, or extraEnv)\n",
            );
        }
        let may_run = answer.out.contains("the operator may run validations");
        assert_eq!(may_run, !is_refused, "{variables}: {}", answer.out);
    }
}

#[tokio::test]
async fn an_aiperf_image_that_the_operator_does_not_permit_is_a_gap() {
    let image = "mirror.example/aiperf:1";
    let field = format!("  benchmark:\n    image: {image}\n");
    let file = edited_sample(&[("  benchmark:\n", field.as_str())]);
    let words = format!("doctor -f {}", file.path().display());
    for (name, value, is_permitted) in [
        ("PERFVAL_BENCHMARK_IMAGES", "", false),
        ("PERFVAL_BENCHMARK_IMAGES", "quay.io, mirror.example", true),
        ("PERFVAL_AIPERF_IMAGE", image, true),
        ("PERFVAL_AIPERF_IMAGE", "mirror.example/aiperf:2", false),
    ] {
        let desk = with_variables(&json!([{"name": name, "value": value}]));
        let answer = desk.types(&words).await;
        assert_eq!(answer.code, u8::from(!is_permitted), "{name}={value}: {}", answer.out);
        let gap = format!("✗  the operator does not permit the AIPerf image {image}\n");
        assert_eq!(
            answer.out.contains(&gap),
            !is_permitted,
            "{name}={value}: {}",
            answer.out
        );
    }
}

#[tokio::test]
async fn an_exporter_where_the_operator_does_not_look_is_named_with_the_setting() {
    let set = |value: &str| json!([{"name": "PERFVAL_DCGM_EXPORTER_NAMESPACES", "value": value}]);
    let elsewhere = "•  a DCGM exporter runs in monitoring, where the operator does not look: a run goes without\n       \
                     → add monitoring to the operator's PERFVAL_DCGM_EXPORTER_NAMESPACES, or to the chart's dcgmExporterNamespaces\n";
    let source = json!({"configMapKeyRef": {"name": "a", "key": "b"}});
    let unknown = json!([{"name": "PERFVAL_DCGM_EXPORTER_NAMESPACES", "valueFrom": source}]);
    for (variables, is_read) in [
        (json!([]), false),
        (set(""), false),
        (set("gpus, monitoring"), true),
        // It may run anywhere.
        (unknown, true),
    ] {
        let desk = with_variables(&variables);
        desk.server.delete("pods", "gpu-operator", "nvidia-dcgm-exporter");
        put_pod(&desk, "monitoring", "app.kubernetes.io/name", "dcgm-exporter");
        let answer = desk.types("doctor").await;
        assert_eq!(answer.code, 0, "{variables}: {}", answer.out);
        let shown = ["✓  a DCGM exporter runs:", elsewhere].map(|text| answer.out.contains(text));
        assert_eq!(shown, [is_read, !is_read], "{variables}: {}", answer.out);
    }
    // The manifest has its own source.
    let field = "spec:\n  telemetry: {endpoint: \"http://10.0.0.7:9400/metrics\"}\n";
    let file = edited_sample(&[("spec:\n", field)]);
    let answer = healthy().types(&format!("doctor -f {}", file.path().display())).await;
    assert!(!answer.out.contains("DCGM exporter"), "{}", answer.out);
}

/// A flag wins over a variable, and the value of another object is not read.
#[tokio::test]
async fn a_setting_made_in_another_way_is_no_gap() {
    let field = "  benchmark:\n    image: mirror.example/aiperf:1\n";
    let file = edited_sample(&[("  benchmark:\n", field)]);
    let words = format!("doctor -n kube-system -f {}", file.path().display());
    let refused =
        json!({"name": "PERFVAL_REFUSED_NAMESPACES", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}});
    let images =
        json!({"name": "PERFVAL_BENCHMARK_IMAGES", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "c"}}});
    for (variables, args, env_from) in [
        (
            json!([]),
            json!(["run", "--refused-namespaces=a", "--benchmark-images", "mirror.example"]),
            json!([]),
        ),
        (json!([refused, images]), json!(["run"]), json!([])),
        (json!([]), json!(["run"]), json!([{"configMapRef": {"name": "a"}}])),
    ] {
        let desk = with_variables(&variables);
        desk.server.edit("pods", NAMESPACE, NAME, |pod| {
            pod["spec"]["containers"][0]["args"] = args.clone();
            pod["spec"]["containers"][0]["envFrom"] = env_from.clone();
        });
        let answer = desk.types(&words).await;
        for gap in ["runs nothing in", "does not permit"] {
            assert!(!answer.out.contains(gap), "{args}: {}", answer.out);
        }
    }
}
