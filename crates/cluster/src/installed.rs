//! How Dynamo was last seen to be installed.

use std::sync::Arc;

use kube::core::ApiResource;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How Dynamo is installed.
#[derive(Clone)]
pub(crate) struct Installed {
    /// The newest version of its deployments that is served and that we speak.
    pub resource: ApiResource,
    /// Version of its operator, where the CRD names it.
    pub operator_version: Option<String>,
    /// Whether a deployment may name the version of its runtime; read only for a run that does.
    pub takes_runtime_version: Option<bool>,
}

/// The last good answer, and when it was given. Whoever comes while one is awaited gets the same.
pub(crate) type LastInstalled = Arc<Mutex<Option<(Instant, Installed)>>>;
