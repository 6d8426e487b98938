//! Copies of one run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::core::{DynamicObject, Resource, ResourceExt};
use perfval_api::meta::NAME_LABEL;
use perfval_run::Run;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::pod_reports::PodReports;

/// Time for which copies count after their read: a watch whose connection is silently dead is given up after this time.
pub(super) const FRESH: Duration = Duration::from_secs(90);
/// Bytes of the copies of one kind of a run.
pub(super) const MOST_OF_A_KIND: usize = 256 << 10;
/// Objects whose changes are remembered for one kind of a run. A tenant may put the operator's label on any number.
const MOST_CHANGED: usize = 128;

/// A kind with copies.
pub trait Copied: Resource + Clone + Serialize + DeserializeOwned {
    /// Index of the kind.
    const KIND: usize;
}

impl Copied for Pod {
    const KIND: usize = 0;
}

impl Copied for Job {
    const KIND: usize = 1;
}

impl Copied for DynamicObject {
    const KIND: usize = 2;
}

pub(super) const KINDS: usize = 3;

pub(super) struct KeptRun {
    pub(super) uid: String,
    /// Beginning of its last pass.
    pub(super) begun: Instant,
    pub(super) kinds: [KeptKind; KINDS],
    pub(super) reports: Option<(Instant, Arc<PodReports>)>,
}

impl KeptRun {
    pub(super) fn new(run: &Run<'_>) -> Self {
        Self {
            uid: run.uid().to_owned(),
            begun: Instant::now(),
            kinds: Default::default(),
            reports: None,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.kinds.iter().map(KeptKind::bytes).sum()
    }
}

#[derive(Default)]
pub(super) struct KeptKind {
    read: Option<KeptRead>,
    /// Objects that changed since the copies were made, with the version of their last change.
    changed: BTreeMap<String, u64>,
    /// True if changes may be unknown, so that a read under way is not kept.
    is_lost: bool,
}

impl KeptKind {
    /// Begins a pass: a read from now on sees each change before it.
    pub(super) fn begin(&mut self) {
        // Old copies would take room from the next read.
        self.read.take_if(|read| read.at.elapsed() >= FRESH);
        if self.read.is_none() {
            self.changed.clear();
            self.is_lost = false;
        }
    }

    /// Drops the copies, and the result of a read under way.
    pub(super) fn invalidate(&mut self) {
        *self = Self {
            is_lost: true,
            ..Self::default()
        };
    }

    /// Keeps a read, unless changes after it may be unknown. `None`: it cannot be kept, and the older copies go too.
    pub(super) fn keep(&mut self, read: Option<KeptRead>) {
        if let Some(read) = &read {
            self.changed.retain(|_, version| *version > read.version);
            // Objects that a watch brought whole while the read was under way.
            let newer = self.read.iter().flat_map(|last| last.objects.iter());
            for (name, copy) in newer.filter(|(_, copy)| copy.version > read.version) {
                self.changed.entry(name.clone()).or_insert(copy.version);
            }
        }
        self.read = read.filter(|_| !self.is_lost);
    }

    /// Takes note of a change. `None`: a version that cannot be compared.
    pub(super) fn change(&mut self, name: String, version: Option<u64>, is_gone: bool) {
        let Some(version) = version else {
            return self.invalidate();
        };
        let is_known = |read: &KeptRead| version <= read.known_version(&name);
        if self.is_lost || self.read.as_ref().is_some_and(is_known) {
            return;
        }
        if let Some(read) = self.read.as_mut().filter(|_| is_gone) {
            Arc::make_mut(&mut read.objects).remove(&name);
        }
        let last = self.changed.entry(name).or_default();
        *last = version.max(*last);
        if self.changed.len() > MOST_CHANGED {
            self.invalidate();
        }
    }

    /// Returns true if there are copies, and this version of an object is newer.
    pub(super) fn lacks(&self, name: &str, version: u64) -> bool {
        let is_newer = |read: &KeptRead| version > read.known_version(name);
        self.read.as_ref().is_some_and(is_newer)
    }

    /// Takes an object that a watch brought whole. `room`: bytes for its copy.
    pub(super) fn take(&mut self, name: &str, version: u64, json: Vec<u8>, room: usize) {
        let is_newer = |read: &&mut KeptRead| version > read.known_version(name);
        let Some(read) = self.read.as_mut().filter(is_newer) else {
            return;
        };
        let replaced = read.objects.get(name).map_or(0, |copy| copy.json.len());
        let room = room.min(MOST_OF_A_KIND.saturating_sub(read.bytes()));
        // Without room it stays a change.
        if json.len() > room.saturating_add(replaced) {
            return;
        }
        Arc::make_mut(&mut read.objects).insert(
            name.to_owned(),
            Copy {
                version,
                json: json.into(),
            },
        );
        if self.changed.get(name).is_some_and(|changed| *changed <= version) {
            self.changed.remove(name);
        }
    }

    /// Returns true if there is a copy of an object, or a change of it.
    pub(super) fn has(&self, name: &str) -> bool {
        let is_copied = |read: &KeptRead| read.objects.contains_key(name);
        self.changed.contains_key(name) || self.read.as_ref().is_some_and(is_copied)
    }

    pub(super) fn bytes(&self) -> usize {
        self.read.as_ref().map_or(0, KeptRead::bytes)
    }

    /// The copies, with the objects that changed since.
    pub(super) fn copies(&self) -> Option<KeptCopies> {
        let read = self.read.as_ref()?;
        Some(KeptCopies {
            at: read.at,
            objects: read.objects.clone(),
            changed: self.changed.keys().cloned().collect(),
        })
    }
}

/// Objects of one read, and those that a watch brought whole since.
pub(super) struct KeptRead {
    at: Instant,
    version: u64,
    objects: Arc<BTreeMap<String, Copy>>,
}

/// One object as JSON.
#[derive(Clone)]
pub(super) struct Copy {
    version: u64,
    pub(super) json: Arc<[u8]>,
}

impl KeptRead {
    /// Packs objects; `None` if they are large, no watch shows the changes of one, or a version cannot be compared.
    pub(super) fn pack<'a, K: Copied + 'a>(
        run: &Run<'_>,
        read_version: &str,
        objects: impl IntoIterator<Item = &'a K>,
    ) -> Option<Self> {
        let mut room = MOST_OF_A_KIND;
        let packed = objects.into_iter().map(|object| {
            let is_watched = object.labels().get(NAME_LABEL).is_some_and(|name| name == run.name());
            let json = pack(object).filter(|_| is_watched)?;
            room = room.checked_sub(json.len())?;
            let version = version(object)?;
            Some((
                object.name_any(),
                Copy {
                    version,
                    json: json.into(),
                },
            ))
        });
        let objects = Arc::new(packed.collect::<Option<_>>()?);
        Some(Self {
            at: Instant::now(),
            version: read_version.parse().ok()?,
            objects,
        })
    }

    /// Version of an object that needs no newer copy. An object without a copy did not exist at the version of the read.
    fn known_version(&self, name: &str) -> u64 {
        let copy = self.objects.get(name).map_or(0, |copy| copy.version);
        copy.max(self.version)
    }

    pub(super) fn bytes(&self) -> usize {
        self.objects.values().map(|copy| copy.json.len()).sum()
    }
}

/// Copies of one kind for one pass.
pub(super) struct KeptCopies {
    pub(super) at: Instant,
    pub(super) objects: Arc<BTreeMap<String, Copy>>,
    /// Names of objects that changed since.
    pub(super) changed: Vec<String>,
}

/// Version of an object; `None` if it is no number, so that it cannot be compared.
pub(super) fn version(object: &impl ResourceExt) -> Option<u64> {
    object.resource_version()?.parse().ok()
}

/// JSON of an object without its managed fields.
pub(super) fn pack<K: Copied>(object: &K) -> Option<Vec<u8>> {
    if object.managed_fields().is_empty() {
        return serde_json::to_vec(object).ok();
    }
    let mut object = object.clone();
    object.managed_fields_mut().clear();
    serde_json::to_vec(&object).ok()
}
