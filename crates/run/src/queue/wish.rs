//! Wishes of the runs that wait.

use perfval_api::PerfValidationSpec;

use crate::build;

/// A spec as JSON. In memory a spec takes 5 KB, and thousands of runs wait.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PackedSpec(Box<[u8]>);

impl PackedSpec {
    /// Packs a spec.
    pub fn new(spec: &PerfValidationSpec) -> Self {
        // A spec has a JSON form. Without it the run would wait with an error.
        let json = serde_json::to_vec(spec).unwrap_or_default();
        // Copied, because an allocator may leave a vector that shrinks where it is.
        Self(Box::from(json.as_slice()))
    }

    /// The spec.
    pub fn unpack(&self) -> Option<PerfValidationSpec> {
        serde_json::from_slice(&self.0).ok()
    }

    /// The spec as JSON.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The GPUs that a run waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The spec of the run.
    pub spec: PackedSpec,
    /// Name of its `DeviceClass`.
    pub device_class: String,
    /// The volume claim with its model cache, in the run's namespace.
    pub cache_claim: Option<String>,
}

impl Wish {
    /// Wish of an object of this name.
    pub fn new(object: &str, spec: &PerfValidationSpec) -> Self {
        Self {
            spec: PackedSpec::new(spec),
            device_class: spec.placement.device_class_name.clone(),
            cache_claim: build::cache_claim_name(object, spec),
        }
    }
}
