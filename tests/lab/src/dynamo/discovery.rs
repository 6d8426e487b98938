//! The right to take part in Kubernetes discovery, one service account per graph.

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::shape::Graph;

/// Service account, role and the binding between them, all of one name.
pub fn build(graph: &Graph, owner: &OwnerReference) -> (ServiceAccount, Role, RoleBinding) {
    let name = graph.service_account();
    let metadata = ObjectMeta {
        name: Some(name.clone()),
        namespace: Some(graph.namespace.clone()),
        owner_references: Some(vec![owner.clone()]),
        ..ObjectMeta::default()
    };
    let account = ServiceAccount {
        metadata: metadata.clone(),
        ..ServiceAccount::default()
    };
    let read = ["get", "list", "watch"];
    let write = ["get", "list", "watch", "create", "update", "patch", "delete"];
    let role = Role {
        metadata: metadata.clone(),
        rules: Some(vec![
            rule("", &["endpoints", "pods"], &read),
            rule("discovery.k8s.io", &["endpointslices"], &read),
            rule("nvidia.com", &["dynamoworkermetadatas"], &write),
        ]),
    };
    let binding = RoleBinding {
        metadata,
        role_ref: RoleRef {
            api_group: "rbac.authorization.k8s.io".to_owned(),
            kind: "Role".to_owned(),
            name: name.clone(),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name,
            namespace: Some(graph.namespace.clone()),
            ..Subject::default()
        }]),
    };
    (account, role, binding)
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        ..PolicyRule::default()
    }
}
