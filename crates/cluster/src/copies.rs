//! Copies of the pods, Jobs and deployments of runs that wait. A copy counts until the watch brings a change of its object.
//!
//! Most passes over a run that waits change nothing, and each read everything: a run with eight workers made 23 lists of its pods.
//! A pass may rest on copies if it writes at most its heartbeat, the progress of a trial and the uid of its Job, and does at most a
//! probe. Before any other change it reads everything again ([`Cluster::observe_again`](crate::Cluster::observe_again)).
//!
//! The watches bring metadata alone, because a tenant may put the operator's label on pods of megabytes. The
//! [inventory](crate::followed) watches all pods whole, one in memory at a time, while runs wait for a node or for pods. They replace
//! their copies.

mod kept;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::api::PartialObjectMeta;
use kube::core::ResourceExt;
use kube::runtime::watcher::{self, Event};
use parking_lot::Mutex;
use perfval_api::meta::NAME_LABEL;
use perfval_run::Run;
use tokio::time::Instant;

pub use self::kept::Copied;

use self::kept::{KINDS, KeptCopies, KeptRead, KeptRun, version};
use crate::pod_reports::{PodReports, Subjects};

/// Time for which an older state serves where it may, and for Events, which no watch brings.
const RECENT: Duration = Duration::from_mins(1);
/// Time without a pass after which the copies of a run go: a pass may begin after its object is gone.
const ABANDONED: Duration = Duration::from_mins(10);
/// Bytes of all copies, because a tenant may make its pods large.
const MOST: usize = 16 << 20;

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

impl Store {
    fn bytes(&self) -> usize {
        self.runs.values().map(KeptRun::bytes).sum()
    }

    fn is_watched(&self, kind: usize, namespace: &str) -> bool {
        let scopes = [None, Some(namespace.to_owned())];
        scopes.into_iter().any(|scope| self.watches.contains(&(kind, scope)))
    }
}

/// Copies for one pass.
#[derive(Default)]
pub(crate) struct RunCopies {
    /// False for a pass that has to read everything.
    may_serve: bool,
    kinds: [Option<KeptCopies>; KINDS],
    reports: Option<Arc<PodReports>>,
    is_used: AtomicBool,
}

impl RunCopies {
    /// Returns true if the pass may rest on what watches brought.
    pub(crate) fn may_serve(&self) -> bool {
        self.may_serve
    }

    /// Takes note that a part of the pass rests on what a watch brought.
    pub(crate) fn note_use(&self) {
        self.is_used.store(true, Ordering::Relaxed);
    }

    /// Returns true if a part of the pass rests on a copy.
    pub(crate) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// All objects of a kind that is listed.
    pub(crate) fn list<K: Copied>(&self) -> Option<Vec<K>> {
        let kept = self.kinds[K::KIND].as_ref().filter(|kept| kept.changed.is_empty())?;
        let parsed = kept.objects.values().map(|copy| serde_json::from_slice(&copy.json));
        self.used(parsed.collect::<Result<_, _>>().ok())
    }

    /// One object. Its absence is never answered from copies.
    pub(crate) fn get<K: Copied>(&self, name: &str) -> Option<K> {
        if self.has_changed::<K>(name) {
            return None;
        }
        self.recent(name)
    }

    /// Returns true if an object has changed since its copy was made.
    pub(crate) fn has_changed<K: Copied>(&self, name: &str) -> bool {
        let kept = self.kinds[K::KIND].as_ref();
        kept.is_some_and(|kept| kept.changed.iter().any(|changed| changed == name))
    }

    /// One object, possibly older than its last change, but not deleted.
    pub(crate) fn recent<K: Copied>(&self, name: &str) -> Option<K> {
        let kept = self.kinds[K::KIND].as_ref()?;
        let is_old = kept.at.elapsed() >= RECENT && self.has_changed::<K>(name);
        let copy = kept.objects.get(name).filter(|_| !is_old)?;
        self.used(serde_json::from_slice(&copy.json).ok())
    }

    /// One object as it was before its last change, but not deleted. The pass does not rest on it.
    pub(crate) fn last_known<K: Copied>(&self, name: &str) -> Option<K> {
        let copy = self.kinds[K::KIND].as_ref()?.objects.get(name)?;
        serde_json::from_slice(&copy.json).ok()
    }

    /// Reports of an earlier pass that were read for all of these pods.
    pub(crate) fn reports(&self, subjects: &Subjects) -> Option<&PodReports> {
        let reports = self.reports.as_deref();
        self.used(reports.filter(|reports| reports.subjects.include(subjects)))
    }

    fn used<T>(&self, copy: Option<T>) -> Option<T> {
        if copy.is_some() {
            self.note_use();
        }
        copy
    }
}

impl Copies {
    /// Begins a pass over a run that waits: its copies that still count.
    pub(crate) fn begin(&self, run: &Run<'_>) -> RunCopies {
        let mut store = self.0.lock();
        if !store.runs.contains_key(&key(run)) {
            store.runs.retain(|_, kept| kept.begun.elapsed() < ABANDONED);
        }
        let kept = store.runs.entry(key(run)).or_insert_with(|| KeptRun::new(run));
        if kept.uid != run.uid() {
            *kept = KeptRun::new(run);
        }
        kept.begun = Instant::now();
        kept.kinds.iter_mut().for_each(kept::KeptKind::begin);
        let reports = kept.reports.as_ref().filter(|(at, _)| at.elapsed() < RECENT);
        RunCopies {
            may_serve: true,
            kinds: kept.kinds.each_ref().map(kept::KeptKind::copies),
            reports: reports.map(|(_, reports)| reports.clone()),
            is_used: AtomicBool::default(),
        }
    }

    /// Drops the copies of a run that has some, before it reads everything. Its object may be gone by now.
    pub(crate) fn begin_again(&self, run: &Run<'_>) {
        if let Some(kept) = self.0.lock().runs.get_mut(&key(run)) {
            *kept = KeptRun::new(run);
        }
    }

    /// Keeps the objects of a read, unless changes after it may be unknown, or they are large.
    pub(crate) fn keep<'a, K: Copied + 'a>(
        &self,
        run: &Run<'_>,
        version: &str,
        objects: impl IntoIterator<Item = &'a K>,
    ) {
        let key = key(run);
        let is_kept = {
            let store = self.0.lock();
            store.runs.contains_key(&key) && store.is_watched(K::KIND, run.namespace())
        };
        // Before anything is packed: a tenant's pods may have megabytes.
        if !is_kept {
            return;
        }
        let read = KeptRead::pack(run, version, objects);
        let mut store = self.0.lock();
        let is_watched = store.is_watched(K::KIND, run.namespace());
        let others = store.bytes();
        if let Some(kept) = store.runs.get_mut(&key) {
            let kind = &mut kept.kinds[K::KIND];
            let others = others - kind.bytes();
            kind.keep(read.filter(|read| is_watched && others.saturating_add(read.bytes()) <= MOST));
        }
    }

    /// Keeps reports, if the next pass may use them.
    pub(crate) fn keep_reports(&self, run: &Run<'_>, reports: &PodReports) {
        if let Some(kept) = self.0.lock().runs.get_mut(&key(run)) {
            kept.reports = reports
                .may_be_kept()
                .then(|| (Instant::now(), Arc::new(reports.clone())));
        }
    }

    /// Takes an event of a watch over a namespace, or over all.
    pub fn follow<K: Copied>(&self, namespace: Option<&str>, event: &watcher::Result<Event<PartialObjectMeta<K>>>) {
        let mut store = self.0.lock();
        let watch = (K::KIND, namespace.map(str::to_owned));
        match event {
            Ok(event @ (Event::Apply(object) | Event::Delete(object))) => {
                store.watches.insert(watch);
                change(&mut store, object, matches!(event, Event::Delete(_)));
                return;
            }
            Ok(Event::InitApply(object)) => {
                change(&mut store, object, false);
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

    /// Takes an object that a watch brought whole. Such a watch may be behind or miss some: a copy is current only if the metadata
    /// has no later version.
    pub(crate) fn take<K: Copied>(&self, object: &K) {
        let Some((name, namespace)) = object.labels().get(NAME_LABEL).zip(object.namespace()) else {
            return;
        };
        let key = (namespace, name.clone());
        let Some(version) = version(object) else { return };
        let name = object.name_any();
        let is_news = |kept: &KeptRun| kept.kinds[K::KIND].lacks(&name, version);
        if !self.0.lock().runs.get(&key).is_some_and(is_news) {
            return;
        }
        // Without the lock: a pod may have 1.5 MB.
        let Some(json) = kept::pack(object) else { return };
        let mut store = self.0.lock();
        let room = MOST.saturating_sub(store.bytes());
        if let Some(kept) = store.runs.get_mut(&key) {
            kept.kinds[K::KIND].take(&name, version, json, room);
        }
    }

    /// Keeps the copies of these objects alone, known by their uids.
    pub fn retain(&self, uids: &HashSet<String>) {
        self.0.lock().runs.retain(|_, kept| uids.contains(&kept.uid));
    }

    /// Drops the copies of an object.
    pub fn forget_object(&self, object: &impl ResourceExt) {
        let key = (object.namespace().unwrap_or_default(), object.name_any());
        self.0.lock().runs.remove(&key);
    }
}

fn key(run: &Run<'_>) -> (String, String) {
    (run.namespace().to_owned(), run.name().to_owned())
}

/// Takes note of a change: for the run that the object belongs to now, and for any with a copy of it.
fn change<K: Copied>(store: &mut Store, object: &PartialObjectMeta<K>, is_gone: bool) {
    let (name, labels) = (object.name_any(), object.labels());
    let Some(namespace) = object.namespace() else {
        return;
    };
    for ((of, run), kept) in &mut store.runs {
        let kind = &mut kept.kinds[K::KIND];
        if *of == namespace && (labels.get(NAME_LABEL) == Some(run) || kind.has(&name)) {
            kind.change(name.clone(), version(object), is_gone);
        }
    }
}

#[cfg(test)]
mod tests;
