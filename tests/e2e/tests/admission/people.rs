//! What `config/users` lets people do.

use serde_json::json;

use crate::{cluster, eventually, kubectl, namespace, try_kubectl};

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
