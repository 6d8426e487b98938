//! Rights that the process needs, and the rights of an operator with given flags.

mod right;

use perfval_cluster::{Permission, Scope, dynamo};

pub use right::{Duties, Right, known_resource};

/// Calls of the process itself; those of a pass are the cluster crate's.
pub const PROCESS: &[Permission] = &[
    process(
        "perfvalidation.dev",
        "perfvalidations",
        &["list", "watch"],
        Scope::Cluster,
        "watch of the objects",
    ),
    process(
        "perfvalidation.dev",
        "nodeperformances",
        &["list", "watch"],
        Scope::Fleet,
        "watch of the measurements of nodes",
    ),
    process(
        "perfvalidation.dev",
        "perfvalidationpolicies",
        &["list", "watch"],
        Scope::Fleet,
        "watch of the policies",
    ),
    process(
        "perfvalidation.dev",
        "perfbaselines",
        &["list", "watch"],
        Scope::Fleet,
        "watch of the baselines",
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
        Scope::Watched,
        "watch of a run's Jobs",
    ),
    process(
        dynamo::GROUP,
        dynamo::PLURAL,
        &["list", "watch"],
        Scope::Watched,
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
        Scope::Watched,
        "event on an object that cannot be parsed",
    ),
];

/// The lease lives in the operator's own namespace.
pub const LEASE: &[Permission] = &[process(
    "coordination.k8s.io",
    "leases",
    &["get", "create", "update"],
    Scope::Watched,
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
