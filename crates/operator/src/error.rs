//! Errors of the process itself.

use std::net::SocketAddr;
use std::path::PathBuf;

use perfval_cluster::cause::{chain, without_secrets};

/// An error that ends the process.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // each text shows what has failed and what the fields are
pub enum Error {
    #[error("--log {directives:?} cannot be read: give a level such as info, or target=level pairs")]
    LogDirectives {
        directives: String,
        source: Box<tracing_subscriber::filter::ParseError>,
    },
    #[error("the log cannot be started")]
    LogTaken(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("SIGTERM and SIGINT cannot be listened for")]
    Signals(#[source] std::io::Error),
    #[error("the answer cannot be written to standard output")]
    Answer(#[source] std::io::Error),
    #[error("the runtime cannot be started")]
    Runtime(#[source] std::io::Error),
    #[error("no access to a cluster: run in a pod with a service account, or set KUBECONFIG")]
    Kubeconfig(#[source] kube::config::InferConfigError),
    #[error("the Kubernetes client cannot be built")]
    Client(#[source] kube::Error),
    #[error("{flag} {address} cannot be listened on: choose a free one")]
    Listen {
        flag: &'static str,
        address: SocketAddr,
        source: std::io::Error,
    },
    #[error("{} cannot be used: --metrics-tls-folder needs the tls.crt and tls.key of a Secret of type kubernetes.io/tls", file.display())]
    Certificate {
        file: PathBuf,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("the server of /healthz and /metrics ended")]
    Serve(#[source] std::io::Error),
    #[error("leadership of lease {lease} is lost ({why}): exiting, so that two leaders never work at once")]
    LeaseLost { lease: String, why: String },
    #[error("the work of this process ended by a panic: report the bug with `kubectl perfval bundle`")]
    WorkPanicked(#[source] tokio::task::JoinError),
    #[error(transparent)]
    NotReady(#[from] crate::ready::NotReady),
}

impl Error {
    /// Text with all causes. The text of a cause that may contain secrets, such as the URL of a proxy, is replaced.
    pub fn with_causes(&self) -> String {
        without_secrets(self).map_or_else(|| chain(self), |cause| format!("{self}: {cause}"))
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
