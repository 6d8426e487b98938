//! Rights that the process needs, and the rights of an operator with given flags.

mod right;

use perfval_cluster::Scope::{Cluster, Fleet, Watched};
use perfval_cluster::{Permission, dynamo};

pub use right::{Duties, Right, known_resource};

/// Name of all other resources for the counter of the calls.
pub const OTHER_RESOURCE: &str = "other";

/// Calls of the process itself; those of a pass are the cluster crate's.
#[rustfmt::skip] // a table: one line a right
pub const PROCESS: &[Permission] = &[
    Permission::new(Cluster, "perfvalidation.dev", "perfvalidations", &["list", "watch"], "watch of the objects"),
    Permission::new(Fleet, "perfvalidation.dev", "nodeperformances", &["list", "watch"], "watch of the measurements of nodes"),
    Permission::new(Fleet, "perfvalidation.dev", "perfvalidationpolicies", &["list", "watch"], "watch of the policies"),
    Permission::new(Fleet, "perfvalidation.dev", "perfbaselines", &["list", "watch"], "watch of the baselines"),
    Permission::new(Cluster, "", "pods", &["list", "watch"], "watch of a run's pods"),
    Permission::new(Cluster, "resource.k8s.io", "resourceclaims", &["list", "watch"], "watch of a run's claims"),
    Permission::new(Watched, "batch", "jobs", &["list", "watch"], "watch of a run's Jobs"),
    Permission::new(Watched, dynamo::GROUP, dynamo::PLURAL, &["list", "watch"], "watch of a run's deployment"),
    Permission { names: &[dynamo::CRD], ..Permission::new(Cluster, "apiextensions.k8s.io", "customresourcedefinitions", &["list", "watch"], "notices when Dynamo's operator comes or goes") },
    Permission::new(Watched, "events.k8s.io", "events", &["create", "patch"], "event on an object that cannot be parsed"),
];

/// The lease lives in the operator's own namespace.
#[rustfmt::skip] // a table: one line a right
pub const LEASE: &[Permission] = &[
    Permission::new(Watched, "coordination.k8s.io", "leases", &["get", "create", "update"], "leader election"),
];
