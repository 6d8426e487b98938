use std::fmt;
use std::time::Duration;

use kube::core::Status;

use crate::cause::{chain, without_secrets};
use crate::change::{self, EventWord};

/// A change that could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // each text shows what the fields are
pub enum Error {
    /// A call failed.
    #[error("{call}: {failure}; {}", failure.advice())]
    Failed {
        change: &'static EventWord,
        call: String,
        failure: CallFailure,
    },
    /// An object of the same name is in the way.
    #[error("create {object}: it exists and {fault}")]
    NameTaken { object: String, fault: String },
}

/// Response that a failed change needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Trying again may help.
    Transient,
    /// Another client wrote first: read again, then decide again.
    Conflict,
    /// A user has to correct something first.
    Permanent,
}

impl Error {
    /// A change whose call failed, such as `create Job perf/pv-1-t1`.
    pub(crate) fn failed(change: &'static EventWord, call: String, failure: CallFailure) -> Self {
        Self::Failed { change, call, failure }
    }

    /// An object of the same name belongs to another owner.
    pub(crate) fn owned_by_another(object: String) -> Self {
        let fault = "belongs to another owner; delete it, and the run goes on".to_owned();
        Self::NameTaken { object, fault }
    }

    /// The status of an object, such as `PerfValidation perf/h100`, could not be written.
    pub(crate) fn unwritten_status(object: &str, failure: CallFailure) -> Self {
        let call = format!("patch the status of {object}");
        Self::failed(&change::RECORD_STATUS, call, failure)
    }

    /// Change that failed, for metrics.
    pub fn change(&self) -> &'static EventWord {
        match self {
            Self::Failed { change, .. } => change,
            Self::NameTaken { .. } => &change::NAME_TAKEN,
        }
    }

    /// Response that the error needs.
    pub fn class(&self) -> Class {
        match self {
            Self::NameTaken { .. } => Class::Permanent,
            Self::Failed { change, failure, .. } if **change == change::FINALIZER && failure.is_failed_test() => {
                Class::Conflict
            }
            Self::Failed { failure, .. } => failure.class(),
        }
    }
}

/// Reason why a call gave no result.
#[derive(Debug)]
pub enum CallFailure {
    /// No answer within this time; a write may have happened nevertheless.
    TimedOut(Duration),
    /// No answer by the end of the look that it belongs to, which has this time-out.
    LookOver(Duration),
    /// The API server's refusal, or a broken connection.
    Call(kube::Error),
}

impl CallFailure {
    /// The API server's refusal.
    pub(crate) fn refusal(&self) -> Option<&Status> {
        match self {
            Self::Call(kube::Error::Api(status)) => Some(status),
            Self::Call(_) | Self::TimedOut(_) | Self::LookOver(_) => None,
        }
    }

    /// HTTP status of the API server's answer.
    pub fn code(&self) -> Option<u16> {
        Some(self.refusal()?.code)
    }

    /// Returns true if the API server reported that there is no such object, or no such kind.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// Returns true if the object of a change is gone, or is not the one any more that the caller saw.
    pub(crate) fn is_too_late(&self) -> bool {
        self.is_not_found() || self.class() == Class::Conflict
    }

    /// Returns true if a creation was refused because an object has the name. A quota or a webhook that answers 409 creates nothing.
    pub(crate) fn is_already_exists(&self) -> bool {
        self.refusal().is_some_and(Status::is_already_exists)
    }

    /// Returns true if there is no such kind at this version. For a missing object the API server gives the name; the
    /// reason is `NotFound` in both cases, if the group is its own.
    pub(crate) fn is_not_served(&self) -> bool {
        self.refusal()
            .is_some_and(|status| status.code == 404 && !has_name(status))
    }

    /// Returns true if the `test` of a JSON patch did not hold. The refusal of a policy or a schema has the object's name; that of a
    /// webhook may lack it, but not these words.
    fn is_failed_test(&self) -> bool {
        let is_test =
            |status: &Status| status.code == 422 && !has_name(status) && !status.message.contains("denied the request");
        self.refusal().is_some_and(is_test)
    }

    /// Returns true if the namespace of an object does not exist.
    pub fn is_namespace_missing(&self) -> bool {
        let details = self.refusal().and_then(|status| status.details.as_ref());
        self.is_not_found() && details.is_some_and(|details| details.kind == "namespaces")
    }

    /// Returns true if the namespace of an object is being deleted, or does not exist any more.
    pub(crate) fn is_namespace_leaving(&self) -> bool {
        let details = self.refusal().and_then(|status| status.details.as_ref());
        let mut causes = details.into_iter().flat_map(|details| &details.causes);
        self.is_namespace_missing() || causes.any(|cause| cause.reason == "NamespaceTerminating")
    }

    /// Returns true if the API server refuses every other object of this kind in the namespace too: by a quota, for a missing right,
    /// or because the namespace goes or is gone.
    pub fn refuses_all(&self) -> bool {
        let refuses_all = |status: &Status| {
            let causes = ["exceeded quota", "\" cannot create resource \""];
            status.code == 403 && causes.iter().any(|cause| status.message.contains(cause))
        };
        self.is_namespace_leaving() || self.refusal().is_some_and(refuses_all)
    }

    /// Response that the failure needs.
    pub fn class(&self) -> Class {
        match (self, self.code()) {
            (_, Some(409)) => Class::Conflict,
            // 401: a token may be between two rotations.
            (_, Some(401 | 408 | 429 | 500..)) | (Self::TimedOut(_) | Self::LookOver(_), _) => Class::Transient,
            (_, Some(_)) => Class::Permanent,
            (Self::Call(kube::Error::SerdeError(_) | kube::Error::BuildRequest(_) | kube::Error::HttpError(_)), _) => {
                Class::Permanent
            }
            (Self::Call(_), None) => Class::Transient,
        }
    }

    fn advice(&self) -> &'static str {
        match (self.class(), self.code()) {
            (Class::Transient, _) => "it is tried again",
            (Class::Conflict, _) => "it is read and decided again",
            (Class::Permanent, Some(403)) => {
                "give the operator this right (config/rbac, or `kubectl perfval doctor` for a namespace), or lift the quota or policy that refuses"
            }
            (Class::Permanent, Some(404)) => "check that the namespace exists and the kind is served",
            (Class::Permanent, _) => "correct what the answer names, then rerun",
        }
    }
}

impl fmt::Display for CallFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut(after) => write!(f, "no result within {} s", after.as_secs()),
            // Not how long this call had: a text that differs from look to look would be a status write each time.
            Self::LookOver(after) => write!(f, "no result within the {} s of one look", after.as_secs()),
            Self::Call(kube::Error::Api(status)) => write!(f, "{} {}: {}", status.code, status.reason, status.message),
            Self::Call(error) => f.write_str(&without_secrets(error).unwrap_or_else(|| chain(error))),
        }
    }
}

/// Returns true if a refusal contains the name of the object that it is about.
fn has_name(status: &Status) -> bool {
    status.details.as_ref().is_some_and(|details| !details.name.is_empty())
}

/// Returns `None` if the object of a change is gone, or has changed since the caller read it. That is no failure.
pub(crate) fn unless_late<T>(answer: Result<T, CallFailure>) -> Result<Option<T>, CallFailure> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(failure) if failure.is_too_late() => Ok(None),
        Err(failure) => Err(failure),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn answer(code: u16) -> CallFailure {
        CallFailure::Call(kube::Error::Api(
            Status::failure("no", "Because").with_code(code).boxed(),
        ))
    }

    /// A refusal as the API server writes it.
    fn refusal(code: u16, message: &str, details: &Value) -> CallFailure {
        let status = json!({"status": "Failure", "code": code, "message": message, "details": details});
        let status: Status = serde_json::from_value(status).expect("a status");
        CallFailure::Call(kube::Error::Api(status.boxed()))
    }

    #[test]
    fn answers_fall_into_classes() {
        let classes = [
            (400, Class::Permanent),
            (401, Class::Transient),
            (403, Class::Permanent),
            (404, Class::Permanent),
            (409, Class::Conflict),
            (413, Class::Permanent),
            (422, Class::Permanent),
            (429, Class::Transient),
            (500, Class::Transient),
            (503, Class::Transient),
        ];
        for (code, class) in classes {
            assert_eq!(answer(code).class(), class, "{code}");
        }
        let late = CallFailure::TimedOut(Duration::from_secs(10));
        assert_eq!(late.class(), Class::Transient);
    }

    #[test]
    fn the_text_has_no_password_of_a_proxy() {
        let proxy_url: http::Uri = "http://me:t-secret@127.0.0.1:1".parse().expect("a URL");
        let refused = kube::Error::ProxyProtocolDisabled {
            proxy_url: Box::new(proxy_url),
            protocol_feature: "kube/http-proxy",
        };
        let text = CallFailure::Call(refused).to_string();
        assert!(text.contains("proxy-url") && !text.contains("t-secret"), "{text}");
    }

    #[test]
    fn a_failed_test_of_a_json_patch_is_a_conflict_and_a_refusal_of_a_policy_is_none() {
        let test = "the server rejected our request due to an error in our request";
        let policy = "perfvalidations.perfvalidation.dev \"a\" is forbidden: ValidatingAdmissionPolicy 'limits' with binding \
            'limits' denied request: failed to configure binding: no params found";
        let webhook = "admission webhook \"check.example.com\" denied the request: no";
        for (message, details, class) in [
            (test, json!({}), Class::Conflict),
            (
                policy,
                json!({"name": "a", "kind": "perfvalidations"}),
                Class::Permanent,
            ),
            (webhook, Value::Null, Class::Permanent),
        ] {
            let error = Error::failed(&change::FINALIZER, String::new(), refusal(422, message, &details));
            assert_eq!(error.class(), class, "{error}");
        }
    }

    #[test]
    fn a_namespace_that_is_deleted_is_known_by_its_cause_or_by_its_kind() {
        let cause = json!({"reason": "NamespaceTerminating", "message": "m", "field": "metadata.namespace"});
        for (code, details, leaves) in [
            (403, json!({"name": "e", "kind": "events", "causes": [cause]}), true),
            (403, json!({"name": "e", "kind": "events"}), false),
            (404, json!({"name": "perf", "kind": "namespaces"}), true),
            (404, json!({"name": "e", "kind": "events"}), false),
        ] {
            let refused = refusal(code, "no", &details);
            let answers = (refused.is_namespace_leaving(), refused.refuses_all());
            assert_eq!(answers, (leaves, leaves), "{details}");
        }
    }

    #[test]
    fn the_text_names_the_call_the_answer_and_the_next_step() {
        let error = Error::failed(&change::CREATE, "create Job perf/pv-1-t1".into(), answer(403));
        let text = error.to_string();
        for part in ["create Job perf/pv-1-t1", "403 Because: no", "config/rbac"] {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
    }
}
