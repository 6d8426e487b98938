//! Errors of a command, each as one sentence.

mod call;

use std::io;
use std::path::{Path, PathBuf};

use perfval_api::admission::SchemaError;

use crate::exit::UNREADABLE;

pub use call::{READ_ALL, is_missing_kind};
pub use perfval_cluster::cause::{WRONG_TOKEN, fault, innermost, without_secrets};

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
#[allow(missing_docs)] // each text shows what the fields are
pub enum Error {
    /// The reader of the output has left, and wants no more.
    #[error("the reader has left")]
    Closed,
    /// The output cannot be written.
    #[error("the answer cannot be written: {0}")]
    Output(#[source] io::Error),
    /// A file cannot be written or read.
    #[error("{} cannot be used: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// No kubeconfig, or a context that it does not have.
    #[error(
        "no cluster is configured: {0}; set KUBECONFIG, or give --kubeconfig and --context (`kubectl config get-contexts` lists them)"
    )]
    NoCluster(String),
    /// The API server does not answer.
    #[error("the cluster does not answer ({call}): {why}; check the context with `kubectl cluster-info`")]
    Unreachable { call: String, why: String },
    /// The answer is no object that this program can read.
    #[error(
        "the answer of the cluster cannot be read ({call}): {why}; use the plug-in of the operator's release, or check the context with \
         `kubectl cluster-info`"
    )]
    Undecodable { call: String, why: String },
    /// The API server cannot carry out the call now.
    #[error("the cluster answered {code} ({call}): {why}; try again")]
    Overloaded { code: u16, call: String, why: String },
    /// The CRD is not installed.
    #[error(
        "this cluster has no PerfValidation API: install the operator with `{}`, or choose another cluster with --context",
        INSTALL
    )]
    NotInstalled,
    /// A right is missing.
    #[error("you may not {call}: {why}; ask for {role}")]
    Forbidden {
        call: String,
        why: String,
        role: &'static str,
    },
    /// The API server does not recognise the user.
    #[error("the cluster does not accept your credentials ({call}): log in again, or choose another --context")]
    Unauthorized { call: String },
    /// There is no such object.
    #[error("there is no PerfValidation {name} in namespace {namespace}: `kubectl perfval get -A` lists all")]
    NoSuchObject { namespace: String, name: String },
    /// An object of another kind does not exist.
    #[error("you cannot {call}: {why}")]
    NotFound { call: String, why: String },
    /// The object went away while it was watched.
    #[error("PerfValidation {0} was deleted")]
    Vanished(String),
    /// It was not over in time.
    #[error("{0}")]
    NotOver(String),
    /// The API server refuses the object.
    #[error("the cluster refuses it ({call}): {why}")]
    Refused { call: String, why: String },
    /// The request cannot be carried out.
    #[error("{0}")]
    BadInput(String),
    /// A run that was needed has no verdict that counts.
    #[error("{why}")]
    NotMeasured { code: u8, why: String },
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

    /// Exit code of an answer that lacks a part because of this error: a person may lack a right.
    pub fn code_of_gap(&self) -> u8 {
        match self {
            Self::Forbidden { .. } => 0,
            _ => UNREADABLE,
        }
    }

    /// Error of the file system about this file.
    pub fn file(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::File {
            path: path.to_owned(),
            source,
        }
    }
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
}
