//! Every right that the calls of this crate need. A test compares it with the recorded calls, in both directions.

use crate::observe::dynamo;

/// Scope of a right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// In the whole cluster.
    Cluster,
    /// In every watched namespace: its own kind, Events, and lists of what runs created.
    Watched,
    /// In namespaces where an administrator allows runs, and in those that are watched by name.
    Run,
    /// In the whole cluster, and only for an operator that watches all namespaces.
    Fleet,
    /// In those namespaces, and only for an operator that runs outside the cluster.
    Outside,
}

/// The right to one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permission {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Plural of the resource, with its subresource.
    pub resource: &'static str,
    /// Verbs.
    pub verbs: &'static [&'static str],
    /// The only objects it is needed for; empty: all.
    pub names: &'static [&'static str],
    /// Scope in which the right is needed.
    pub scope: Scope,
    /// The call that needs it.
    pub call: &'static str,
}

const fn in_cluster(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    call: &'static str,
) -> Permission {
    Permission {
        group,
        resource,
        verbs,
        names: &[],
        scope: Scope::Cluster,
        call,
    }
}

const fn in_watched(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    call: &'static str,
) -> Permission {
    Permission {
        scope: Scope::Watched,
        ..in_cluster(group, resource, verbs, call)
    }
}

const fn in_allowed(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    call: &'static str,
) -> Permission {
    Permission {
        scope: Scope::Run,
        ..in_cluster(group, resource, verbs, call)
    }
}

const fn in_fleet(resource: &'static str, verbs: &'static [&'static str], call: &'static str) -> Permission {
    Permission {
        scope: Scope::Fleet,
        ..in_cluster("perfvalidation.dev", resource, verbs, call)
    }
}

/// Every right that [`Cluster`](crate::Cluster) needs. Discovery, `/version` and `SelfSubjectAccessReview`s are open to
/// every account.
pub const PERMISSIONS: &[Permission] = &[
    in_cluster(
        "perfvalidation.dev",
        "perfvalidations",
        &["list"],
        "other runs on a node",
    ),
    Permission {
        names: &[dynamo::CRD],
        ..in_cluster(
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            &["get"],
            "whether Dynamo is installed, and its version",
        )
    },
    in_cluster(
        "storage.k8s.io",
        "storageclasses",
        &["list"],
        "class of the model cache",
    ),
    in_cluster(
        "resource.k8s.io",
        "deviceclasses",
        &["get"],
        "sizing: which devices are GPUs",
    ),
    in_cluster(
        "resource.k8s.io",
        "resourceslices",
        &["list", "watch"],
        "sizing: devices of each node",
    ),
    in_cluster(
        "resource.k8s.io",
        "devicetaintrules",
        &["list"],
        "sizing: devices taken out of service",
    ),
    in_cluster("", "nodes", &["list", "watch"], "sizing: which nodes are eligible"),
    in_cluster(
        "",
        "nodes",
        &["get"],
        "whether the node of a run is Ready while its pods are not; owner of a NodePerformance",
    ),
    in_cluster(
        "",
        "pods",
        &["list", "watch"],
        "sizing: what pods hold; pods of a run; the exporter of GPU metrics",
    ),
    in_cluster(
        "resource.k8s.io",
        "resourceclaims",
        &["list", "watch"],
        "sizing: who holds devices; claims of a run",
    ),
    in_cluster(
        "scheduling.run.ai",
        "bindrequests",
        &["list"],
        "sizing: devices that KAI's scheduler has promised",
    ),
    in_cluster(
        "",
        "persistentvolumes",
        &["get"],
        "sizing: which nodes reach the model cache",
    ),
    // Of every namespace: another operator may look after it, and the order among all runs depends on them.
    in_cluster("", "resourcequotas", &["list"], "sizing: what each namespace allows"),
    in_cluster("", "limitranges", &["list"], "sizing: what each namespace allows"),
    in_cluster(
        "",
        "persistentvolumeclaims",
        &["get"],
        "sizing: which nodes reach the model cache",
    ),
    in_watched("perfvalidation.dev", "perfvalidations", &["patch"], "finalizer"),
    in_watched(
        "perfvalidation.dev",
        "perfvalidations",
        &["delete"],
        "ttlSecondsAfterFinished",
    ),
    in_watched(
        "perfvalidation.dev",
        "perfvalidations/status",
        &["patch"],
        "status of a run",
    ),
    in_watched("events.k8s.io", "events", &["create", "patch"], "events on the object"),
    in_watched(dynamo::GROUP, dynamo::PLURAL, &["list"], "cleanup"),
    in_watched("resource.k8s.io", "resourceclaimtemplates", &["list"], "cleanup"),
    in_watched("", "services", &["list"], "cleanup"),
    in_watched("networking.k8s.io", "networkpolicies", &["list"], "cleanup"),
    in_watched("batch", "jobs", &["list"], "cleanup"),
    in_allowed(
        dynamo::GROUP,
        dynamo::PLURAL,
        &["create"],
        "deployment, and its dry run",
    ),
    in_allowed(
        dynamo::GROUP,
        dynamo::PLURAL,
        &["get"],
        "readiness; ownership of a namesake",
    ),
    in_allowed(dynamo::GROUP, dynamo::PLURAL, &["delete"], "cleanup"),
    in_allowed(
        "resource.k8s.io",
        "resourceclaimtemplates",
        &["create"],
        "claims of the workers",
    ),
    in_allowed(
        "resource.k8s.io",
        "resourceclaimtemplates",
        &["get"],
        "ownership of a namesake",
    ),
    in_allowed("resource.k8s.io", "resourceclaimtemplates", &["delete"], "cleanup"),
    in_allowed("", "services", &["create"], "metrics of the workers"),
    in_allowed("", "services", &["get"], "ownership of a namesake"),
    in_allowed("", "services", &["delete"], "cleanup"),
    in_allowed(
        "networking.k8s.io",
        "networkpolicies",
        &["create"],
        "network policy of a run",
    ),
    in_allowed(
        "networking.k8s.io",
        "networkpolicies",
        &["get"],
        "ownership of a namesake",
    ),
    in_allowed("networking.k8s.io", "networkpolicies", &["delete"], "cleanup"),
    in_allowed("batch", "jobs", &["create"], "trials; filling the model cache"),
    in_allowed("batch", "jobs", &["get"], "end of a trial; ownership of a namesake"),
    in_allowed("batch", "jobs", &["delete"], "cleanup"),
    in_allowed("", "persistentvolumeclaims", &["create"], "model cache"),
    in_allowed("", "persistentvolumeclaims", &["get"], "ownership of a namesake"),
    in_allowed(
        "",
        "pods/log",
        &["get"],
        "result and progress of a trial; why a pod crashes or does not answer",
    ),
    in_allowed(
        "",
        "events",
        &["list"],
        "warnings on the pods of a run; why they may not be created",
    ),
    in_allowed(
        "",
        "configmaps",
        &["get"],
        "whether the results are saved; trials to judge again; ownership of a namesake",
    ),
    // The API server requires `create` too if the apply creates the object.
    in_allowed("", "configmaps", &["create", "patch"], "saving the results"),
    in_allowed(
        "",
        "configmaps",
        &["list", "delete"],
        "results of runs that are not kept",
    ),
    in_fleet(
        "nodeperformances",
        &["create", "delete"],
        "newest measurement of each node",
    ),
    in_fleet("nodeperformances/status", &["patch"], "newest measurement of each node"),
    // `get` shows whose an object of the same name is.
    in_fleet("perfvalidations", &["create", "get"], "validations of a policy"),
    in_fleet("perfvalidationpolicies/status", &["patch"], "status of a policy"),
    // Without `patch` it cannot approve one.
    in_fleet("perfbaselines", &["create"], "baseline of each environment"),
    in_fleet("perfbaselines/status", &["patch"], "status of a baseline"),
    in_fleet("perfbaselines", &["list"], "gates on a baseline"),
    Permission {
        scope: Scope::Outside,
        ..in_cluster("", "services/proxy", &["get", "create"], "probe of the endpoint")
    },
];
