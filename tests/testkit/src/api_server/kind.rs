use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

/// A kind that the API server serves.
#[derive(Clone, Debug)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: String,
    /// Served versions, any of which may be asked for.
    pub versions: Vec<String>,
    /// Plural, as in URLs.
    pub plural: String,
    /// Kind, as in objects.
    pub kind: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether its status is written only through its own path.
    pub status: bool,
    /// Status of a new object.
    pub default_status: Option<Value>,
    /// JSON pointers to fields that its schema does not know: no write keeps them.
    pub unknown: Vec<String>,
    /// Fields that a list or a watch can select by, next to name and namespace.
    pub selectable: Arc<[String]>,
}

impl Kind {
    /// A kind at one version, without a status of its own.
    pub fn new(group: &str, version: &str, plural: &str, kind: &str, namespaced: bool) -> Self {
        Self {
            group: group.into(),
            versions: vec![version.into()],
            plural: plural.into(),
            kind: kind.into(),
            namespaced,
            status: false,
            default_status: None,
            unknown: Vec::new(),
            selectable: selectable(group, plural)
                .iter()
                .map(|&field| field.to_owned())
                .collect(),
        }
    }

    fn with_status(mut self) -> Self {
        self.status = true;
        self
    }

    /// Returns true for a kind of the API server itself, and false for one of a CRD.
    pub(super) fn is_built_in(&self) -> bool {
        is_built_in(&self.group)
    }

    /// The apiVersion of its objects at a version.
    pub(super) fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() {
            version.to_owned()
        } else {
            format!("{}/{version}", self.group)
        }
    }

    /// Drops what its schema does not know.
    pub(super) fn prune(&self, object: &mut Value) {
        for pointer in &self.unknown {
            let Some((parent, field)) = pointer.rsplit_once('/') else {
                continue;
            };
            if let Some(parent) = object.pointer_mut(parent).and_then(Value::as_object_mut) {
                parent.remove(field);
            }
        }
    }

    /// Its entries in the discovery document of a version.
    pub(super) fn resources(&self) -> Vec<Value> {
        let verbs = ["create", "delete", "get", "list", "patch", "update", "watch"];
        let entry = |name: String| json!({"name": name, "singularName": "", "namespaced": self.namespaced, "kind": self.kind, "verbs": verbs});
        let mut entries = vec![entry(self.plural.clone())];
        if self.status {
            entries.push(entry(format!("{}/status", self.plural)));
        }
        entries
    }
}

/// Returns true for a group of the API server itself.
pub(super) fn is_built_in(group: &str) -> bool {
    group.ends_with(".k8s.io") || !group.contains('.')
}

/// Fields of built-in kinds that the operator selects by. A CRD lists its own.
fn selectable(group: &str, plural: &str) -> &'static [&'static str] {
    match (group, plural) {
        ("", "pods") => &["spec.nodeName", "status.phase"],
        ("", "events") => &["involvedObject.kind", "involvedObject.uid", "reason", "type"],
        ("resource.k8s.io", "resourceslices") => &["spec.driver", "spec.nodeName"],
        _ => &[],
    }
}

/// Dynamo's kind, at the versions of an installation.
pub(super) fn dynamo(versions: &[&str]) -> Kind {
    Kind {
        versions: versions.iter().map(|version| (*version).to_owned()).collect(),
        ..Kind::new(
            "nvidia.com",
            "",
            "dynamographdeployments",
            "DynamoGraphDeployment",
            true,
        )
        .with_status()
    }
}

/// Our kinds, as their definitions have them. Schemas are generated only once, because each test makes a server.
static OURS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let kinds = perfval_api::crds().into_iter().map(|definition| {
        let spec = definition.spec;
        let version = &spec.versions[0];
        let schema = version.schema.as_ref();
        let root = schema.and_then(|schema| schema.open_api_v3_schema.as_ref());
        let fields = root.and_then(|root| root.properties.as_ref());
        let default = fields.and_then(|fields| fields.get("status")?.default.as_ref());
        let namespaced = spec.scope == "Namespaced";
        let selectable = version.selectable_fields.iter().flatten();
        Kind {
            status: version.subresources.as_ref().is_some_and(|own| own.status.is_some()),
            default_status: default.map(|default| default.0.clone()),
            selectable: selectable
                .map(|field| field.json_path.trim_start_matches('.').to_owned())
                .collect(),
            ..Kind::new(
                &spec.group,
                &version.name,
                &spec.names.plural,
                &spec.names.kind,
                namespaced,
            )
        }
    });
    kinds.collect()
});

/// What a cluster with Dynamic Resource Allocation, and without Dynamo, serves of what the operator uses.
pub(super) fn built_in() -> Vec<Kind> {
    let others = [
        Kind::new("", "v1", "configmaps", "ConfigMap", true),
        Kind::new("", "v1", "events", "Event", true),
        Kind::new("", "v1", "limitranges", "LimitRange", true),
        Kind::new("", "v1", "namespaces", "Namespace", false),
        Kind::new("", "v1", "nodes", "Node", false).with_status(),
        Kind::new("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true).with_status(),
        Kind::new("", "v1", "persistentvolumes", "PersistentVolume", false).with_status(),
        Kind::new("", "v1", "pods", "Pod", true).with_status(),
        Kind::new("", "v1", "resourcequotas", "ResourceQuota", true).with_status(),
        Kind::new("", "v1", "services", "Service", true).with_status(),
        Kind::new(
            "apiextensions.k8s.io",
            "v1",
            "customresourcedefinitions",
            "CustomResourceDefinition",
            false,
        ),
        Kind::new("batch", "v1", "jobs", "Job", true).with_status(),
        Kind::new("coordination.k8s.io", "v1", "leases", "Lease", true),
        Kind::new("events.k8s.io", "v1", "events", "Event", true),
        Kind::new("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", true),
        Kind::new("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", false),
        Kind::new("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", true).with_status(),
        Kind::new(
            "resource.k8s.io",
            "v1",
            "resourceclaimtemplates",
            "ResourceClaimTemplate",
            true,
        ),
        Kind::new("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", false),
        Kind::new("storage.k8s.io", "v1", "storageclasses", "StorageClass", false),
    ];
    OURS.iter().cloned().chain(others).collect()
}
