//! Errors of the process itself.

use std::net::SocketAddr;
use std::path::PathBuf;

use perfval_cluster::cause::without_secrets;

/// An error that ends the process.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log directives cannot be parsed.
    #[error("--log {directives:?} cannot be read: give a level such as info, or target=level pairs")]
    LogDirectives {
        /// Directives of the user.
        directives: String,
        /// Error of the parser.
        source: Box<tracing_subscriber::filter::ParseError>,
    },
    /// A log was started before.
    #[error("the log cannot be started")]
    LogTaken(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Signal handlers cannot be installed.
    #[error("SIGTERM and SIGINT cannot be listened for")]
    Signals(#[source] std::io::Error),
    /// The answer cannot be written.
    #[error("the answer cannot be written to standard output")]
    Answer(#[source] std::io::Error),
    /// The asynchronous runtime cannot start.
    #[error("the runtime cannot be started")]
    Runtime(#[source] std::io::Error),
    /// No kubeconfig, or a broken one.
    #[error("no access to a cluster: run in a pod with a service account, or set KUBECONFIG")]
    Kubeconfig(#[source] kube::config::InferConfigError),
    /// The client cannot be built from the configuration.
    #[error("the Kubernetes client cannot be built")]
    Client(#[source] kube::Error),
    /// The HTTP address is taken, or belongs to another machine.
    #[error("{flag} {address} cannot be listened on: choose a free one")]
    Listen {
        /// The flag.
        flag: &'static str,
        /// The address.
        address: SocketAddr,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The certificate of the metrics cannot be used.
    #[error("{} cannot be used: --metrics-tls-folder needs the tls.crt and tls.key of a Secret of type kubernetes.io/tls", file.display())]
    Certificate {
        /// File with the certificate or the key.
        file: PathBuf,
        /// Error of the file system, or of the format.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The HTTP server ended.
    #[error("the server of /healthz and /metrics ended")]
    Serve(#[source] std::io::Error),
    /// Another process holds the lease now, or it could not be renewed in time.
    #[error("leadership of lease {lease} is lost ({why}): exiting, so that two leaders never work at once")]
    LeaseLost {
        /// Namespace and name.
        lease: String,
        /// Description of the end.
        why: String,
    },
    /// Work outside of the passes panicked.
    #[error("the work of this process ended by a panic: report the bug with `kubectl perfval bundle`")]
    WorkPanicked(#[source] tokio::task::JoinError),
    /// The operator is not ready.
    #[error(transparent)]
    NotReady(#[from] crate::ready::NotReady),
}

impl Error {
    /// Text with all causes. The text of a cause that may contain secrets, such as the URL of a proxy, is replaced.
    pub fn with_causes(&self) -> String {
        if let Some(cause) = without_secrets(self) {
            return format!("{self}: {cause}");
        }
        let causes = std::iter::successors(Some(self as &dyn std::error::Error), |error| error.source());
        let messages: Vec<_> = causes.map(ToString::to_string).collect();
        messages.join(": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_causes_are_shown_without_the_password_of_a_proxy() {
        let proxy_url: http::Uri = "http://me:t-secret@127.0.0.1:1".parse().expect("a URL");
        let refused = kube::Error::ProxyProtocolDisabled {
            proxy_url: Box::new(proxy_url),
            protocol_feature: "kube/http-proxy",
        };
        let text = Error::Client(refused).with_causes();
        assert!(text.contains("remove proxy-url from the kubeconfig"), "{text}");
        assert!(!text.contains("t-secret"), "{text}");
        let busy = Error::Signals(std::io::Error::other("busy"));
        assert_eq!(busy.with_causes(), "SIGTERM and SIGINT cannot be listened for: busy");
    }
}
