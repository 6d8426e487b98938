use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use perfval_api::ModelCache;

use super::meta::metadata;
use crate::{Run, names};

/// The volume claim of the model cache (`model.cache.size`). It is kept between runs and goes with the object.
pub fn cache_claim(run: &Run<'_>) -> PersistentVolumeClaim {
    let ModelCache {
        claim_name: _,
        size,
        storage_class_name,
    } = run.spec().model.cache.clone().unwrap_or_default();
    PersistentVolumeClaim {
        metadata: metadata(run, names::cache_claim(run.name()), names::MODEL_CACHE),
        spec: Some(PersistentVolumeClaimSpec {
            // The one access mode that every StorageClass has; all readers are on the node under test.
            access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
            resources: Some(VolumeResourceRequirements {
                requests: size.map(|size| [("storage".to_owned(), Quantity(size))].into()),
                limits: None,
            }),
            storage_class_name,
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    }
}
