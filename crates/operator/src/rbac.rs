//! The roles under config/rbac, written from the tables of the calls that need them.

mod files;
mod right;

use perfval_cluster::{PERMISSIONS, Permission, Scope, dynamo};

pub use files::{files, manifest, write};
pub use right::{Duties, Right, known_resource};

/// Calls of the process itself; those of a pass are the cluster crate's.
const PROCESS: &[Permission] = &[
    process(
        "perfvalidation.dev",
        "perfvalidations",
        &["list", "watch"],
        Scope::Cluster,
        "watch of the objects",
    ),
    process("", "pods", &["list", "watch"], Scope::Cluster, "watch of a run's pods"),
    process(
        "resource.k8s.io",
        "resourceclaims",
        &["list", "watch"],
        Scope::Cluster,
        "watch of a run's claims",
    ),
    process(
        "batch",
        "jobs",
        &["list", "watch"],
        Scope::Namespace,
        "watch of a run's Jobs",
    ),
    process(
        dynamo::GROUP,
        dynamo::PLURAL,
        &["list", "watch"],
        Scope::Namespace,
        "watch of a run's deployment",
    ),
    Permission {
        names: &[dynamo::CRD],
        ..process(
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            &["list", "watch"],
            Scope::Cluster,
            "notices when Dynamo's operator comes or goes",
        )
    },
    process(
        "events.k8s.io",
        "events",
        &["create", "patch"],
        Scope::Namespace,
        "event on an object that cannot be parsed",
    ),
];

/// The lease lives in the operator's own namespace.
const LEASE: &[Permission] = &[process(
    "coordination.k8s.io",
    "leases",
    &["get", "create", "update"],
    Scope::Namespace,
    "leader election",
)];

const fn process(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    scope: Scope,
    call: &'static str,
) -> Permission {
    Permission {
        group,
        resource,
        verbs,
        names: &[],
        scope,
        call,
    }
}

/// A role of its own file.
struct Role {
    file: &'static str,
    kind: &'static str,
    name: &'static str,
    about: &'static str,
    rules: Vec<Rule>,
    binding: Option<&'static str>,
}

/// One rule: every verb on one resource, and all calls that need it.
#[derive(Clone, Debug, PartialEq)]
struct Rule {
    group: &'static str,
    resource: &'static str,
    names: &'static [&'static str],
    verbs: Vec<&'static str>,
    calls: Vec<&'static str>,
}

fn roles() -> [Role; 4] {
    let all = || PERMISSIONS.iter().chain(PROCESS);
    let of = |scope| rules(all().filter(move |permission| permission.scope == scope));
    [
        Role {
            file: "read_role.yaml",
            kind: "ClusterRole",
            name: "perfvalidation-operator-read",
            about: "What is read in the whole cluster: sizing counts every GPU and who holds it.",
            rules: of(Scope::Cluster),
            binding: Some("ClusterRoleBinding"),
        },
        Role {
            file: "namespace_role.yaml",
            kind: "ClusterRole",
            name: "perfvalidation-operator-namespace",
            about: "What is done in the namespaces of PerfValidations: here, all of them. config/namespaced and the chart's\n\
                    # watchNamespaces make it a Role of one, or of each.",
            rules: of(Scope::Namespace),
            binding: Some("ClusterRoleBinding"),
        },
        Role {
            file: "lease_role.yaml",
            kind: "Role",
            name: "perfvalidation-operator-lease",
            about: "Leader election.",
            rules: rules(LEASE.iter()),
            binding: Some("RoleBinding"),
        },
        Role {
            file: "outside_role.yaml",
            kind: "ClusterRole",
            name: "perfvalidation-operator-outside",
            about: "Only for an operator outside the cluster (--endpoint-access=service-proxy): bound to no account.",
            rules: of(Scope::Outside),
            binding: None,
        },
    ]
}

/// Rules sorted and merged by resource: a role must not depend on the order of a table.
fn rules<'a>(permissions: impl Iterator<Item = &'a Permission>) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for permission in permissions {
        let Permission {
            group,
            resource,
            verbs,
            names,
            call,
            scope: _,
        } = *permission;
        let same = |rule: &&mut Rule| (rule.group, rule.resource, rule.names) == (group, resource, names);
        let rule = match rules.iter_mut().find(same) {
            Some(rule) => rule,
            None => rules.push_mut(Rule {
                group,
                resource,
                names,
                verbs: Vec::new(),
                calls: Vec::new(),
            }),
        };
        rule.verbs.extend(verbs);
        rule.calls.push(call);
    }
    for rule in &mut rules {
        rule.verbs.sort_unstable();
        rule.verbs.dedup();
        rule.calls.sort_unstable();
        rule.calls.dedup();
    }
    rules.sort_by_key(|rule| (rule.group, rule.resource, rule.names));
    rules
}

/// Rows of the documentation: role, resource, verbs, calls.
pub(crate) fn table() -> Vec<[String; 4]> {
    let roles = roles();
    let rows = roles
        .iter()
        .flat_map(|role| role.rules.iter().map(move |rule| (role, rule)));
    rows.map(|(role, rule)| {
        let group = if rule.group.is_empty() {
            String::new()
        } else {
            format!(".{}", rule.group)
        };
        let names = if rule.names.is_empty() {
            String::new()
        } else {
            format!(" ({})", rule.names.join(", "))
        };
        let resource = format!("{}{group}{names}", rule.resource);
        [
            role.name.to_owned(),
            resource,
            rule.verbs.join(", "),
            rule.calls.join("; "),
        ]
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_role_reads_secrets_or_holds_a_wildcard() {
        let rules: Vec<_> = roles().into_iter().flat_map(|role| role.rules).collect();
        assert!(rules.len() > 15, "{}", rules.len());
        for rule in rules {
            assert!(!rule.resource.starts_with("secrets"), "{rule:?}");
            assert!(
                rule.verbs
                    .iter()
                    .chain([&rule.resource, &rule.group])
                    .all(|word| !word.contains('*')),
                "{rule:?}"
            );
            assert!(
                !rule.verbs.is_empty() && rule.calls.iter().all(|call| !call.is_empty()),
                "{rule:?}"
            );
        }
    }

    #[test]
    fn the_service_proxy_is_only_for_outside_and_bound_to_no_account() {
        for role in roles() {
            let proxies = role.rules.iter().any(|rule| rule.resource == "services/proxy");
            assert_eq!(proxies, role.file == "outside_role.yaml", "{}", role.name);
            assert_eq!(role.binding.is_none(), proxies, "{}", role.name);
        }
    }

    #[test]
    fn nothing_outside_its_namespaces_is_written() {
        let read = &roles()[0];
        for rule in &read.rules {
            assert!(
                rule.verbs.iter().all(|verb| ["get", "list", "watch"].contains(verb)),
                "{rule:?}"
            );
        }
    }
}
