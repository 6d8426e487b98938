use super::kinds::all;

/// Reason why saved objects cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// Something that is no Kubernetes object.
    #[error("{0:?} is no Kubernetes object: give what `kubectl get -o yaml` printed")]
    NotAnObject(String),
    /// An object that its kind does not allow.
    #[error("{kind} {name} cannot be read: {why}")]
    Malformed {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// Error of the parser.
        why: serde_json::Error,
    },
    /// A kind that every cluster has, or that others refer to, is not among the objects.
    #[error("there is no {kind} in it{why}: save it again with `kubectl get {}`", all())]
    Missing {
        /// The kind.
        kind: &'static str,
        /// Object that refers to the missing one.
        why: String,
    },
}
