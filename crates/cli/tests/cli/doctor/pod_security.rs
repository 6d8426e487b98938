//! Pod Security level of the namespace.

use perfval_testkit::api_server::Fault;
use serde_json::{Value, json};

use super::super::desk::edited_sample;
use super::{QUICK, healthy};

const TEMPLATE: &str = "podTemplate: {spec: {securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}, \
                        containerSecurityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}}";

const LEVEL: &str = "pod-security.kubernetes.io/enforce";

fn namespace(labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "perf", "labels": labels}})
}

#[tokio::test]
async fn a_restricted_namespace_is_named_with_the_lines_that_its_pods_lack() {
    let desk = healthy();
    let answer = async |words: &str| {
        let answer = desk.types(words).await;
        (answer.code, answer.in_one_line())
    };
    for labels in [json!({}), json!({LEVEL: "baseline"})] {
        desk.server.put(namespace(&labels));
        let (code, out) = answer(QUICK).await;
        assert!(code == 0 && !out.contains("Pod Security"), "{labels}: {out}");
    }

    desk.server.put(namespace(&json!({LEVEL: "restricted"})));
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

/// There every namespace has a range of users, at any Pod Security level.
#[tokio::test]
async fn on_openshift_a_user_of_the_namespaces_range_is_required_and_printed() {
    let desk = healthy();
    let answer = async |words: &str| {
        let answer = desk.types(words).await;
        (answer.code, answer.in_one_line())
    };
    let put = |labels: &Value, users: &str| {
        let mut object = namespace(labels);
        object["metadata"]["annotations"] = json!({"openshift.io/sa.scc.uid-range": users});
        desk.server.put(object);
    };
    let template = TEMPLATE.replace("runAsUser: 1000", "runAsUser: 1000680000, fsGroup: 1000680000");
    let with_template = |template: &str| edited_sample(&[("spec:\n", format!("spec:\n  {template}\n").as_str())]);
    let lacks = "a runAsUser of the namespace's range";

    // Another SCC may admit the pods.
    put(&json!({}), "1000680000/10000");
    let note = format!(
        "• namespace perf is one of OpenShift, and refuses the pods of a run unless another SCC than restricted-v2 admits them: \
         their security context lacks {lacks}"
    );
    let foreign = with_template(TEMPLATE);
    for words in [QUICK.to_owned(), format!("doctor -f {}", foreign.path().display())] {
        let (code, out) = answer(&words).await;
        assert!(code == 0 && out.contains(&note) && out.contains(&template), "{out}");
    }
    // The Job that fills a cache has a group of its own.
    let user = template.replace(", fsGroup: 1000680000", "");
    let cache = "    name: Qwen/Qwen3-0.6B\n    cache: {volumeClaimTemplate: {storage: 5Gi}}\n";
    let filling = edited_sample(&[
        ("spec:\n", format!("spec:\n  {user}\n").as_str()),
        ("    name: Qwen/Qwen3-0.6B\n", cache),
    ]);
    let (_, out) = answer(&format!("doctor -f {}", filling.path().display())).await;
    let lacks_group = "their security context lacks the first fsGroup of this range";
    assert!(out.contains(lacks_group), "{out}");
    let file = with_template(&user);
    let own = format!("doctor -f {}", file.path().display());
    let (code, out) = answer(&own).await;
    let fits = "✓ namespace perf admits the pods of this manifest (SCC restricted-v2)";
    assert!(code == 0 && out.contains(fits), "{out}");
    put(&json!({}), "of another release");
    let (code, out) = answer(QUICK).await;
    assert!(code == 0 && !out.contains("restricted"), "{out}");

    put(&json!({LEVEL: "restricted"}), "1000680000/10000");
    let (code, out) = answer(QUICK).await;
    let gap = format!("allowPrivilegeEscalation, capabilities.drop, {lacks}");
    assert!(
        code == 1 && out.contains(&gap) && out.contains(&template) && !out.contains(TEMPLATE),
        "{out}"
    );
    let (code, out) = answer(&own).await;
    assert!(code == 0 && out.contains("(Pod Security restricted)"), "{out}");
}

/// Many people may not read namespaces.
#[tokio::test]
async fn a_level_that_cannot_be_read_is_not_taken_for_none() {
    let desk = healthy();
    desk.server.fail(Fault::refuse("get", "namespaces", 403));
    let out = desk.types(QUICK).await.in_one_line();
    assert!(
        out.contains("? Pod Security level of perf") && out.contains("kubectl get namespace perf --show-labels"),
        "{out}"
    );
}
