//! Copies of the pods, Jobs and deployments of runs that wait. The copies of a kind count until the watch brings a change.
//!
//! Most passes over a run that waits change nothing, and each read everything: a run with eight workers made 23 lists of its pods.
//! A pass may rest on copies if it changes nothing. Before it changes anything, it reads everything again
//! ([`Cluster::observe_again`](crate::Cluster::observe_again)).
//!
//! The watches bring metadata alone. A tenant may put the operator's label on pods of megabytes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::PartialObjectMeta;
use kube::core::{DynamicObject, Resource, ResourceExt};
use kube::runtime::watcher::{self, Event};
use perfval_api::meta::NAME_LABEL;
use perfval_run::Run;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::pod_reports::{PodReports, Subjects};

/// Time for which copies count after their read. A silent watch is given up after the same time.
const FRESH: Duration = Duration::from_secs(45);
/// The same for Events, the node and refusals, which no watch brings.
const REPORTS_FRESH: Duration = Duration::from_secs(25);
/// Bytes of all copies, because a tenant may make its pods large.
const MOST: usize = 16 << 20;
/// Bytes of the copies of one kind of a run.
const MOST_OF_A_KIND: usize = 256 << 10;

/// A kind with copies.
pub trait Copied: Resource + Clone + Serialize + DeserializeOwned {
    /// Index of the kind.
    const KIND: usize;
    /// True if a run reads all of its objects together: a new one belongs to them.
    const IS_LISTED: bool;
}

impl Copied for Pod {
    const KIND: usize = 0;
    const IS_LISTED: bool = true;
}

impl Copied for Job {
    const KIND: usize = 1;
    const IS_LISTED: bool = false;
}

impl Copied for DynamicObject {
    const KIND: usize = 2;
    const IS_LISTED: bool = false;
}

const KINDS: usize = 3;

/// Copies of all runs that wait.
#[derive(Clone, Default)]
pub struct Copies(Arc<Mutex<Store>>);

#[derive(Default)]
struct Store {
    /// By namespace and name of the `PerfValidation`.
    runs: HashMap<(String, String), KeptRun>,
    /// Watches that work: kind and namespace, or all namespaces.
    watches: HashSet<(usize, Option<String>)>,
}

struct KeptRun {
    uid: String,
    kinds: [KeptKind; KINDS],
    reports: Option<(Instant, PodReports)>,
}

#[derive(Default)]
struct KeptKind {
    /// Version of the last change since the reads of a pass began.
    changed: u64,
    read: Option<KeptRead>,
}

/// Objects of one read, as JSON.
#[derive(Clone)]
struct KeptRead {
    at: Instant,
    version: u64,
    objects: Arc<BTreeMap<String, Box<[u8]>>>,
}

impl KeptRead {
    fn bytes(&self) -> usize {
        self.objects.values().map(|object| object.len()).sum()
    }
}

impl Store {
    fn bytes(&self) -> usize {
        let kinds = self.runs.values().flat_map(|run| &run.kinds);
        kinds.filter_map(|kind| kind.read.as_ref()).map(KeptRead::bytes).sum()
    }

    fn is_watched(&self, kind: usize, namespace: &str) -> bool {
        let scopes = [None, Some(namespace.to_owned())];
        scopes.into_iter().any(|scope| self.watches.contains(&(kind, scope)))
    }
}

impl KeptRun {
    fn new(run: &Run<'_>) -> Self {
        Self {
            uid: run.uid().to_owned(),
            kinds: Default::default(),
            reports: None,
        }
    }
}

impl KeptKind {
    /// Drops the copies, and the result of a read under way.
    fn invalidate(&mut self) {
        (self.changed, self.read) = (u64::MAX, None);
    }
}

/// Copies for one pass.
#[derive(Clone, Default)]
pub(crate) struct RunCopies {
    kinds: [Option<KeptRead>; KINDS],
    reports: Option<PodReports>,
}

impl RunCopies {
    /// Returns true if there is no copy of any object.
    pub(crate) fn is_empty(&self) -> bool {
        self.kinds.iter().all(Option::is_none)
    }

    /// All objects of a kind that is listed.
    pub(crate) fn list<K: Copied>(&self) -> Option<Vec<K>> {
        let objects = self.kinds[K::KIND].as_ref()?.objects.values();
        let parsed = objects.map(|object| serde_json::from_slice(object));
        parsed.collect::<Result<_, _>>().ok()
    }

    /// One object. Its absence is never answered from copies.
    pub(crate) fn get<K: Copied>(&self, name: &str) -> Option<K> {
        let object = self.kinds[K::KIND].as_ref()?.objects.get(name)?;
        serde_json::from_slice(object).ok()
    }

    /// Reports of an earlier pass that were read for all of these pods.
    pub(crate) fn reports(&self, subjects: &Subjects) -> Option<&PodReports> {
        self.reports
            .as_ref()
            .filter(|reports| reports.subjects.include(subjects))
    }
}

impl Copies {
    /// The copies of a run that still count.
    pub(crate) fn current(&self, run: &Run<'_>) -> RunCopies {
        let store = self.lock();
        let Some(kept) = store.runs.get(&key(run)).filter(|kept| kept.uid == run.uid()) else {
            return RunCopies::default();
        };
        let kinds = kept.kinds.each_ref().map(|kind| {
            let read = kind.read.as_ref().filter(|read| read.at.elapsed() < FRESH);
            read.cloned()
        });
        let reports = kept.reports.as_ref().filter(|(at, _)| at.elapsed() < REPORTS_FRESH);
        RunCopies {
            kinds,
            reports: reports.map(|(_, reports)| reports.clone()),
        }
    }

    /// Starts new copies of a run, before a pass reads everything.
    pub(crate) fn begin(&self, run: &Run<'_>) {
        self.lock().runs.insert(key(run), KeptRun::new(run));
    }

    /// Starts new copies of a run that has some. Its object may be gone by now.
    pub(crate) fn begin_again(&self, run: &Run<'_>) {
        if let Some(kept) = self.lock().runs.get_mut(&key(run)) {
            *kept = KeptRun::new(run);
        }
    }

    /// Keeps the objects of a read, unless one changed meanwhile, no watch would show its next change, or they are large.
    pub(crate) fn keep<'a, K: Copied + 'a>(
        &self,
        run: &Run<'_>,
        version: &str,
        objects: impl IntoIterator<Item = &'a K>,
    ) {
        let key = key(run);
        let is_kept = {
            let store = self.lock();
            store.runs.contains_key(&key) && store.is_watched(K::KIND, run.namespace())
        };
        // Before anything is packed: a tenant's pods may have megabytes.
        if !is_kept {
            return;
        }
        let (Some(objects), Ok(version)) = (pack_all(run, objects), version.parse()) else {
            return;
        };
        let read = KeptRead {
            at: Instant::now(),
            version,
            objects: Arc::new(objects),
        };
        let mut store = self.lock();
        let fits = store.bytes().saturating_add(read.bytes()) <= MOST;
        let is_kept = fits && store.is_watched(K::KIND, run.namespace());
        if let Some(kept) = store.runs.get_mut(&key).filter(|_| is_kept) {
            let kind = &mut kept.kinds[K::KIND];
            kind.read = Some(read).filter(|_| kind.changed <= version);
        }
    }

    /// Keeps reports, if the next pass may use them.
    pub(crate) fn keep_reports(&self, run: &Run<'_>, reports: &PodReports) {
        if let Some(kept) = self.lock().runs.get_mut(&key(run)) {
            kept.reports = reports.may_be_kept().then(|| (Instant::now(), reports.clone()));
        }
    }

    /// Takes an event of a watch over a namespace, or over all.
    pub fn follow<K: Copied>(&self, namespace: Option<&str>, event: &watcher::Result<Event<PartialObjectMeta<K>>>) {
        let mut store = self.lock();
        let watch = (K::KIND, namespace.map(str::to_owned));
        match event {
            Ok(Event::Apply(object) | Event::Delete(object)) => {
                store.watches.insert(watch);
                change(&mut store, object);
                return;
            }
            Ok(Event::InitApply(object)) => {
                change(&mut store, object);
                return;
            }
            Ok(Event::InitDone) => {
                store.watches.insert(watch);
            }
            Ok(Event::Init) | Err(_) => {
                store.watches.remove(&watch);
            }
        }
        // Changes before it may be unknown.
        for ((of, _), kept) in &mut store.runs {
            if namespace.is_none_or(|namespace| namespace == of) {
                kept.kinds[K::KIND].invalidate();
            }
        }
    }

    /// Drops the copies of a run.
    pub(crate) fn forget(&self, run: &Run<'_>) {
        self.lock().runs.remove(&key(run));
    }

    /// Keeps the copies of these objects alone, known by their uids.
    pub fn retain(&self, uids: &HashSet<String>) {
        self.lock().runs.retain(|_, kept| uids.contains(&kept.uid));
    }

    /// Drops the copies of an object that is gone.
    pub fn forget_object(&self, object: &impl ResourceExt) {
        let key = (object.namespace().unwrap_or_default(), object.name_any());
        self.lock().runs.remove(&key);
    }

    fn lock(&self) -> MutexGuard<'_, Store> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(run: &Run<'_>) -> (String, String) {
    (run.namespace().to_owned(), run.name().to_owned())
}

/// Drops copies that a change has made old: those of the run that the object belongs to now, and any of the object.
fn change<K: Copied>(store: &mut Store, object: &PartialObjectMeta<K>) {
    let (name, labels) = (object.name_any(), object.labels());
    let Some(namespace) = object.namespace() else {
        return;
    };
    // A version that is no number cannot be compared.
    let version = object.resource_version().and_then(|version| version.parse().ok());
    let version = version.unwrap_or(u64::MAX);
    for ((of, run), kept) in &mut store.runs {
        let kind = &mut kept.kinds[K::KIND];
        let is_copied = || kind.read.as_ref().is_some_and(|read| read.objects.contains_key(&name));
        let is_of_run = labels.get(NAME_LABEL) == Some(run);
        // The Job of another trial is no change, unless the read of this one is under way.
        let concerns = is_of_run && (K::IS_LISTED || kind.read.is_none());
        if *of == namespace && (concerns || is_copied()) {
            kind.changed = kind.changed.max(version);
            kind.read.take_if(|read| read.version < version);
        }
    }
}

/// JSON of objects by name; `None` if they are large, or no watch shows the changes of one.
fn pack_all<'a, K: Copied + 'a>(
    run: &Run<'_>,
    objects: impl IntoIterator<Item = &'a K>,
) -> Option<BTreeMap<String, Box<[u8]>>> {
    let mut room = MOST_OF_A_KIND;
    let packed = objects.into_iter().map(|object| {
        let is_watched = object.labels().get(NAME_LABEL).is_some_and(|name| name == run.name());
        let packed = pack(object).filter(|_| is_watched)?;
        room = room.checked_sub(packed.len())?;
        Some((object.name_any(), packed))
    });
    packed.collect()
}

fn pack<K: Copied>(object: &K) -> Option<Box<[u8]>> {
    let packed = if object.managed_fields().is_empty() {
        serde_json::to_vec(object)
    } else {
        let mut object = object.clone();
        object.managed_fields_mut().clear();
        serde_json::to_vec(&object)
    };
    Some(packed.ok()?.into_boxed_slice())
}

#[cfg(test)]
mod tests;
