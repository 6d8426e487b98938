//! What the roles grant to the operator's service account.

use std::path::Path;

use k8s_openapi::api::rbac::v1::PolicyRule;
use serde::Deserialize;

use super::{Request, Use};

/// One verb on one resource, and where it is granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    group: String,
    resource: String,
    verb: String,
    /// The only objects it is granted for; empty: all.
    names: Vec<String>,
    /// The only namespace; none: all of them, and the whole cluster.
    namespace: Option<String>,
    /// Whether a right in a namespace would not do: the roles say so by their name.
    pub(super) cluster_only: bool,
}

impl Grant {
    pub(super) fn covers(&self, request: &Request) -> bool {
        let named = self.names.is_empty() || request.name.as_ref().is_some_and(|name| self.names.contains(name));
        let there = self.namespace.is_none() || self.namespace == request.namespace;
        (&self.group, &self.resource, &self.verb) == (&request.group, &request.resource, &request.verb)
            && named
            && there
    }

    pub(super) fn what(&self) -> Use {
        Use {
            group: self.group.clone(),
            resource: self.resource.clone(),
            verb: self.verb.clone(),
            cluster_wide: self.cluster_only,
        }
    }
}

/// A `Role`, a `ClusterRole`, or one of their bindings.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    kind: String,
    metadata: Metadata,
    #[serde(default)]
    rules: Vec<PolicyRule>,
    role_ref: Option<RoleRef>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
    namespace: Option<String>,
}

#[derive(Deserialize)]
struct RoleRef {
    name: String,
}

/// Reads every role of a folder that is bound in it, and that of runs, which the lab binds in each namespace.
///
/// # Errors
/// If a file cannot be read, or is no role.
pub fn read_roles(folder: &Path) -> Result<Vec<Grant>, Box<dyn std::error::Error>> {
    let mut documents: Vec<Document> = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().ends_with("_role.yaml"))
        {
            let text = std::fs::read_to_string(&path)?;
            documents.extend(serde_saphyr::from_multiple::<Document>(&text)?);
        }
    }
    let bound = |name: &str| {
        let mut others = documents.iter();
        name.ends_with("-runs") || others.any(|other| other.role_ref.as_ref().is_some_and(|role| role.name == name))
    };
    let roles = documents
        .iter()
        .filter(|document| document.kind.ends_with("Role") && bound(&document.metadata.name));
    Ok(roles.flat_map(grants).collect())
}

fn grants(role: &Document) -> Vec<Grant> {
    let namespace = role.metadata.namespace.clone().filter(|_| role.kind == "Role");
    let cluster_only = role.metadata.name.ends_with("-read");
    let mut grants = Vec::new();
    for rule in &role.rules {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for verb in &rule.verbs {
                    grants.push(Grant {
                        group: group.clone(),
                        resource: resource.clone(),
                        verb: verb.clone(),
                        names: rule.resource_names.clone().unwrap_or_default(),
                        namespace: namespace.clone(),
                        cluster_only,
                    });
                }
            }
        }
    }
    grants
}

#[cfg(test)]
impl Grant {
    /// A request that needs it.
    pub(super) fn example(&self) -> Request {
        Request {
            group: self.group.clone(),
            resource: self.resource.clone(),
            verb: self.verb.clone(),
            namespace: self.namespace.clone(),
            name: self.names.first().cloned(),
            refused: false,
        }
    }
}
