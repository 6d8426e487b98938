//! Versions in the deployments' CRD. All of it has 1.6 MB; the types contain only the versions, and everything else is
//! skipped while it is read.

use kube::api::GetParams;
use kube::core::Request;
use serde::Deserialize;

use super::CRD;
use crate::Cluster;
use crate::call::{Read, Unread, read};

#[derive(Deserialize)]
pub(super) struct DynamoCrd {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    versions: Vec<CrdVersion>,
}

#[derive(Deserialize)]
struct CrdVersion {
    name: String,
    served: bool,
}

impl DynamoCrd {
    /// Names of the versions that are served.
    pub(super) fn served(self) -> impl Iterator<Item = String> {
        let served = self.spec.versions.into_iter().filter(|version| version.served);
        served.map(|version| version.name)
    }
}

impl Cluster {
    pub(super) async fn definition(&self) -> Read<DynamoCrd> {
        let call = format!("get CustomResourceDefinition {CRD}");
        let request = Request::new("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
            .get(CRD, &GetParams::default())
            .map_err(|error| Unread::Unknown(format!("{call}: {error}")))?;
        read(&call, self.bounded(self.client.request(request)).await)
    }
}
