//! What `config/users` lets people do.

use perfval_e2e::eventually;
use serde_json::{Value, json};

use crate::{NOTICED, cluster, kubectl, namespace, try_kubectl};

const NAMESPACE: &str = "people";
const VIEW: &str = "perfvalidation-operator-view";
const EDIT: &str = "perfvalidation-operator-edit";
const ADMIN: &str = "perfvalidation-operator-admin";
const NODE_VIEW: &str = "perfvalidation-operator-node-view";
const NODE_EDIT: &str = "perfvalidation-operator-node-edit";
const APPROVE: &str = "perfvalidation-operator-baseline-approve";
/// A role of the cluster's own.
const FOREIGN: &str = "edit";

/// Roles for objects of the whole cluster.
fn is_for_the_cluster(role: &str) -> bool {
    [NODE_VIEW, NODE_EDIT, APPROVE].contains(&role)
}

/// Gives a role to the user of the same name.
fn binding(role: &str) -> Value {
    let group = "rbac.authorization.k8s.io";
    let mut binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": role},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": role}]});
    if !is_for_the_cluster(role) {
        binding["kind"] = json!("RoleBinding");
        binding["metadata"]["namespace"] = json!(NAMESPACE);
    }
    binding
}

#[tokio::test]
#[ignore = "needs the lab: just admission"]
async fn people_read_and_write_by_their_roles() {
    cluster().await;
    namespace(NAMESPACE).await;
    kubectl(&["apply", "--server-side", "-k", "config/users"], "").await;
    for role in [VIEW, EDIT, ADMIN, NODE_VIEW, NODE_EDIT, APPROVE, FOREIGN] {
        kubectl(&["apply", "--server-side", "-f", "-"], &binding(role).to_string()).await;
    }
    // What a role allows comes first: then its binding was noticed, and a "no" is the role's.
    for (role, verb, resource, wanted) in [
        (VIEW, "get", "perfvalidations", true),
        (VIEW, "create", "perfvalidations", false),
        (VIEW, "patch", "perfvalidations", false),
        (EDIT, "watch", "perfvalidations", true),
        (EDIT, "create", "perfvalidations", true),
        (EDIT, "patch", "perfvalidations/status", false),
        (EDIT, "deletecollection", "perfvalidations", false),
        (ADMIN, "create", "perfvalidations", true),
        (ADMIN, "deletecollection", "perfvalidations", true),
        (NODE_VIEW, "list", "nodeperformances", true),
        (NODE_VIEW, "get", "perfvalidationpolicies/status", true),
        (NODE_VIEW, "create", "perfvalidationpolicies", false),
        (NODE_VIEW, "patch", "perfbaselines", false),
        (NODE_EDIT, "create", "perfvalidationpolicies", true),
        (NODE_EDIT, "patch", "perfbaselines", false),
        (NODE_EDIT, "deletecollection", "perfvalidationpolicies", false),
        (APPROVE, "patch", "perfbaselines", true),
        (APPROVE, "patch", "perfbaselines/status", false),
        (APPROVE, "create", "perfvalidationpolicies", false),
        // Without the component `aggregate-roles` the cluster's own roles stay as they are.
        (FOREIGN, "create", "configmaps", true),
        (FOREIGN, "create", "perfvalidations", false),
    ] {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let resource = match resource {
            "configmaps" => resource.to_owned(),
            ours => format!("{ours}.perfvalidation.dev"),
        };
        let subresource = format!("--subresource={subresource}");
        let scope = if is_for_the_cluster(role) {
            "--all-namespaces".to_owned()
        } else {
            format!("--namespace={NAMESPACE}")
        };
        let ask = ["auth", "can-i", verb, &resource, &subresource, "--as", role, &scope];
        eventually(&format!("{ask:?}"), NOTICED, async || {
            let allowed = match try_kubectl(&ask, "").await {
                Ok(_) => true,
                // It prints "no" to its standard output. An error is no answer.
                Err(said) if said.trim().is_empty() => false,
                Err(said) => return Err(said),
            };
            (allowed == wanted).then_some(()).ok_or_else(|| allowed.to_string())
        })
        .await;
    }
}
