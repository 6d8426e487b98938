//! Every right that the calls of this crate need. A test compares it with the recorded calls, in both directions.

use Scope::{Cluster, Fleet, Outside, Run, Watched};

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

impl Permission {
    /// Right to all objects of a resource.
    pub const fn new(
        scope: Scope,
        group: &'static str,
        resource: &'static str,
        verbs: &'static [&'static str],
        call: &'static str,
    ) -> Self {
        Self {
            group,
            resource,
            verbs,
            names: &[],
            scope,
            call,
        }
    }
}

/// Every right that [`Cluster`](crate::Cluster) needs. Discovery, `/version` and `SelfSubjectAccessReview`s are open to
/// every account.
#[rustfmt::skip] // a table: one line a right
pub const PERMISSIONS: &[Permission] = &[
    Permission::new(Cluster, "perfvalidation.dev", "perfvalidations", &["list"], "other runs on a node"),
    Permission { names: &[dynamo::CRD], ..Permission::new(Cluster, "apiextensions.k8s.io", "customresourcedefinitions", &["get"], "whether Dynamo is installed, and its version") },
    Permission::new(Cluster, "storage.k8s.io", "storageclasses", &["list"], "class of the model cache"),
    Permission::new(Cluster, "resource.k8s.io", "deviceclasses", &["get"], "sizing: which devices are GPUs"),
    Permission::new(Cluster, "resource.k8s.io", "resourceslices", &["list", "watch"], "sizing: devices of each node"),
    Permission::new(Cluster, "resource.k8s.io", "devicetaintrules", &["list"], "sizing: devices taken out of service"),
    Permission::new(Cluster, "", "nodes", &["list", "watch"], "sizing: which nodes are eligible"),
    Permission::new(Cluster, "", "nodes", &["get"], "whether the node of a run is Ready while its pods are not; owner of a NodePerformance"),
    Permission::new(Cluster, "", "pods", &["list", "watch"], "sizing: what pods hold; pods of a run; the exporter of GPU metrics"),
    Permission::new(Cluster, "resource.k8s.io", "resourceclaims", &["list", "watch"], "sizing: who holds devices; claims of a run"),
    Permission::new(Cluster, "scheduling.run.ai", "bindrequests", &["list"], "sizing: devices that KAI's scheduler has promised"),
    Permission::new(Cluster, "", "persistentvolumes", &["get"], "sizing: which nodes reach the model cache"),
    // Of every namespace: another operator may look after it, and the order among all runs depends on them.
    Permission::new(Cluster, "", "resourcequotas", &["list"], "sizing: what each namespace allows"),
    Permission::new(Cluster, "", "limitranges", &["list"], "sizing: what each namespace allows"),
    Permission::new(Cluster, "", "persistentvolumeclaims", &["get"], "sizing: which nodes reach the model cache"),
    Permission::new(Watched, "perfvalidation.dev", "perfvalidations", &["patch"], "finalizer"),
    Permission::new(Watched, "perfvalidation.dev", "perfvalidations", &["delete"], "ttlSecondsAfterFinished"),
    Permission::new(Watched, "perfvalidation.dev", "perfvalidations/status", &["patch"], "status of a run"),
    Permission::new(Watched, "events.k8s.io", "events", &["create", "patch"], "events on the object"),
    Permission::new(Watched, dynamo::GROUP, dynamo::PLURAL, &["list"], "cleanup"),
    Permission::new(Watched, "resource.k8s.io", "resourceclaimtemplates", &["list"], "cleanup"),
    Permission::new(Watched, "", "services", &["list"], "cleanup"),
    Permission::new(Watched, "networking.k8s.io", "networkpolicies", &["list"], "cleanup"),
    Permission::new(Watched, "batch", "jobs", &["list"], "cleanup"),
    Permission::new(Run, dynamo::GROUP, dynamo::PLURAL, &["create"], "deployment, and its dry run"),
    Permission::new(Run, dynamo::GROUP, dynamo::PLURAL, &["get"], "readiness; ownership of a namesake"),
    Permission::new(Run, dynamo::GROUP, dynamo::PLURAL, &["delete"], "cleanup"),
    Permission::new(Run, "resource.k8s.io", "resourceclaimtemplates", &["create"], "claims of the workers"),
    Permission::new(Run, "resource.k8s.io", "resourceclaimtemplates", &["get"], "ownership of a namesake"),
    Permission::new(Run, "resource.k8s.io", "resourceclaimtemplates", &["delete"], "cleanup"),
    Permission::new(Run, "", "services", &["create"], "metrics of the workers"),
    Permission::new(Run, "", "services", &["get"], "ownership of a namesake"),
    Permission::new(Run, "", "services", &["delete"], "cleanup"),
    Permission::new(Run, "networking.k8s.io", "networkpolicies", &["create"], "network policy of a run"),
    Permission::new(Run, "networking.k8s.io", "networkpolicies", &["get"], "ownership of a namesake"),
    Permission::new(Run, "networking.k8s.io", "networkpolicies", &["delete"], "cleanup"),
    Permission::new(Run, "batch", "jobs", &["create"], "trials; filling the model cache"),
    Permission::new(Run, "batch", "jobs", &["get"], "end of a trial; ownership of a namesake"),
    Permission::new(Run, "batch", "jobs", &["delete"], "cleanup"),
    Permission::new(Run, "", "persistentvolumeclaims", &["create"], "model cache"),
    Permission::new(Run, "", "persistentvolumeclaims", &["get"], "ownership of a namesake"),
    Permission::new(Run, "", "pods/log", &["get"], "result and progress of a trial; why a pod crashes or does not answer"),
    Permission::new(Run, "", "events", &["list"], "warnings on the pods of a run; why they may not be created"),
    Permission::new(Run, "", "configmaps", &["get"], "whether the results are saved; trials to judge again; ownership of a namesake"),
    // The API server requires `create` too if the apply creates the object.
    Permission::new(Run, "", "configmaps", &["create", "patch"], "saving the results"),
    Permission::new(Run, "", "configmaps", &["list", "delete"], "results of runs that are not kept"),
    Permission::new(Fleet, "perfvalidation.dev", "nodeperformances", &["create", "delete"], "newest measurement of each node"),
    Permission::new(Fleet, "perfvalidation.dev", "nodeperformances/status", &["patch"], "newest measurement of each node"),
    // `get` shows whose an object of the same name is.
    Permission::new(Fleet, "perfvalidation.dev", "perfvalidations", &["create", "get"], "validations of a policy"),
    Permission::new(Fleet, "perfvalidation.dev", "perfvalidationpolicies/status", &["patch"], "status of a policy"),
    // Without `patch` it cannot approve one.
    Permission::new(Fleet, "perfvalidation.dev", "perfbaselines", &["create"], "baseline of each environment"),
    Permission::new(Fleet, "perfvalidation.dev", "perfbaselines/status", &["patch"], "status of a baseline"),
    Permission::new(Fleet, "perfvalidation.dev", "perfbaselines", &["list"], "gates on a baseline"),
    Permission::new(Outside, "", "services/proxy", &["get", "create"], "probe of the endpoint"),
];
