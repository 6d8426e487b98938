//! The validations that wait: how they come, how soon each says something, and how they go.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt as _};
use perfval_api::PerfValidation;
use perfval_e2e::{Lab, leftovers_of_all};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::reached::Reached;
use crate::{LIMIT, Outcome};

/// Writes under way at once.
const AT_ONCE: usize = 16;
/// How often what has no watch is looked at.
const POLL: Duration = Duration::from_millis(500);
/// Every new object says something within this (issue 12).
pub const GREETING: Duration = Duration::from_secs(2);

/// How soon new objects had a phase and a message.
#[derive(Default)]
pub struct Greeted {
    /// Objects.
    pub all: usize,
    /// Objects within [`GREETING`].
    pub soon: usize,
    /// Objects within the limit of the wait.
    pub ever: usize,
    /// Of these (s).
    pub median: Option<f64>,
    /// Of these (s).
    pub slowest: Option<f64>,
}

/// When each object was first seen with a phase and a message.
type Seen = Arc<Mutex<BTreeMap<String, Instant>>>;

/// Creates as many objects as fast as the API server takes them, and watches until each has a phase and a message.
pub async fn create(api: &Api<PerfValidation>, manifest: &Value, names: Vec<String>) -> Outcome<Greeted> {
    let seen = Seen::default();
    let watch = Watch(tokio::spawn(watch(api.clone(), seen.clone())));
    let created: Vec<(String, Instant)> = stream::iter(names.into_iter().map(Ok))
        .map_ok(|name: String| async move {
            let mut manifest = manifest.clone();
            manifest["metadata"]["name"] = json!(name);
            api.create(&PostParams::default(), &serde_json::from_value(manifest)?)
                .await?;
            Ok::<_, Box<dyn std::error::Error>>((name, Instant::now()))
        })
        .try_buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    let began = Instant::now();
    let greeted = || {
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let delays = created
            .iter()
            .filter_map(|(name, at)| Some(seen.get(name)?.saturating_duration_since(*at)));
        delays.collect::<Vec<_>>()
    };
    while greeted().len() < created.len() && began.elapsed() < LIMIT {
        tokio::time::sleep(POLL).await;
    }
    drop(watch);
    let mut delays = greeted();
    delays.sort();
    Ok(Greeted {
        all: created.len(),
        soon: delays.iter().filter(|delay| **delay <= GREETING).count(),
        ever: delays.len(),
        median: delays.get(delays.len() / 2).map(Duration::as_secs_f64),
        slowest: delays.last().map(Duration::as_secs_f64),
    })
}

/// A watch ends with this value: what it costs the API server must not count as a cost of waiting.
struct Watch(JoinHandle<()>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn watch(api: Api<PerfValidation>, seen: Seen) {
    loop {
        // A watch from the start of history brings all objects again: nothing is missed when one breaks.
        let Ok(events) = api.watch(&WatchParams::default(), "0").await else {
            tokio::time::sleep(POLL).await;
            continue;
        };
        let mut events = std::pin::pin!(events);
        while let Some(Ok(event)) = events.next().await {
            let (WatchEvent::Added(object) | WatchEvent::Modified(object)) = event else {
                continue;
            };
            if speaks(&object) {
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen.entry(object.name_any()).or_insert_with(Instant::now);
            }
        }
    }
}

fn speaks(object: &PerfValidation) -> bool {
    let status = object.status.as_ref();
    status.is_some_and(|status| status.phase.is_some() && status.message.as_ref().is_some_and(|text| !text.is_empty()))
}

/// Deletes every validation of the namespace and waits until they are gone and nothing of their runs is left.
pub async fn delete(lab: &Lab, api: &Api<PerfValidation>, namespace: &str) -> Outcome<Reached> {
    let began = Instant::now();
    let before = count(api).await?;
    api.delete_collection(&DeleteParams::default(), &ListParams::default())
        .await?;
    loop {
        let left = count(api).await?;
        if left == 0 && leftovers_of_all(lab, namespace).await.is_empty() {
            return Ok(Reached::After(began.elapsed().as_secs_f64()));
        }
        if began.elapsed() > LIMIT {
            return Ok(Reached::Only(before - left, before));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Takes the finalizers away, for an operator that does not come to it. It must not run any more.
pub async fn abandon(api: &Api<PerfValidation>) -> Outcome<()> {
    let objects = api.list_metadata(&ListParams::default()).await?;
    stream::iter(objects.items.into_iter().map(Ok))
        .try_for_each_concurrent(AT_ONCE, |object| async move {
            let bare = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            match api
                .patch_metadata(&object.name_any(), &PatchParams::default(), &bare)
                .await
            {
                Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
                other => other.map(|_| ()),
            }
        })
        .await?;
    Ok(())
}

async fn count(api: &Api<PerfValidation>) -> Outcome<usize> {
    Ok(api.list_metadata(&ListParams::default()).await?.items.len())
}
