//! Writes for a `PerfBaseline`.

use kube::api::Api;
use perfval_api::fleet::{PerfBaseline, PerfBaselineStatus};

use crate::call::creation;
use crate::error::unless_late;
use crate::{CallFailure, Cluster};

impl Cluster {
    /// Creates a baseline. An existing one is no failure.
    pub async fn create_baseline(&self, baseline: &PerfBaseline) -> Result<(), CallFailure> {
        let api: Api<PerfBaseline> = Api::all(self.client.clone());
        match self.bounded(api.create(&creation(false), baseline)).await {
            Ok(_) => Ok(()),
            Err(failure) if failure.is_already_exists() => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// Writes the status of a baseline. Returns false if the baseline is gone or has changed, because the decision was made on an
    /// old copy.
    pub async fn write_baseline_status(
        &self,
        baseline: &PerfBaseline,
        status: &PerfBaselineStatus,
    ) -> Result<bool, CallFailure> {
        let api: Api<PerfBaseline> = Api::all(self.client.clone());
        let seen = &baseline.metadata;
        let written = self.write_status::<PerfBaseline, _>(&api, seen, status).await;
        Ok(unless_late(written)?.is_some())
    }
}
