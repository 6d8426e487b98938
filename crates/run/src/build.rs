//! The objects of a run, one kind a file.
//!
//! Every builder reads the recorded plan (`status.placement`) and nothing of the cluster, so a restarted operator
//! builds the same object again. Before a plan is recorded only [`cache_claim`] is of use.

mod aiperf_command;
mod cache_claim;
mod cache_job;
pub(crate) mod claim_template;
pub(crate) mod load;
pub(crate) mod meta;
pub(crate) mod model;
mod network_policy;
mod packing;
pub(crate) mod pod;
mod results;
mod trial_job;
mod workers_service;

pub use cache_claim::{cache_claim, cache_claim_fault, has_storage_class};
pub use cache_job::cache_job;
pub use claim_template::claim_template;
pub use model::cache_claim_name;
pub use network_policy::network_policy;
pub use packing::PackedTrial;
pub use pod::{ARCHITECTURE_LABEL, OWN_ARCHITECTURES};
pub use results::{LOG, RESULTS, SHA256, SUMMARY, Summary, read_summary, results, results_sha256};
pub use trial_job::trial_job;
pub use workers_service::workers_service;

use crate::Run;
use crate::names::dynamo::{FRONTEND_PORT, frontend_service};

/// URL for requests: the frontend's Service, which Dynamo's operator creates.
pub fn endpoint(run: &Run<'_>) -> String {
    format!(
        "http://{}:{}",
        service_host(run, &frontend_service(&run.id())),
        FRONTEND_PORT
    )
}

/// Name of a Service of the run's namespace, as any pod of the cluster resolves it.
fn service_host(run: &Run<'_>, service: &str) -> String {
    format!("{service}.{}.svc.{}", run.namespace(), run.settings.cluster_domain)
}
