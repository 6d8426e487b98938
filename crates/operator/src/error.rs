//! What can go wrong in the process itself.

use std::net::SocketAddr;
use std::path::PathBuf;

/// An error that ends the process.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log directives cannot be parsed.
    #[error("--log {directives:?} cannot be read: give a level such as info, or target=level pairs")]
    LogDirectives {
        /// What was given.
        directives: String,
        /// Why not.
        source: Box<tracing_subscriber::filter::ParseError>,
    },
    /// A log was started before.
    #[error("the log cannot be started")]
    LogTaken {
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Signal handlers cannot be installed.
    #[error("SIGTERM and SIGINT cannot be listened for")]
    Signals {
        /// Why not.
        source: std::io::Error,
    },
    /// The answer cannot be written.
    #[error("the answer cannot be written to standard output")]
    Answer {
        /// Why not.
        source: std::io::Error,
    },
    /// The asynchronous runtime cannot start.
    #[error("the runtime cannot be started")]
    Runtime {
        /// Why not.
        source: std::io::Error,
    },
    /// No kubeconfig, or a broken one.
    #[error("no access to a cluster: run in a pod with a service account, or set KUBECONFIG")]
    Kubeconfig {
        /// Why not.
        source: kube::config::InferConfigError,
    },
    /// The client cannot be built from the configuration.
    #[error("the Kubernetes client cannot be built")]
    Client {
        /// Why not.
        source: kube::Error,
    },
    /// The HTTP address is taken or not ours.
    #[error("--metrics-addr {address} cannot be listened on: choose a free one")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// The HTTP server ended.
    #[error("the server of /healthz and /metrics ended")]
    Serve {
        /// Why.
        source: std::io::Error,
    },
    /// Another process holds the lease now, or it could not be renewed in time.
    #[error("leadership of lease {lease} is lost ({why}): exiting, so that two leaders never work at once")]
    LeaseLost {
        /// Namespace and name.
        lease: String,
        /// What happened.
        why: String,
    },
    /// What `judge` was given cannot be judged.
    #[error(transparent)]
    BadInput(#[from] perfval_commands::judge::BadInput),
    /// `size` has no answer.
    #[error(transparent)]
    Size(#[from] perfval_commands::size::Error),
    /// `ready` heard no yes.
    #[error(transparent)]
    NotReady(#[from] crate::ready::NotReady),
    /// Generated files cannot be written.
    #[error("the files cannot be written to {}", path.display())]
    Write {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A generated document has no YAML form.
    #[error("{what} cannot be written as YAML")]
    Render {
        /// What was rendered.
        what: &'static str,
        /// Why not.
        source: serde_saphyr::ser::Error,
    },
}
