//! What can go wrong in the stand-in.

/// Errors of the stand-in for Dynamo's operator.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No kubeconfig, or one that makes no client.
    #[error("cannot make a Kubernetes client: {0}; set KUBECONFIG to the file `lab kubeconfig` names")]
    Client(String),
    /// A call to the API server was refused or not answered.
    #[error("{call} {object}: {source}")]
    Api {
        /// Verb and kind.
        call: &'static str,
        /// Name of the object.
        object: String,
        /// The API server's words.
        source: Box<kube::Error>,
    },
    /// One pass took longer than it may.
    #[error("pass over {object} took longer than {seconds} s; the API server is slow or away, it is tried again")]
    Timeout {
        /// Namespace and name.
        object: String,
        /// The limit.
        seconds: u64,
    },
    /// The DynamoGraphDeployment says something this stand-in cannot do.
    #[error("DynamoGraphDeployment {object}: {what}")]
    Spec {
        /// Namespace and name.
        object: String,
        /// What, and where.
        what: String,
    },
    /// A manifest of the stand-in itself does not parse.
    #[error("manifest {file}: {what}; this is a bug of the lab")]
    Manifest {
        /// Which one.
        file: &'static str,
        /// The parser's words.
        what: String,
    },
}

impl Error {
    /// Names the call in an API error.
    pub fn api(call: &'static str, object: &str) -> impl FnOnce(kube::Error) -> Self {
        let object = object.to_owned();
        move |source| Self::Api {
            call,
            object,
            source: Box::new(source),
        }
    }
}
