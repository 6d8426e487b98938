//! Versions at which a deployment may be found. A version that is not served any more is no evidence about the
//! deployment; only a missing CRD is.

use std::collections::VecDeque;

use kube::core::ApiResource;
use perfval_run::Run;

use super::{CRD, KIND, VERSIONS, deployments_at};
use crate::call::{Read, Unread};
use crate::{CallFailure, Cluster};

/// The versions, one after the other: the recorded one, the supported ones, then all others that the CRD serves.
pub(crate) struct Versions<'a> {
    cluster: &'a Cluster,
    waiting: VecDeque<String>,
    tried: Vec<String>,
    crd_was_read: bool,
    pub(super) failed: Option<String>,
}

impl Cluster {
    /// Versions at which to ask for the deployments of a run.
    pub(crate) fn deployment_versions<'a>(&'a self, run: &Run<'_>) -> Versions<'a> {
        let deployment = run.status().state.deployment.as_ref();
        self.versions_of_deployments(deployment.map(|deployment| deployment.api_version.as_str()))
    }

    /// Versions at which to ask for deployments, that at which they were recorded first.
    pub(crate) fn versions_of_deployments(&self, recorded: Option<&str>) -> Versions<'_> {
        let recorded = recorded.map(|api_version| deployments_at(api_version).version);
        let known = VERSIONS.map(str::to_owned);
        Versions {
            cluster: self,
            waiting: recorded.into_iter().chain(known).collect(),
            tried: Vec::new(),
            crd_was_read: false,
            failed: None,
        }
    }
}

impl Versions<'_> {
    /// The next version to ask at. Absent if there is no CRD, and so no deployment; unknown if no version answers.
    pub(crate) async fn next(&mut self) -> Read<ApiResource> {
        loop {
            if self.waiting.is_empty() && !self.crd_was_read {
                self.crd_was_read = true;
                self.waiting = self.cluster.definition().await?.served().collect();
            }
            let Some(version) = self.waiting.pop_front() else {
                let unserved = || format!("{CRD} exists, but {KIND} is not served as {}", self.tried.join(" or "));
                return Err(Unread::Unknown(self.failed.take().unwrap_or_else(unserved)));
            };
            if !self.tried.contains(&version) {
                self.tried.push(version.clone());
                return Ok(deployments_at(&version));
            }
        }
    }

    /// Returns true if another version may have the answer that this one did not: it is not served, or its conversion
    /// failed, as it does when Dynamo's operator, whose webhook converts, was removed before its CRD.
    pub(crate) fn goes_on(&mut self, call: &str, failure: &CallFailure) -> bool {
        let broken = failure.code() == Some(500);
        if broken {
            self.failed.get_or_insert_with(|| format!("{call}: {failure}"));
        }
        broken || failure.is_not_served()
    }
}
