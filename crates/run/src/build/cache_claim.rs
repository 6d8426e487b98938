use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::ResourceExt as _;
use perfval_api::{AccessMode, ClaimTemplate, quantity};

use super::meta::metadata;
use crate::{Run, names};

/// Annotations that mark the default class. Kubernetes honours the second one, too (`pkg/apis/storage/util/helpers.go`).
const DEFAULT_CLASS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

/// True if the class of the template exists, or a default one for a template without a class.
pub fn has_storage_class(template: &ClaimTemplate, classes: &[StorageClass]) -> bool {
    let is_default = |class: &StorageClass| {
        DEFAULT_CLASS
            .iter()
            .any(|key| class.annotations().get(*key).is_some_and(|value| value == "true"))
    };
    match &template.storage_class_name {
        Some(name) => classes.iter().any(|class| class.name_any() == *name),
        None => classes.iter().any(is_default),
    }
}

/// The volume claim of a template, `model.cache.volumeClaimTemplate`. It is kept between runs and goes with the object.
pub fn cache_claim(run: &Run<'_>, template: &ClaimTemplate) -> PersistentVolumeClaim {
    let modes = template.access_modes.iter().map(|mode| mode.as_str().to_owned());
    let storage = ("storage".to_owned(), Quantity(template.storage.clone()));
    PersistentVolumeClaim {
        metadata: metadata(run, names::cache_claim(run.name()), names::MODEL_CACHE),
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(modes.collect()),
            resources: Some(VolumeResourceRequirements {
                requests: Some([storage].into()),
                limits: None,
            }),
            storage_class_name: template.storage_class_name.clone(),
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    }
}

/// The fault of an existing claim that cannot serve as the wanted one. Its class does not matter, and a policy of the cluster may
/// have changed it.
pub fn cache_claim_fault(wanted: &PersistentVolumeClaim, found: &PersistentVolumeClaim) -> Option<String> {
    let (wanted, found) = (wanted.spec.as_ref()?, found.spec.as_ref()?);
    let (size, has) = (storage(wanted), storage(found));
    if quantity::parse(has) < quantity::parse(size) {
        return Some(format!("requests {has}, not {size}"));
    }
    let modes = |spec: &PersistentVolumeClaimSpec| spec.access_modes.clone().unwrap_or_default().join(", ");
    let (modes, has) = (modes(wanted), modes(found));
    let shared = AccessMode::ReadWriteMany.as_str();
    (modes.contains(shared) && !has.contains(shared)).then(|| format!("has {has}, not {shared}"))
}

fn storage(spec: &PersistentVolumeClaimSpec) -> &str {
    let resources = spec.resources.as_ref();
    let requests = resources.and_then(|resources| resources.requests.as_ref());
    let storage = requests.and_then(|requests| requests.get("storage"));
    storage.map_or("", |size| size.0.as_str())
}
