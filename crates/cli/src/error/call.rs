//! Meaning of a call that failed: the obstacle, and the role or the command that removes it.

use kube::core::Status;
use perfval_cluster::cause::innermost;

use super::Error;

/// Role that allows reading, and role that allows writing.
const VIEW: &str = "the cluster role perfvalidation-operator-view in this namespace";
const EDIT: &str = "the cluster role perfvalidation-operator-edit in this namespace";
/// Role that allows reading the validations of all namespaces.
const ALL_VIEWER: &str = "the cluster role perfvalidation-operator-view in the whole cluster";
/// Role that allows reading the measurements of nodes, and role that allows approving baselines.
const NODE_VIEWER: &str = "the cluster role perfvalidation-operator-node-view in the whole cluster";
const APPROVER: &str = "the cluster role perfvalidation-operator-baseline-approve in the whole cluster";
/// Call that lists the validations of all namespaces.
pub const READ_ALL: &str = "read PerfValidations of all namespaces";
/// The project has no role for reading other kinds, or for asking about rights.
const OTHER: &str = "a role with this right";
/// Remedy of a refused `--as`: the call itself was not judged.
const IMPERSONATE: &str = "the right to impersonate, or leave --as and --as-group out";

impl Error {
    /// Meaning of a failed call. `call` is the attempt, as in "you may not …".
    pub fn from_call(call: &str, error: kube::Error) -> Self {
        let call = call.to_owned();
        match error {
            // The client takes an event that it cannot decode for a status without content.
            kube::Error::Api(status) if *status == Status::default() => Self::Undecodable {
                why: "a field has an unknown value or another type".to_owned(),
                call,
            },
            kube::Error::Api(status) => Self::from_status(call, &status),
            broken @ (kube::Error::SerdeError(_) | kube::Error::FromUtf8(_)) => Self::Undecodable {
                why: innermost(&broken),
                call,
            },
            other => Self::Unreachable {
                why: innermost(&other),
                call,
            },
        }
    }

    fn from_status(call: String, status: &Status) -> Self {
        let why = status.message.clone();
        match status.code {
            401 => Self::Unauthorized { call },
            // Quotas and webhooks answer 403 too, and no role helps.
            403 if !is_of_rights(&why) => Self::Refused { call, why },
            403 => Self::Forbidden {
                role: match &*call {
                    _ if why.contains(" cannot impersonate ") => IMPERSONATE,
                    "read NodePerformances" | "read PerfValidationPolicies" | "read PerfBaselines" => NODE_VIEWER,
                    "approve PerfBaselines" => APPROVER,
                    "read PerfValidations" => VIEW,
                    READ_ALL => ALL_VIEWER,
                    call if call.starts_with("read") || call.starts_with("ask") => OTHER,
                    _ => EDIT,
                },
                call,
                why,
            },
            // A kind that is not served is answered in text, or without the name of an object.
            404 if is_missing_kind(status) => Self::NotInstalled,
            404 => match &status.details {
                Some(details) if details.kind == "namespaces" => Self::BadInput(format!(
                    "namespace {0} does not exist: create it with `kubectl create namespace {0}`",
                    details.name
                )),
                _ => Self::NotFound { call, why },
            },
            code @ (408 | 410 | 429 | 500..) => Self::Overloaded { code, call, why },
            _ => Self::Refused { call, why },
        }
    }
}

/// Returns true if a refusal is that of the API server's authorizer: `User "u" cannot create resource "r" in API
/// group "g" …`.
fn is_of_rights(why: &str) -> bool {
    why.contains(" cannot ") && why.contains(" resource ")
}

/// Returns true if a 404 is about the kind rather than an object.
pub fn is_missing_kind(status: &Status) -> bool {
    let named = status.details.as_ref().is_some_and(|details| !details.name.is_empty());
    status.code == 404 && !named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_403_that_no_role_mends_is_a_refusal() {
        let of_call = |call: &str, why: &str| {
            let status = Status {
                code: 403,
                message: why.to_owned(),
                reason: "Forbidden".to_owned(),
                ..Status::default()
            };
            Error::from_status(call.to_owned(), &status)
        };
        let of = |why: &str| of_call("create PerfValidations", why);
        let quota = "perfvalidations.perfvalidation.dev \"a\" is forbidden: exceeded quota: few, requested: count/perfvalidations.perfvalidation.dev=1";
        let webhook = "admission webhook \"policy.example\" denied the request: label team is missing";
        for why in [quota, webhook] {
            let error = of(why);
            assert_eq!(error.code(), 2, "{error}");
            assert!(error.to_string().contains(why), "{error}");
        }
        let rights = "perfvalidations.perfvalidation.dev is forbidden: User \"jane\" cannot create resource \"perfvalidations\" in API group \"perfvalidation.dev\" in the namespace \"perf\"";
        assert!(matches!(of(rights), Error::Forbidden { role: EDIT, .. }));
        let review = of_call("ask for the operator's rights", rights);
        assert!(matches!(review, Error::Forbidden { role: OTHER, .. }), "{review}");
        let impersonation = "users \"jane\" is forbidden: User \"dev\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope";
        assert!(matches!(of(impersonation), Error::Forbidden { role: IMPERSONATE, .. }));
    }

    #[test]
    fn a_404_is_an_answer_of_the_cluster() {
        let of = |kind: &str, name: &str| {
            let status = serde_json::json!({"status": "Failure", "code": 404, "reason": "NotFound",
                "message": format!("{kind} \"{name}\" not found"), "details": {"name": name, "kind": kind}});
            let status: Status = serde_json::from_value(status).expect("a Status");
            let error = Error::from_status("read the log of main".to_owned(), &status);
            assert_eq!(error.code(), 2, "{error}");
            error.to_string()
        };
        let remedy = "namespace perf does not exist: create it with `kubectl create namespace perf`";
        assert_eq!(of("namespaces", "perf"), remedy);
        assert_eq!(of("pods", "w"), "you cannot read the log of main: pods \"w\" not found");
    }
}
