//! Pod Security level of the namespace.

use perfval_testkit::api_server::Fault;
use serde_json::{Value, json};

use super::super::desk::edited_sample;
use super::{QUICK, healthy};

const TEMPLATE: &str = "podTemplate: {spec: {securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}, \
                        containerSecurityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}}";

fn namespace(labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "perf", "labels": labels}})
}

#[tokio::test]
async fn a_restricted_namespace_is_named_with_the_lines_that_its_pods_lack() {
    let desk = healthy();
    let level = "pod-security.kubernetes.io/enforce";
    let answer = async |words: &str| {
        let answer = desk.types(words).await;
        let out = answer.out.split_whitespace().collect::<Vec<_>>().join(" ");
        (answer.code, out)
    };
    for labels in [json!({}), json!({level: "baseline"})] {
        desk.server.put(namespace(&labels));
        let (code, out) = answer(QUICK).await;
        assert!(code == 0 && !out.contains("Pod Security"), "{labels}: {out}");
    }

    desk.server.put(namespace(&json!({level: "restricted"})));
    let refused = "namespace perf has the Pod Security level restricted and refuses Dynamo's pods: their security context lacks \
                   runAsNonRoot, seccompProfile, allowPrivilegeEscalation, capabilities.drop";
    let (code, out) = answer(QUICK).await;
    assert!(
        code == 1 && out.contains(&format!("✗ {refused}")) && out.contains(TEMPLATE),
        "{out}"
    );
    let (code, out) = answer("doctor").await;
    assert!(code == 0 && out.contains(&format!("• {refused}")), "{out}");

    let file = edited_sample(&[("spec:\n", format!("spec:\n  {TEMPLATE}\n").as_str())]);
    let (code, out) = answer(&format!("doctor -f {}", file.path().display())).await;
    let fits = "✓ namespace perf admits the pods of this manifest (Pod Security restricted)";
    assert!(code == 0 && out.contains(fits), "{out}");

    let root = TEMPLATE.replace("runAsUser: 1000", "runAsUser: 0");
    let file = edited_sample(&[("spec:\n", format!("spec:\n  {root}\n").as_str())]);
    let (code, out) = answer(&format!("doctor -f {}", file.path().display())).await;
    let lacks = "their security context lacks a runAsUser that is not root";
    assert!(code == 1 && out.contains(lacks), "{out}");
}

/// Many people may not read namespaces.
#[tokio::test]
async fn a_level_that_cannot_be_read_is_not_taken_for_none() {
    let desk = healthy();
    desk.server.fail(Fault::refuse("get", "namespaces", 403));
    let answer = desk.types(QUICK).await;
    let out = answer.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        out.contains("? Pod Security level of perf") && out.contains("kubectl get namespace perf --show-labels"),
        "{out}"
    );
}
