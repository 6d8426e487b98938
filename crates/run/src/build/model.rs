//! Access of pods to the model: the token by reference, the weights by volume.

use k8s_openapi::api::core::v1::{
    EnvVar, EnvVarSource, PersistentVolumeClaimVolumeSource, SecretKeySelector, Volume, VolumeMount,
};
use perfval_api::{ModelCache, PerfValidationSpec};

use super::pod::var;
use crate::{Run, names};

/// Mount path of the weights; also `HF_HOME`.
pub const CACHE_PATH: &str = "/model-cache";

const CACHE_VOLUME: &str = "model-cache";
/// Folder of the code that `--trust-remote-code` copies from the weights; by default it is in `HF_HOME`, which readers cannot
/// write.
const MODULES_PATH: &str = "/tmp/hf-modules";

/// The volume claim with the weights, if there is one.
pub fn cache_claim_name(object: &str, spec: &PerfValidationSpec) -> Option<String> {
    Some(match spec.model.cache.as_ref()? {
        ModelCache::PersistentVolumeClaim(claim) => claim.claim_name.clone(),
        ModelCache::VolumeClaimTemplate(_) => names::cache_claim(object),
    })
}

/// The volume with the weights, if there is one.
pub fn cache_volume(run: &Run<'_>) -> Option<Volume> {
    let claim_name = cache_claim_name(run.name(), run.spec())?;
    Some(Volume {
        name: CACHE_VOLUME.to_owned(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name,
            ..PersistentVolumeClaimVolumeSource::default()
        }),
        ..Volume::default()
    })
}

/// The mount of the weights, if there are any.
pub fn cache_mount(run: &Run<'_>, read_only: bool) -> Option<VolumeMount> {
    run.spec().model.cache.as_ref().map(|_| VolumeMount {
        name: CACHE_VOLUME.to_owned(),
        mount_path: CACHE_PATH.to_owned(),
        read_only: read_only.then_some(true),
        ..VolumeMount::default()
    })
}

/// Variables for a reader of the model: the mounted weights, or the token with which it downloads them. With a cache
/// the pod is offline, so an incomplete cache is an error and no download, and the pod needs no token.
pub fn reader_env(run: &Run<'_>) -> Vec<EnvVar> {
    // vLLM sends anonymous usage data by default, and so does Hugging Face's library.
    let quiet = var("DO_NOT_TRACK", "1");
    if run.spec().model.cache.is_some() {
        return vec![
            quiet,
            var("HF_HOME", CACHE_PATH),
            var("HF_HUB_OFFLINE", "1"),
            var("HF_MODULES_CACHE", MODULES_PATH),
        ];
    }
    [quiet].into_iter().chain(token_env(run)).collect()
}

/// The Hugging Face token, by reference: the operator never reads it.
pub fn token_env(run: &Run<'_>) -> Option<EnvVar> {
    let secret: &SecretKeySelector = run.spec().model.token_secret_ref.as_ref()?;
    Some(EnvVar {
        name: "HF_TOKEN".to_owned(),
        value_from: Some(EnvVarSource {
            secret_key_ref: Some(secret.clone()),
            ..EnvVarSource::default()
        }),
        value: None,
    })
}
