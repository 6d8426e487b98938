//! Conversion of saved objects for sizing.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::api::resource::v1::DeviceClass;
use kube::ResourceExt as _;

use super::{Dump, DumpError, kinds};
use crate::inventory::{CacheVolume, Inventory};
use crate::{Naming, OtherRun, Seen};

/// Note if objects of a namespace are given and the namespace is not.
const NO_NAMESPACE: &str =
    "no namespace is given: quotas, limit ranges and the cache's volume are not considered; add -n NAMESPACE";

/// Contents of saved objects.
#[derive(Debug)]
pub struct Saved {
    /// The cluster as sizing reads it.
    pub inventory: Inventory,
    /// Nodes that runs hold.
    pub busy: Vec<OtherRun>,
    /// Notes for people on how the objects were read.
    pub notes: Vec<String>,
}

impl Dump {
    /// Reduces the objects to sizing's needs, for a class and a run in a namespace with its cache's claim. The output
    /// of `kubectl` is the same for a kind without objects and for a kind that was not requested. So a missing kind
    /// is an error if the objects refer to it.
    pub fn finish(self, class: &str, namespace: &str, cache: Option<&str>) -> Result<Saved, DumpError> {
        let missing = |kind: &str| !self.found.contains_key(kind);
        if let Some((kind, _)) = kinds::NEEDED.into_iter().find(|(kind, _)| missing(kind)) {
            let why = String::new();
            return Err(DumpError::Missing { kind, why });
        }
        if let Some(pod) = self.claim_user.as_ref().filter(|_| missing("ResourceClaim")) {
            return Err(DumpError::Missing {
                kind: "ResourceClaim",
                why: format!(", and the pod {pod} uses one"),
            });
        }
        let mut notes = kinds::notes(&self.found);
        let needs_namespace = cache.is_some() || !self.quotas.is_empty() || !self.limit_ranges.is_empty();
        if namespace.is_empty() && needs_namespace {
            notes.push(NO_NAMESPACE.to_owned());
        }
        let cache = cache.filter(|_| !namespace.is_empty());
        let cache_volume = cache.and_then(|claim| {
            self.cache_volume(claim, namespace).unwrap_or_else(|note| {
                notes.push(note);
                None
            })
        });
        let named = |known: &DeviceClass| known.metadata.name.as_deref() == Some(class);
        let inventory = Inventory {
            device_class: self.classes.into_iter().find(named).map_or(Seen::Absent, Seen::Present),
            slices: Seen::Present(self.slices),
            taint_rules: Seen::Present(self.taint_rules),
            nodes: Seen::Present(self.nodes),
            pods: Seen::Present(self.pods),
            quotas: Seen::Present(in_namespace(self.quotas, namespace)),
            limit_ranges: Seen::Present(in_namespace(self.limit_ranges, namespace)),
            cache_volume: cache_volume.map_or(Seen::Absent, Seen::Present),
            promises: Seen::Present(self.promises),
            claims: Seen::Present(self.claims),
            naming: Naming::All,
        };
        Ok(Saved {
            inventory,
            busy: self.runs,
            notes,
        })
    }

    /// The volume of the model cache, or what a person should know of it.
    fn cache_volume(&self, claim: &str, namespace: &str) -> Result<Option<CacheVolume>, String> {
        let ours = |known: &&PersistentVolumeClaim| {
            known.metadata.name.as_deref() == Some(claim) && known.namespace().as_deref() == Some(namespace)
        };
        let missing =
            |what: &str| format!("{what} is not in it: the model cache is taken to be within reach of every node");
        let found = self.volume_claims.iter().find(ours);
        let claim = found.ok_or_else(|| missing(&format!("PersistentVolumeClaim {namespace}/{claim}")))?;
        let Some(name) = CacheVolume::name_for(claim) else {
            return Ok(None);
        };
        let mut volumes = self.volumes.iter();
        let volume = volumes.find(|known| known.metadata.name.as_deref() == Some(name));
        let volume = volume.ok_or_else(|| missing(&format!("PersistentVolume {name}")))?;
        Ok(CacheVolume::read(claim, volume))
    }
}

fn in_namespace<K: kube::ResourceExt>(mut objects: Vec<K>, namespace: &str) -> Vec<K> {
    objects.retain(|object| object.namespace().as_deref() == Some(namespace));
    objects
}
