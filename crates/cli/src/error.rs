//! Errors of a command, each as one sentence.

use std::io;
use std::path::{Path, PathBuf};

use kube::client::AuthError;
use kube::config::KubeconfigError;
use kube::core::Status;
use perfval_api::admission::SchemaError;
use serde_saphyr::SnippetMode;

/// Command that installs the operator of this release. A build in development has no release of its own.
pub const INSTALL: &str = if is_in_development(env!("CARGO_PKG_VERSION")) {
    concat!(
        "kubectl apply --server-side -f ",
        env!("CARGO_PKG_REPOSITORY"),
        "/releases/latest/download/install.yaml"
    )
} else {
    concat!(
        "kubectl apply --server-side -f ",
        env!("CARGO_PKG_REPOSITORY"),
        "/releases/download/v",
        env!("CARGO_PKG_VERSION"),
        "/install.yaml"
    )
};

const fn is_in_development(version: &str) -> bool {
    matches!(version.as_bytes(), [.., b'-', b'd', b'e', b'v'])
}

/// No answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The reader of the output has left, and wants no more.
    #[error("the reader has left")]
    Closed,
    /// The output cannot be written.
    #[error("the answer cannot be written: {0}")]
    Output(#[source] io::Error),
    /// A file cannot be written or read.
    #[error("{} cannot be used: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the file system.
        source: io::Error,
    },
    /// No kubeconfig, or a context that it does not have.
    #[error(
        "no cluster is configured: {0}; set KUBECONFIG, or give --kubeconfig and --context (`kubectl config get-contexts` lists them)"
    )]
    NoCluster(String),
    /// The API server does not answer.
    #[error("the cluster does not answer ({call}): {why}; check the context with `kubectl cluster-info`")]
    Unreachable {
        /// The call.
        call: String,
        /// Text of the error.
        why: String,
    },
    /// The answer is no object that this program can read.
    #[error(
        "the answer of the cluster cannot be read ({call}): {why}; use the plug-in of the operator's release, or check the context with \
         `kubectl cluster-info`"
    )]
    Undecodable {
        /// The call.
        call: String,
        /// Text of the error.
        why: String,
    },
    /// The API server cannot carry out the call now.
    #[error("the cluster answered {code} ({call}): {why}; try again")]
    Overloaded {
        /// HTTP status code.
        code: u16,
        /// The call.
        call: String,
        /// The API server's words.
        why: String,
    },
    /// The CRD is not installed.
    #[error(
        "this cluster has no PerfValidation API: install the operator with `{}`, or choose another cluster with --context",
        INSTALL
    )]
    NotInstalled,
    /// A right is missing.
    #[error("you may not {call}: {why}; ask for {role}")]
    Forbidden {
        /// The call.
        call: String,
        /// The API server's words.
        why: String,
        /// Role that would allow it.
        role: &'static str,
    },
    /// The API server does not recognise the user.
    #[error("the cluster does not accept your credentials ({call}): log in again, or choose another --context")]
    Unauthorized {
        /// The call.
        call: String,
    },
    /// There is no such object.
    #[error("there is no PerfValidation {name} in namespace {namespace}: `kubectl perfval get -A` lists all")]
    NoSuchObject {
        /// Namespace of the search.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// An object of another kind does not exist.
    #[error("you cannot {call}: {why}")]
    NotFound {
        /// The call.
        call: String,
        /// The API server's words.
        why: String,
    },
    /// The object went away while it was watched.
    #[error("PerfValidation {0} was deleted")]
    Vanished(String),
    /// It was not over in time.
    #[error("{0}")]
    NotOver(String),
    /// The API server refuses the object.
    #[error("the cluster refuses it ({call}): {why}")]
    Refused {
        /// The call.
        call: String,
        /// Its words.
        why: String,
    },
    /// The request cannot be carried out.
    #[error("{0}")]
    BadInput(String),
    /// A run that was needed has no verdict that counts.
    #[error("{why}")]
    NotMeasured {
        /// Exit code of its verdict.
        code: u8,
        /// Load, verdict and reason.
        why: String,
    },
    /// The CRD's own schema is broken.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The cluster could not be read for `size`.
    #[error("the cluster cannot be read: {0}")]
    NotSized(String),
    /// The program cannot make its own answer.
    #[error("the answer cannot be made: {0}; report it as a bug")]
    Render(String),
}

/// Role that allows reading, and role that allows writing.
const VIEW: &str = "the cluster role perfvalidation-operator-view in this namespace";
const EDIT: &str = "the cluster role perfvalidation-operator-edit in this namespace";
/// Role that allows reading the measurements of nodes, and role that allows approving baselines.
const NODE_VIEWER: &str = "the cluster role perfvalidation-operator-node-view in the whole cluster";
const APPROVER: &str = "the cluster role perfvalidation-operator-baseline-approve in the whole cluster";
/// Text for a token that the HTTP library refuses.
pub const WRONG_TOKEN: &str = "the user's token has a line break or another control character: log in again";
/// Text for a proxy. Its URL may have a password.
const NO_PROXY: &str =
    "this program cannot use a proxy: unset HTTPS_PROXY and https_proxy, and remove proxy-url from the kubeconfig";
/// The project has no role for reading other kinds.
const OTHER: &str = "a role with this right";

impl Error {
    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Closed => 0,
            Self::NoSuchObject { .. }
            | Self::BadInput(_)
            | Self::Refused { .. }
            | Self::File { .. }
            | Self::NotFound { .. }
            | Self::Schema(_) => 2,
            Self::NotOver(_) => 3,
            Self::NotMeasured { code, .. } => *code,
            Self::Output(_)
            | Self::NoCluster(_)
            | Self::Unreachable { .. }
            | Self::Undecodable { .. }
            | Self::Overloaded { .. }
            | Self::NotInstalled
            | Self::Forbidden { .. }
            | Self::Unauthorized { .. }
            | Self::NotSized(_)
            | Self::Vanished(_)
            | Self::Render(_) => 4,
        }
    }

    /// Error of the file system about this file.
    pub fn file(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::File {
            path: path.to_owned(),
            source,
        }
    }

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
                    "read NodePerformances" | "read PerfBaselines" => NODE_VIEWER,
                    "approve PerfBaselines" => APPROVER,
                    "read PerfValidations" => VIEW,
                    read if read.starts_with("read") => OTHER,
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

/// The last cause explains most: "connection refused" rather than "client error (Connect)".
pub fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let last = || causes(error).last().map_or_else(String::new, ToString::to_string);
    without_secrets(error).unwrap_or_else(last)
}

/// Text for an error whose own text may have secrets (lines of a kubeconfig, the output of a credential plugin, the URL of a proxy), or
/// no remedy. `None` for other errors.
pub fn without_secrets(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    causes(error).find_map(|cause| {
        if let Some(KubeconfigError::Parse(error)) = cause.downcast_ref() {
            return Some(format!("the kubeconfig cannot be read: {}", fault(error)));
        }
        if let Some(kube::Error::ProxyProtocolDisabled { .. } | kube::Error::ProxyProtocolUnsupported { .. }) =
            cause.downcast_ref()
        {
            return Some(NO_PROXY.to_owned());
        }
        match cause.downcast_ref()? {
            AuthError::AuthExecParse(error) => Some(format!(
                "the output of the credential plugin cannot be read: {}",
                fault(error)
            )),
            AuthError::AuthExecRun { out, .. } => Some(format!(
                "the credential plugin failed ({}): {}",
                out.status,
                String::from_utf8_lossy(&out.stderr).trim()
            )),
            AuthError::InvalidBearerToken(_) => Some(WRONG_TOKEN.to_owned()),
            _ => None,
        }
    })
}

/// Line, column and reason of an error in YAML. The text around it may have secrets.
pub fn fault(error: &serde_saphyr::Error) -> String {
    let text = error.render_with_options(serde_saphyr::render_options! { snippets: SnippetMode::Off });
    text.replace(", set DuplicateKeyPolicy in Options if acceptable", "")
}

fn causes<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| error.source())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_in_development_links_to_the_newest_release() {
        assert!(is_in_development("0.1.0-dev"));
        assert!(!is_in_development("0.1.0") && !is_in_development("dev"));
        let is_newest = INSTALL.contains("/releases/latest/download/");
        assert_eq!(is_newest, env!("CARGO_PKG_VERSION").ends_with("-dev"), "{INSTALL}");
    }

    #[test]
    fn a_403_that_no_role_mends_is_a_refusal() {
        let of = |why: &str| {
            let status = Status {
                code: 403,
                message: why.to_owned(),
                reason: "Forbidden".to_owned(),
                ..Status::default()
            };
            Error::from_status("create PerfValidations".to_owned(), &status)
        };
        let quota = "perfvalidations.perfvalidation.dev \"a\" is forbidden: exceeded quota: few, requested: count/perfvalidations.perfvalidation.dev=1";
        let webhook = "admission webhook \"policy.example\" denied the request: label team is missing";
        for why in [quota, webhook] {
            let error = of(why);
            assert_eq!(error.code(), 2, "{error}");
            assert!(error.to_string().contains(why), "{error}");
        }
        let rights = "perfvalidations.perfvalidation.dev is forbidden: User \"jane\" cannot create resource \"perfvalidations\" in API group \"perfvalidation.dev\" in the namespace \"perf\"";
        assert!(matches!(of(rights), Error::Forbidden { role: EDIT, .. }));
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
