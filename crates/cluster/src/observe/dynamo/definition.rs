//! Parts of the deployments' CRD that are read: its versions, and the presence of one field. All of it has 1.6 MB;
//! the types contain only these parts, and everything else is skipped while it is read.

use kube::api::GetParams;
use kube::core::Request;
use serde::Deserialize;
use serde::de::IgnoredAny;

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
    schema: Option<Schema>,
}

#[derive(Deserialize)]
struct Schema {
    #[serde(rename = "openAPIV3Schema")]
    root: Option<SchemaObject<Root>>,
}

/// A node of a schema with the properties that the operator needs.
#[derive(Deserialize)]
struct SchemaObject<P> {
    properties: Option<P>,
}

#[derive(Deserialize)]
struct Root {
    spec: Option<SchemaObject<Graph>>,
}

/// Components are a list at v1beta1, and a map of services at v1alpha1.
#[derive(Deserialize)]
struct Graph {
    components: Option<ListSchema>,
    services: Option<Map>,
}

#[derive(Deserialize)]
struct ListSchema {
    items: Option<SchemaObject<ComponentSchema>>,
}

#[derive(Deserialize)]
struct Map {
    #[serde(rename = "additionalProperties")]
    values: Option<SchemaObject<ComponentSchema>>,
}

#[derive(Deserialize)]
struct ComponentSchema {
    #[serde(rename = "runtimeVersionOverride")]
    runtime_version: Option<IgnoredAny>,
}

impl DynamoCrd {
    /// Names of the versions that are served.
    pub(super) fn served(self) -> impl Iterator<Item = String> {
        let served = self.spec.versions.into_iter().filter(|version| version.served);
        served.map(|version| version.name)
    }

    /// Returns true if components have `runtimeVersionOverride` at a version.
    pub(super) fn takes_runtime_version(self, version: &str) -> bool {
        let mut versions = self.spec.versions.into_iter();
        let takes = |version: CrdVersion| {
            let graph = version.schema?.root?.properties?.spec?.properties?;
            let list = graph.components.and_then(|list| list.items);
            let component = list.or_else(|| graph.services.and_then(|map| map.values))?;
            component.properties?.runtime_version
        };
        versions.find(|known| known.name == version).and_then(takes).is_some()
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
