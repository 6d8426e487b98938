//! Differences that are meant to be, each with its reason.

use super::Use;

/// Why a right may stay unused by the tests, or is used without these roles.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// `resource.group`, as a role names it.
    pub resource: &'static str,
    /// Verbs.
    pub verbs: &'static [&'static str],
    /// Why.
    pub why: &'static str,
}

const NAMESAKE: &str = "read only where an object of this name exists already, to see whose it is";
const CREATE_BY_APPLY: &str = "asked for inside the apply that makes the object, which the log calls a patch";

/// Rights that the roles grant and that a run of the end-to-end tests may not use.
pub const EXCEPTIONS: &[Exception] = &[
    Exception {
        resource: "resourceclaimtemplates.resource.k8s.io",
        verbs: &["get"],
        why: NAMESAKE,
    },
    Exception {
        resource: "networkpolicies.networking.k8s.io",
        verbs: &["create", "delete", "get"],
        why: "used with --run-network-policy, as in the run of a tenant; `get` where an object of this name exists already",
    },
    Exception {
        resource: "services",
        verbs: &["get"],
        why: NAMESAKE,
    },
    Exception {
        resource: "configmaps",
        verbs: &["create"],
        why: CREATE_BY_APPLY,
    },
    Exception {
        resource: "configmaps",
        verbs: &["delete"],
        why: "results beyond resultsHistoryLimit: no object of the tests is run so often",
    },
    Exception {
        resource: "events.events.k8s.io",
        verbs: &["patch"],
        why: "only an Event that is repeated within six minutes is patched",
    },
    Exception {
        resource: "perfvalidations.perfvalidation.dev",
        verbs: &["delete"],
        why: "ttlSecondsAfterFinished",
    },
    Exception {
        resource: "perfvalidations.perfvalidation.dev",
        verbs: &["get"],
        why: NAMESAKE,
    },
    Exception {
        resource: "bindrequests.scheduling.run.ai",
        verbs: &["list"],
        why: "only KAI's scheduler serves it",
    },
    Exception {
        resource: "devicetaintrules.resource.k8s.io",
        verbs: &["list"],
        why: "served only where the feature DRADeviceTaints is switched on",
    },
    Exception {
        resource: "persistentvolumes",
        verbs: &["get"],
        why: "only for a model cache whose volume is bound",
    },
];

/// What every authenticated user may do by the cluster's own roles.
const BY_OTHERS: &[Exception] = &[Exception {
    resource: "selfsubjectaccessreviews.authorization.k8s.io",
    verbs: &["create"],
    why: "granted to every authenticated user by system:basic-user",
}];

/// Why a granted right may be unused.
pub(super) fn why_unused(use_: &Use) -> Option<&'static str> {
    reason(EXCEPTIONS, use_)
}

/// Who else grants it.
pub(super) fn why_ungranted(use_: &Use) -> Option<&'static str> {
    reason(BY_OTHERS, use_)
}

fn reason(table: &[Exception], use_: &Use) -> Option<&'static str> {
    let resource = match use_.group.as_str() {
        "" => use_.resource.clone(),
        group => format!("{}.{group}", use_.resource),
    };
    let found = table
        .iter()
        .find(|exception| exception.resource == resource && exception.verbs.contains(&&*use_.verb));
    found.map(|exception| exception.why)
}
