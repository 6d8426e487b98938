//! One right at a time, as an operator with given flags needs it.

use std::fmt;

use perfval_cluster::{PERMISSIONS, Permission, Scope};

use super::{LEASE, PROCESS};

/// A verb on a resource somewhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Plural of the resource, with its subresource.
    pub resource: &'static str,
    /// Verb.
    pub verb: &'static str,
    /// The only object it is needed for; none: all.
    pub name: Option<&'static str>,
    /// Namespace of the right; `None` for the whole cluster.
    pub namespace: Option<String>,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if let Some(name) = self.name {
            write!(f, " {name}")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " (in namespace {namespace})"),
            None => f.write_str(" (cluster-wide)"),
        }
    }
}

/// Configuration of an operator, as far as its rights depend on it.
#[derive(Clone, Debug)]
pub struct Duties {
    /// The watched namespaces; `None` is all of them.
    pub namespaces: Vec<Option<String>>,
    /// Namespace of the lease, if there is one.
    pub lease: Option<String>,
    /// True if endpoints are reached through the API server.
    pub outside: bool,
}

impl Duties {
    /// Returns true if it looks after every namespace, and so after every node.
    pub fn covers_all(&self) -> bool {
        self.namespaces.contains(&None)
    }

    /// Every right that it needs.
    pub fn rights(&self) -> Vec<Right> {
        let of_passes = PERMISSIONS.iter().chain(PROCESS);
        let mut rights: Vec<Right> = of_passes
            .flat_map(|permission| {
                let namespaces = match permission.scope {
                    Scope::Cluster => vec![None],
                    // An operator of all namespaces may lack them in most: each run asks for its own.
                    Scope::Run | Scope::Outside if self.covers_all() => Vec::new(),
                    Scope::Watched | Scope::Run => self.namespaces.clone(),
                    Scope::Fleet if self.covers_all() => vec![None],
                    Scope::Outside if self.outside => self.namespaces.clone(),
                    Scope::Fleet | Scope::Outside => Vec::new(),
                };
                expand(permission, &namespaces)
            })
            .collect();
        let lease: Vec<_> = self.lease.iter().cloned().map(Some).collect();
        rights.extend(LEASE.iter().flat_map(|permission| expand(permission, &lease)));
        rights.sort();
        rights.dedup();
        rights
    }
}

fn expand(permission: &'static Permission, namespaces: &[Option<String>]) -> Vec<Right> {
    let mut names: Vec<_> = permission.names.iter().copied().map(Some).collect();
    if names.is_empty() {
        names.push(None);
    }
    let mut rights = Vec::new();
    for namespace in namespaces {
        for &verb in permission.verbs {
            rights.extend(names.iter().map(|name| Right {
                group: permission.group,
                resource: permission.resource,
                verb,
                name: *name,
                namespace: namespace.clone(),
            }));
        }
    }
    rights
}

/// Name of a resource, if any right of the operator contains it.
pub fn known_resource(resource: &str) -> Option<&'static str> {
    let all = PERMISSIONS.iter().chain(PROCESS).chain(LEASE);
    all.map(|permission| permission.resource)
        .find(|known| *known == resource)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(duties: &Duties) -> Vec<String> {
        duties.rights().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rights_are_needed_where_the_operator_works() {
        let everywhere = texts(&Duties {
            namespaces: vec![None],
            lease: Some("own".into()),
            outside: true,
        });
        for right in [
            "list nodes (cluster-wide)",
            "watch jobs.batch (cluster-wide)",
            "patch perfvalidations.perfvalidation.dev (cluster-wide)",
            "update leases.coordination.k8s.io (in namespace own)",
            "create nodeperformances.perfvalidation.dev (cluster-wide)",
            "create perfvalidations.perfvalidation.dev (cluster-wide)",
            "get customresourcedefinitions.apiextensions.k8s.io dynamographdeployments.nvidia.com (cluster-wide)",
        ] {
            assert!(
                everywhere.iter().any(|found| found == right),
                "{right} is not in {everywhere:#?}"
            );
        }
        for not_needed in ["services/proxy", "create jobs", "get pods/log"] {
            assert!(
                !everywhere.iter().any(|right| right.contains(not_needed)),
                "{not_needed}"
            );
        }

        let two = texts(&Duties {
            namespaces: vec![Some("a".into()), Some("b".into())],
            lease: None,
            outside: true,
        });
        for right in [
            "list nodes (cluster-wide)",
            "create jobs.batch (in namespace a)",
            "create jobs.batch (in namespace b)",
            "create services/proxy (in namespace a)",
        ] {
            assert!(two.iter().any(|found| found == right), "{right} is not in {two:#?}");
        }
        assert!(!two.iter().any(|right| right.contains("leases")));
        let is_write = |right: &&String| !["get ", "list ", "watch "].iter().any(|verb| right.starts_with(verb));
        let in_cluster: Vec<_> = two
            .iter()
            .filter(is_write)
            .filter(|right| right.ends_with("(cluster-wide)"))
            .collect();
        assert!(in_cluster.is_empty(), "{in_cluster:?}");
    }
}
