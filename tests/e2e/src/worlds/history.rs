//! What happened in the cluster, in the order of etcd's revisions: seven watches, each of which may miss something while the
//! API server is away.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use perfval_api::meta::NAME_LABEL;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::lab::eventually;

/// Objects that a run creates and removes: group, version, kind, plural.
pub(super) const CHILDREN: [(&str, &str, &str, &str); 6] = [
    ("batch", "v1", "Job", "jobs"),
    (
        "nvidia.com",
        "v1beta1",
        "DynamoGraphDeployment",
        "dynamographdeployments",
    ),
    ("", "v1", "Service", "services"),
    (
        "resource.k8s.io",
        "v1",
        "ResourceClaimTemplate",
        "resourceclaimtemplates",
    ),
    ("", "v1", "Pod", "pods"),
    ("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims"),
];
const OBJECT: (&str, &str, &str, &str) = ("perfvalidation.dev", "v1alpha1", "PerfValidation", VALIDATIONS);
/// Plural of the validations themselves.
pub const VALIDATIONS: &str = "perfvalidations";

/// One version of one object.
#[derive(Clone, Debug)]
pub struct Change {
    /// etcd's revision: the order of everything.
    pub revision: u64,
    /// What it is.
    pub plural: &'static str,
    /// The object as it then was.
    pub object: Value,
    /// Whether this is its end.
    pub gone: bool,
    /// Whether versions before this one may have been missed.
    pub after_gap: bool,
}

impl Change {
    /// A text of the metadata.
    pub fn metadata(&self, field: &str) -> &str {
        self.object["metadata"][field].as_str().unwrap_or_default()
    }

    /// Namespace and name, of its kind.
    pub fn named(&self) -> String {
        format!(
            "{} {}/{}",
            self.plural,
            self.metadata("namespace"),
            self.metadata("name")
        )
    }
}

/// Everything that was seen, as it comes.
#[derive(Clone)]
pub struct History {
    seen: Arc<Mutex<Vec<Change>>>,
    _watches: Arc<JoinSet<()>>,
}

impl History {
    /// Watches from now on.
    ///
    /// # Panics
    /// If the watches do not begin.
    pub async fn begin(client: &Client) -> Self {
        let seen = Arc::<Mutex<Vec<Change>>>::default();
        let begun = Arc::<Mutex<BTreeSet<&'static str>>>::default();
        let mut watches = JoinSet::new();
        for kind in CHILDREN.into_iter().chain([OBJECT]) {
            let (seen, begun) = (Arc::clone(&seen), Arc::clone(&begun));
            watches.spawn(watch(client.clone(), kind, seen, begun));
        }
        eventually("all watches", Duration::from_mins(1), || async {
            let count = locked(&begun).len();
            if count == CHILDREN.len() + 1 {
                Ok(())
            } else {
                Err(count)
            }
        })
        .await;
        Self {
            seen,
            _watches: Arc::new(watches),
        }
    }

    /// What was seen so far, in order, of a namespace or of all of them.
    pub fn changes(&self, namespace: Option<&str>) -> Vec<Change> {
        let is_meant = |change: &&Change| namespace.is_none_or(|namespace| change.metadata("namespace") == namespace);
        let mut changes: Vec<Change> = locked(&self.seen).iter().filter(is_meant).cloned().collect();
        changes.sort_by_key(|change| change.revision);
        changes
    }

    /// What is there now in a namespace, as far as was seen.
    pub fn present(&self, namespace: &str) -> Vec<Change> {
        let mut present = BTreeMap::new();
        for change in self.changes(Some(namespace)) {
            let name = change.named();
            if change.gone {
                present.remove(&name);
            } else {
                present.insert(name, change);
            }
        }
        present.into_values().collect()
    }
}

pub(super) fn resource((group, version, kind, plural): (&str, &str, &str, &str)) -> ApiResource {
    let api_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version,
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

async fn watch(
    client: Client,
    kind: (&'static str, &'static str, &'static str, &'static str),
    seen: Arc<Mutex<Vec<Change>>>,
    begun: Arc<Mutex<BTreeSet<&'static str>>>,
) {
    let plural = kind.3;
    let config = if plural == VALIDATIONS {
        watcher::Config::default()
    } else {
        watcher::Config::default().labels(NAME_LABEL)
    };
    let api: Api<DynamicObject> = Api::all_with(client, &resource(kind));
    let mut events = Box::pin(watcher(api, config).default_backoff());
    let mut book = Book::new(plural);
    while let Some(event) = events.next().await {
        // An error is followed by another attempt, and by a list if something may have been missed.
        let Ok(event) = event else { continue };
        if matches!(event, watcher::Event::InitDone) {
            locked(&begun).insert(plural);
        }
        let mut new = book.take(event);
        locked(&seen).append(&mut new);
    }
}

/// What one watch has brought, to tell what went while it was blind.
struct Book {
    plural: &'static str,
    known: BTreeMap<String, Change>,
    listed: BTreeSet<String>,
    lists: usize,
}

impl Book {
    fn new(plural: &'static str) -> Self {
        Self {
            plural,
            known: BTreeMap::new(),
            listed: BTreeSet::new(),
            lists: 0,
        }
    }

    fn take(&mut self, event: watcher::Event<DynamicObject>) -> Vec<Change> {
        match event {
            watcher::Event::Init => {
                self.listed.clear();
                self.lists += 1;
                Vec::new()
            }
            watcher::Event::InitApply(object) => {
                let change = self.change(&object, false, true);
                self.listed.insert(uid(&change));
                self.note(change)
            }
            watcher::Event::Apply(object) => {
                let change = self.change(&object, false, false);
                self.note(change)
            }
            watcher::Event::Delete(object) => {
                let change = self.change(&object, true, false);
                self.known.remove(&uid(&change));
                vec![change]
            }
            watcher::Event::InitDone => self.missing(),
        }
    }

    fn note(&mut self, change: Change) -> Vec<Change> {
        let before = self.known.insert(uid(&change), change.clone());
        let is_old = before.is_some_and(|before| before.revision == change.revision);
        if is_old { Vec::new() } else { vec![change] }
    }

    /// What is not in a list has gone at some time since it was last seen: the earliest one convicts nobody of anything.
    fn missing(&mut self) -> Vec<Change> {
        let (stay, gone): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut self.known)
            .into_iter()
            .partition(|(uid, _)| self.listed.contains(uid));
        self.known = stay;
        let end = |change: Change| Change {
            gone: true,
            after_gap: true,
            ..change
        };
        gone.into_values().map(end).collect()
    }

    fn change(&self, object: &DynamicObject, gone: bool, listed: bool) -> Change {
        let mut object = serde_json::to_value(object).unwrap_or_default();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        let revision = object["metadata"]["resourceVersion"].as_str();
        Change {
            revision: revision.and_then(|number| number.parse().ok()).unwrap_or_default(),
            plural: self.plural,
            object,
            gone,
            after_gap: listed,
        }
    }
}

fn uid(change: &Change) -> String {
    change.metadata("uid").to_owned()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(uid: &str, revision: u64) -> DynamicObject {
        let metadata = json!({"uid": uid, "name": uid, "namespace": "w", "resourceVersion": revision.to_string()});
        serde_json::from_value(json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})).expect("an object")
    }

    #[test]
    fn what_a_list_no_longer_has_went_right_after_it_was_seen_last() {
        use watcher::Event as E;
        let mut book = Book::new("pods");
        let events = [
            E::Init,
            E::InitApply(object("a", 3)),
            E::InitDone,
            E::Apply(object("b", 5)),
            E::Apply(object("a", 6)),
            E::Init,
            E::InitApply(object("b", 5)),
            E::InitApply(object("c", 9)),
            E::InitDone,
            E::Delete(object("b", 12)),
        ];
        let told: Vec<(String, u64, bool, bool)> = events
            .into_iter()
            .flat_map(|event| book.take(event))
            .map(|change| (uid(&change), change.revision, change.gone, change.after_gap))
            .collect();
        let expected = [
            ("a", 3, false, true),
            ("b", 5, false, false),
            ("a", 6, false, false),
            ("c", 9, false, true),
            ("a", 6, true, true),
            ("b", 12, true, false),
        ];
        let expected = expected.map(|(uid, revision, gone, gap)| (uid.to_owned(), revision, gone, gap));
        assert_eq!(told, expected);
    }
}
