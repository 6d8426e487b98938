//! The kinds of objects that a random cluster is made of.

use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;

/// apiVersion, kind, plural and whether the kind lives in a namespace; in the order in which objects are written.
const KINDS: [(&str, &str, &str, bool); 9] = [
    ("resource.k8s.io/v1", "DeviceClass", "deviceclasses", false),
    ("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", false),
    ("v1", "Node", "nodes", false),
    ("resource.k8s.io/v1", "ResourceSlice", "resourceslices", false),
    ("resource.k8s.io/v1beta2", "DeviceTaintRule", "devicetaintrules", false),
    ("resource.k8s.io/v1", "ResourceClaim", "resourceclaims", true),
    (
        "resource.k8s.io/v1",
        "ResourceClaimTemplate",
        "resourceclaimtemplates",
        true,
    ),
    ("v1", "Pod", "pods", true),
    ("v1", "Namespace", "namespaces", false),
];

/// A kind, as the API serves it.
#[derive(Clone, Copy)]
pub struct Kind {
    api_version: &'static str,
    /// Its name.
    pub name: &'static str,
    plural: &'static str,
    /// Whether its objects live in a namespace.
    pub namespaced: bool,
}

impl Kind {
    /// The kind of this name.
    ///
    /// # Panics
    /// If a random cluster has no such kind.
    pub fn named(name: &str) -> Self {
        Self::all()
            .find(|kind| kind.name == name)
            .unwrap_or_else(|| panic!("no kind {name}"))
    }

    /// The kind of a manifest.
    pub fn of(object: &Value) -> Self {
        Self::named(object["kind"].as_str().unwrap_or_default())
    }

    /// All kinds, in the order in which objects are written.
    pub fn all() -> impl Iterator<Item = Self> {
        KINDS.into_iter().map(|(api_version, name, plural, namespaced)| Self {
            api_version,
            name,
            plural,
            namespaced,
        })
    }

    /// Where its objects are created, changed and listed.
    pub fn api(self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        let (group, version) = self.api_version.split_once('/').unwrap_or(("", self.api_version));
        let resource =
            ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, self.name), self.plural);
        if self.namespaced {
            Api::namespaced_with(client.clone(), namespace, &resource)
        } else {
            Api::all_with(client.clone(), &resource)
        }
    }
}
