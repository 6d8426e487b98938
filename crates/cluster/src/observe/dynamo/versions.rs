//! Versions at which a deployment may be found. A version that is not served any more says nothing about the deployment:
//! only a CRD that is gone does.

use std::collections::VecDeque;

use kube::api::GetParams;
use kube::core::{ApiResource, Request};
use perfval_run::Run;
use serde::Deserialize;

use super::{CRD, KIND, VERSIONS, deployments_at};
use crate::call::{Read, Unread, read};
use crate::{Cluster, Failure};

/// What is read of the CRD: all of it has 1.6 MB.
#[derive(Deserialize)]
struct Definition {
    spec: DefinitionSpec,
}

#[derive(Deserialize)]
struct DefinitionSpec {
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    name: String,
    served: bool,
}

/// The versions, one after the other: the recorded one, those we speak, then all others that the CRD serves.
pub(crate) struct Versions<'a> {
    cluster: &'a Cluster,
    waiting: VecDeque<String>,
    tried: Vec<String>,
    crd_was_read: bool,
    failed: Option<String>,
}

impl Cluster {
    /// Versions at which to ask for the deployments of a run.
    pub(crate) fn deployment_versions<'a>(&'a self, run: &Run<'_>) -> Versions<'a> {
        let recorded = run.status().workload.as_ref().map(|workload| deployments_at(&workload.api_version).version);
        let known = VERSIONS.map(str::to_owned);
        Versions {
            cluster: self,
            waiting: recorded.into_iter().chain(known).collect(),
            tried: Vec::new(),
            crd_was_read: false,
            failed: None,
        }
    }

    async fn served_versions(&self) -> Read<Vec<String>> {
        let call = format!("get CustomResourceDefinition {CRD}");
        let request = Request::new("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
            .get(CRD, &GetParams::default())
            .map_err(|error| Unread::Unknown(format!("{call}: {error}")))?;
        let found: Definition = read(&call, self.bounded(self.client.request(request)).await)?;
        let served = found.spec.versions.into_iter().filter(|version| version.served);
        Ok(served.map(|version| version.name).collect())
    }
}

impl Versions<'_> {
    /// The next version to ask at. Absent if there is no CRD, and so no deployment; unknown if no version answers.
    pub(crate) async fn next(&mut self) -> Read<ApiResource> {
        loop {
            if self.waiting.is_empty() && !self.crd_was_read {
                self.crd_was_read = true;
                self.waiting = self.cluster.served_versions().await?.into();
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

    /// Whether another version may have the answer that this one did not: it is not served, or its conversion failed, as
    /// it does when Dynamo's operator, whose webhook converts, was removed before its CRD.
    pub(crate) fn goes_on(&mut self, call: &str, failure: &Failure) -> bool {
        let broken = failure.code() == Some(500);
        if broken {
            self.failed.get_or_insert_with(|| format!("{call}: {failure}"));
        }
        broken || failure.is_not_served()
    }
}
