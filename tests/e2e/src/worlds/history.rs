//! What happened in the cluster, in the order of etcd's revisions: seven watches, each of which may miss something while the
//! API server is away.

mod book;

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

use self::book::Book;
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
/// The validations themselves.
pub(super) const OBJECT: (&str, &str, &str, &str) = ("perfvalidation.dev", "v1alpha1", "PerfValidation", VALIDATIONS);
/// Plural of the validations themselves.
pub const VALIDATIONS: &str = "perfvalidations";

/// One version of one object.
#[derive(Clone, Debug)]
pub struct Change {
    /// etcd's revision: the order of everything.
    pub revision: u64,
    /// What it is.
    pub plural: &'static str,
    /// The object as it then was; the history is read ten times a second.
    pub object: Arc<Value>,
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

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
