use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use perfval_api::ClaimTemplate;

use super::meta::metadata;
use crate::{Run, names};

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
