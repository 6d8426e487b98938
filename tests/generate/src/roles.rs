//! Roles of the operator, computed from the tables of the calls that need them.

use perfval_cluster::{PERMISSIONS, Permission, Scope};
use perfval_operator::rbac::{LEASE, PROCESS};

/// A role of its own file.
pub struct Role {
    /// File under config/rbac.
    pub file: &'static str,
    /// Kind of the object.
    pub kind: &'static str,
    /// Name of the object.
    pub name: &'static str,
    /// Comment at the head of the file.
    pub about: &'static str,
    /// Its rules.
    pub rules: Vec<Rule>,
    /// Kind of its binding, if an account is bound to it.
    pub binding: Option<&'static str>,
    /// True if every installation has it.
    pub installed: bool,
}

/// One rule: every verb on one resource, and all calls that need it.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Plural of the resource, with its subresource.
    pub resource: &'static str,
    /// Names of the only objects that it is for; empty: all.
    pub names: &'static [&'static str],
    /// Verbs, sorted.
    pub verbs: Vec<&'static str>,
    /// Calls that need it, sorted.
    pub calls: Vec<&'static str>,
}

/// Every role.
pub fn roles() -> [Role; 6] {
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
            installed: true,
        },
        Role {
            file: "watch_role.yaml",
            kind: "ClusterRole",
            name: "perfvalidation-operator-watch",
            about: "What is done in every watched namespace: it writes its own kind and Events, and creates no pod.",
            rules: of(Scope::Watched),
            binding: Some("ClusterRoleBinding"),
            installed: true,
        },
        Role {
            file: "runs_role.yaml",
            kind: "ClusterRole",
            name: "perfvalidation-operator-runs",
            about: "What a run creates. Bind it in each namespace whose users may measure; config/components/all-namespaces binds it\n\
                    # everywhere.",
            rules: of(Scope::Run),
            binding: None,
            installed: true,
        },
        Role {
            file: "fleet_role.yaml",
            kind: "ClusterRole",
            name: "perfvalidation-operator-fleet",
            about: "What an operator of all namespaces writes about nodes and policies: its own kinds, and no Node.",
            rules: of(Scope::Fleet),
            binding: Some("ClusterRoleBinding"),
            installed: true,
        },
        Role {
            file: "lease_role.yaml",
            kind: "Role",
            name: "perfvalidation-operator-lease",
            about: "Leader election.",
            rules: rules(LEASE.iter()),
            binding: Some("RoleBinding"),
            installed: true,
        },
        Role {
            file: "outside_role.yaml",
            kind: "ClusterRole",
            name: "perfvalidation-operator-outside",
            about: "Only for an operator outside the cluster (--endpoint-access=service-proxy): bound to no account.",
            rules: of(Scope::Outside),
            binding: None,
            installed: false,
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

/// Rows of the documentation: role if it is another than in the row before, verbs, and the resources with these verbs.
pub fn table() -> Vec<[String; 3]> {
    let mut rows: Vec<(&str, String, Vec<String>)> = Vec::new();
    for role in roles() {
        for rule in &role.rules {
            let verbs = rule.verbs.join(", ");
            let resource = shown(rule);
            match rows.iter_mut().find(|row| row.0 == role.name && row.1 == verbs) {
                Some(row) => row.2.push(resource),
                None => rows.push((role.name, verbs, vec![resource])),
            }
        }
    }
    let mut before = "";
    rows.into_iter()
        .map(|(role, verbs, resources)| {
            let shown = if role == before { "" } else { short(role) };
            before = role;
            [shown.to_owned(), verbs, resources.join(", ")]
        })
        .collect()
}

/// Role without the prefix that all have.
fn short(role: &str) -> &str {
    role.strip_prefix("perfvalidation-operator-").unwrap_or(role)
}

fn shown(rule: &Rule) -> String {
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
    format!("{}{group}{names}", rule.resource)
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
    fn what_creates_pods_or_reaches_them_is_bound_to_no_account() {
        for role in roles() {
            let proxies = role.rules.iter().any(|rule| rule.resource == "services/proxy");
            assert_eq!(proxies, role.file == "outside_role.yaml", "{}", role.name);
            let creates = |rule: &Rule| {
                ["jobs", "dynamographdeployments"].contains(&rule.resource) && rule.verbs.contains(&"create")
            };
            let runs = role.rules.iter().any(creates);
            assert_eq!(runs, role.file == "runs_role.yaml", "{}", role.name);
            assert_eq!(role.binding.is_none(), proxies || runs, "{}", role.name);
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
