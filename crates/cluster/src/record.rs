use kube::api::{Api, ListParams};
use kube::core::ResourceExt as _;
use perfval_api::{PerfValidation, PerfValidationStatus};
use perfval_run::Run;

use crate::{CallFailure, Cluster, Error};

/// Outcome of recording a status.
#[derive(Clone, Debug)]
pub enum StatusWrite {
    /// The new status equals the current one.
    Unchanged,
    /// It is written; the object as it is now.
    Written(Box<PerfValidation>),
    /// The object moved on or is gone: the decision was made on an old copy and counts for nothing.
    Conflict,
}

impl Cluster {
    /// The object as it is now; `None` if it is gone, or another one has its name.
    pub async fn whole(&self, run: &Run<'_>) -> Result<Option<PerfValidation>, CallFailure> {
        let api: Api<PerfValidation> = Api::namespaced(self.client.clone(), run.namespace());
        // A list needs no right beyond those of a watch.
        let params = ListParams::default().fields(&format!("metadata.name={}", run.name()));
        let found = self.list(&api, params).await?.pop();
        Ok(found.filter(|object| object.uid().as_deref() == Some(run.uid())))
    }

    /// Writes the status, which is the commit of a pass. It carries the resourceVersion of the object the decision was made
    /// on, so that a decision on an old copy fails instead of turning the phase back.
    pub async fn record(&self, run: &Run<'_>, status: &PerfValidationStatus) -> Result<StatusWrite, Error> {
        if run.object.status.as_ref() == Some(status) {
            return Ok(StatusWrite::Unchanged);
        }
        let meta = &run.object.metadata;
        let api: Api<PerfValidation> = Api::namespaced(self.client.clone(), run.namespace());
        match self.write_status::<PerfValidation, _>(&api, meta, status).await {
            // All that is new was dropped: a CRD from before an upgrade prunes fields it does not know. No watch event
            // will come of it.
            Ok(same) if same.metadata.resource_version == meta.resource_version => Ok(StatusWrite::Unchanged),
            Ok(written) => Ok(StatusWrite::Written(Box::new(written))),
            Err(failure) if failure.is_too_late() => Ok(StatusWrite::Conflict),
            Err(failure) => Err(Error::unwritten_status(run.namespace(), run.name(), failure)),
        }
    }
}
