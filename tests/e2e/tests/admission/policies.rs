//! What `config/policies` refuses, and what `config/users` lets the cluster's own roles do.

use perfval_testkit::admission::with_spec;
use serde_json::{Value, json};

use crate::{cluster, eventually, kubectl, try_kubectl};

const NAMESPACE: &str = "limited";

/// A manifest within the limits, changed by a merge patch of its `spec`.
fn manifest(name: &str, spec: Value) -> Value {
    let mut manifest = with_spec(spec);
    manifest["metadata"] = json!({"name": name, "namespace": NAMESPACE});
    let selector = &mut manifest["spec"]["placement"]["nodeSelector"];
    if selector.is_null() {
        *selector = json!({"perfvalidation.dev/pool": "validation"});
    }
    let generator = &mut manifest["spec"]["benchmark"]["placement"];
    if generator.is_null() {
        *generator = json!("WorkloadNode");
    }
    manifest
}

/// What the API server says to a manifest: nothing, or why it refuses.
async fn refusal(manifest: &Value) -> Option<String> {
    let create = ["create", "--dry-run=server", "-f", "-"];
    try_kubectl(&create, &manifest.to_string()).await.err()
}

/// Asks again until the answer is the wanted one.
async fn namespace(name: &str, labels: Value) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    kubectl(&["apply", "--server-side", "-f", "-"], &namespace.to_string()).await;
}

#[tokio::test]
#[ignore = "needs the lab: just admission"]
async fn the_policy_limits_images_nodes_and_secrets_where_it_is_enforced() {
    cluster().await;
    namespace("perfvalidation-system", json!({})).await;
    namespace(NAMESPACE, json!({})).await;
    // An object that is older than the limits and breaks them; an earlier test run may have left the label.
    kubectl(&["label", "namespace", NAMESPACE, "perfvalidation.dev/limits-"], "").await;
    let old = manifest(
        "old",
        json!({"suspend": true, "workload": {"dynamo": {"image": "docker.io/library/busybox:1"}}}),
    );
    eventually("the old object is refused", async || {
        let apply = ["apply", "--server-side", "-f", "-"];
        try_kubectl(&apply, &old.to_string()).await.map(drop)
    })
    .await;
    kubectl(&["apply", "--server-side", "-k", "config/policies"], "").await;
    let label = ["label", "namespace", NAMESPACE, "perfvalidation.dev/limits=enforced"];
    kubectl(&label, "").await;
    let foreign = json!({"workload": {"dynamo": {"image": "nvcr.io/nvidia/ai-dynamo-of-others/x:1.6.1"}}});
    let wrong = manifest("wrong", foreign.clone());
    eventually("the policy is not enforced", async || match refusal(&wrong).await {
        Some(_) => Ok(()),
        None => Err("a foreign image is accepted".to_owned()),
    })
    .await;

    let env = |secret: &str| {
        json!({"workload": {"dynamo": {"env": [
            {"name": "PLAIN", "value": "1"},
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": secret, "key": "k"}}},
        ]}}})
    };
    for (name, spec) in [
        ("plain", json!({})),
        (
            "token",
            json!({"model": {"tokenSecretRef": {"name": "hf-token", "key": "token"}}}),
        ),
        ("known-secret", env("hf-token")),
        (
            "own-aiperf",
            json!({"benchmark": {"image": "ghcr.io/perfvalidation/aiperf:0.13.0"}}),
        ),
    ] {
        assert_eq!(refusal(&manifest(name, spec)).await, None, "{name}");
    }
    for (name, spec, words) in [
        ("workers", foreign, "images are limited to nvcr.io/nvidia/ai-dynamo"),
        (
            "frontend",
            json!({"workload": {"dynamo": {"frontend": {"image": "quay.io/x/y:1.6.1"}}}}),
            "images are limited to nvcr.io/nvidia/ai-dynamo",
        ),
        (
            "load-generator",
            json!({"benchmark": {"image": "aiperf:0.13.0"}}),
            "images are limited to",
        ),
        (
            "node",
            json!({"placement": {"nodeSelector": {"kubernetes.io/hostname": "a"}}}),
            "write perfvalidation.dev/pool with one of validation",
        ),
        (
            "frontend-anywhere",
            json!({
                "workload": {"dynamo": {"frontend": {"placement": "Anywhere"}}},
                "placement": {"nodeSelector": {"perfvalidation.dev/pool": "validation"}},
            }),
            "write WorkloadNode in workload.dynamo.frontend.placement",
        ),
        (
            "generator-anywhere",
            json!({"benchmark": {"placement": "Anywhere"}}),
            "write WorkloadNode in benchmark.placement",
        ),
        (
            "priority",
            json!({"podTemplate": {"spec": {"priorityClassName": "high"}}}),
            "leave podTemplate.spec.priorityClassName out",
        ),
        (
            "secret",
            env("database"),
            "Secrets in workload.dynamo.env are limited to hf-token",
        ),
        (
            "token",
            json!({"model": {"tokenSecretRef": {"name": "database", "key": "k"}}}),
            "model.tokenSecretRef is limited to hf-token",
        ),
    ] {
        let said = refusal(&manifest(name, spec))
            .await
            .unwrap_or_else(|| panic!("{name} is accepted"));
        assert!(said.contains(words), "{name}: no {words:?} in {said}");
    }

    // It can still be annotated, and deleted; a new spec has to keep the limits.
    kubectl(
        &[
            "annotate",
            "perfval",
            "old",
            "--namespace",
            NAMESPACE,
            "perfvalidation.dev/rerun=1",
        ],
        "",
    )
    .await;
    let edit = [
        "patch",
        "perfval",
        "old",
        "--namespace",
        NAMESPACE,
        "--type=merge",
        "-p",
        r#"{"spec":{"suspend":false}}"#,
    ];
    let said = try_kubectl(&edit, "").await.expect_err("the old image in a new spec");
    assert!(said.contains("images are limited to"), "{said}");
    kubectl(&["delete", "perfval", "old", "--namespace", NAMESPACE], "").await;
}

#[tokio::test]
#[ignore = "needs the lab: just admission"]
async fn the_policys_expressions_fit_the_types_of_the_definition() {
    cluster().await;
    namespace("perfvalidation-system", json!({})).await;
    kubectl(&["apply", "--server-side", "-k", "config/policies"], "").await;
    eventually("its types are not checked", async || {
        let get = ["get", "validatingadmissionpolicy", "perfvalidation-limits", "-o=json"];
        let policy: Value = serde_json::from_str(&kubectl(&get, "").await.0).map_err(|error| error.to_string())?;
        let checked = policy["status"]["observedGeneration"] == policy["metadata"]["generation"];
        let warnings = &policy["status"]["typeChecking"]["expressionWarnings"];
        assert!(warnings.is_null(), "{warnings:#}");
        if checked {
            Ok(())
        } else {
            Err(policy["status"].to_string())
        }
    })
    .await;
}

#[tokio::test]
#[ignore = "needs the lab: just admission"]
async fn people_read_and_write_by_their_roles() {
    cluster().await;
    let namespace_name = "people";
    namespace(namespace_name, json!({})).await;
    kubectl(&["apply", "--server-side", "-k", "config/users"], "").await;
    let binding = |role: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
               "metadata": {"name": role, "namespace": namespace_name},
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
               "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": role}]})
    };
    for role in [
        "edit",
        "perfvalidation-operator-view",
        "perfvalidation-operator-edit",
        "perfvalidation-operator-admin",
    ] {
        kubectl(&["apply", "--server-side", "-f", "-"], &binding(role).to_string()).await;
    }
    for (role, verb, resource, wanted) in [
        // Without the component `aggregate-roles` the cluster's own roles stay as they are.
        ("edit", "create", "perfvalidations", false),
        ("perfvalidation-operator-view", "get", "perfvalidations", true),
        ("perfvalidation-operator-view", "create", "perfvalidations", false),
        ("perfvalidation-operator-view", "patch", "perfvalidations", false),
        ("perfvalidation-operator-edit", "watch", "perfvalidations", true),
        ("perfvalidation-operator-edit", "create", "perfvalidations", true),
        ("perfvalidation-operator-edit", "patch", "perfvalidations/status", false),
        (
            "perfvalidation-operator-edit",
            "deletecollection",
            "perfvalidations",
            false,
        ),
        ("perfvalidation-operator-admin", "create", "perfvalidations", true),
        (
            "perfvalidation-operator-admin",
            "deletecollection",
            "perfvalidations",
            true,
        ),
    ] {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let (resource, subresource) = (
            format!("{resource}.perfvalidation.dev"),
            format!("--subresource={subresource}"),
        );
        let ask = [
            "auth",
            "can-i",
            verb,
            &resource,
            &subresource,
            "--as",
            role,
            "--namespace",
            namespace_name,
        ];
        eventually(&format!("{role} {verb} {resource} {subresource}"), async || {
            let allowed = try_kubectl(&ask, "").await.is_ok();
            if allowed == wanted {
                Ok(())
            } else {
                Err(format!("{allowed}"))
            }
        })
        .await;
    }
}
