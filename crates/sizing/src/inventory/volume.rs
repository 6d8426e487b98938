use k8s_openapi::api::core::v1::{NodeSelector, PersistentVolume, PersistentVolumeClaim};
use kube::ResourceExt as _;

/// The volume of the model cache, where not every node can reach it: a local one, or one of a zone.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheVolume {
    /// Name of its claim.
    pub claim: String,
    /// The nodes that reach it.
    pub nodes: NodeSelector,
}

impl CacheVolume {
    /// The volume that a claim is bound to; none if it is not bound yet, and so goes where its first pod goes.
    pub fn name_for(claim: &PersistentVolumeClaim) -> Option<&str> {
        let name = claim.spec.as_ref()?.volume_name.as_deref()?;
        (!name.is_empty()).then_some(name)
    }

    /// Reduces a claim's volume to sizing's needs; `None` if every node can reach it.
    pub fn read(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Option<Self> {
        let affinity = volume.spec.as_ref()?.node_affinity.as_ref()?;
        Some(Self {
            claim: claim.name_any(),
            nodes: affinity.required.clone()?,
        })
    }
}
