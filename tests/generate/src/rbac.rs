//! The roles as files: config/rbac.

use std::fmt::Write as _;

use crate::roles::{Role, roles};

const NAME: &str = "perfvalidation-operator";
const NAMESPACE: &str = "perfvalidation-system";

/// Every file of config/rbac, by name.
pub fn files() -> Vec<(&'static str, String)> {
    let roles = roles();
    let mut files: Vec<_> = roles.iter().map(|role| (role.file, role_file(role))).collect();
    files.push(("service_account.yaml", service_account()));
    let resources: Vec<_> = ["service_account.yaml"]
        .into_iter()
        .chain(roles.iter().filter(|role| role.installed).map(|role| role.file))
        .map(|file| format!("  - {file}\n"))
        .collect();
    let kustomization = format!(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n{}",
        resources.concat()
    );
    files.push(("kustomization.yaml", kustomization));
    for (_, text) in &mut files {
        text.insert_str(
            0,
            "# Generated from the tables of rights in crates/cluster and crates/operator: run `just generate`.\n",
        );
    }
    files
}

fn role_file(role: &Role) -> String {
    let namespace = if role.kind == "Role" {
        format!("  namespace: {NAMESPACE}\n")
    } else {
        String::new()
    };
    let mut text = format!(
        "# {}\napiVersion: rbac.authorization.k8s.io/v1\nkind: {}\nmetadata:\n  name: {}\n{namespace}rules:\n",
        role.about, role.kind, role.name
    );
    for rule in &role.rules {
        for call in &rule.calls {
            let _ = writeln!(text, "  # {call}");
        }
        let _ = writeln!(
            text,
            "  - apiGroups: [{:?}]\n    resources: [{:?}]",
            rule.group, rule.resource
        );
        if !rule.names.is_empty() {
            let _ = writeln!(text, "    resourceNames: {:?}", rule.names);
        }
        let _ = writeln!(text, "    verbs: {:?}", rule.verbs);
    }
    if let Some(binding) = role.binding {
        let _ = write!(
            text,
            "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {binding}\nmetadata:\n  name: {name}\n{namespace}\
             roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: {kind}\n  name: {name}\n\
             subjects:\n  - kind: ServiceAccount\n    name: {NAME}\n    namespace: {NAMESPACE}\n",
            name = role.name,
            kind = role.kind,
        );
    }
    text
}

fn service_account() -> String {
    format!("apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {NAME}\n  namespace: {NAMESPACE}\n")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};

    use super::*;

    #[test]
    fn a_role_file_matches_the_table() {
        for role in roles() {
            let text = role_file(&role);
            // A Role and a ClusterRole differ in their kind alone.
            let first = text
                .split("---\n")
                .next()
                .unwrap()
                .replace("kind: Role\n", "kind: ClusterRole\n");
            let said: ClusterRole = serde_saphyr::from_str(&first).unwrap();
            let owned = |words: &[&str]| Some(words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
            let meant = role.rules.iter().map(|rule| PolicyRule {
                api_groups: owned(&[rule.group]),
                resources: owned(&[rule.resource]),
                resource_names: owned(rule.names).filter(|names| !names.is_empty()),
                verbs: owned(&rule.verbs).unwrap(),
                ..PolicyRule::default()
            });
            assert_eq!(said.metadata.name.as_deref(), Some(role.name));
            assert_eq!(said.rules, Some(meant.collect()));
        }
    }
}
