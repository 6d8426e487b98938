//! Installation of Dynamo, as last seen.

use std::sync::Arc;

use kube::core::ApiResource;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Installation of Dynamo.
#[derive(Clone)]
pub(crate) struct Installed {
    /// The newest served version of its deployments that the operator supports.
    pub resource: ApiResource,
    /// Version of its operator, if the CRD contains it.
    pub operator_version: Option<String>,
    /// True if a deployment may contain the version of its runtime; read only for a run that needs it.
    pub takes_runtime_version: Option<bool>,
}

/// The last good answer and its time. A caller that comes while a read is under way gets the same answer.
pub(crate) type LastInstalled = Arc<Mutex<Option<(Instant, Installed)>>>;
