//! The validations that wait: how they come, how soon each says something, and how they go.

use std::time::{Duration, Instant};

use chrono::Utc;
use futures::{TryStreamExt as _, stream};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use perfval_api::{PerfValidation, Phase, Reason};
use perfval_e2e::{Audit, Lab, leftovers_of_all};
use serde_json::{Value, json};

use crate::reached::Reached;
use crate::{LIMIT, Outcome};

/// Writes under way at once.
const AT_ONCE: usize = 16;
/// How often what has no watch is looked at.
const POLL: Duration = Duration::from_millis(500);
/// Every new object has a word of the operator within this time; until then it has that of the CRD's default.
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

/// Creates as many objects as fast as the API server takes them, and waits until each has a phase and a message. How soon
/// is read from the audit log: a watch of so many changes would lag behind them.
pub async fn create(
    lab: &Lab,
    api: &Api<PerfValidation>,
    namespace: &str,
    manifest: &Value,
    names: Vec<String>,
) -> Outcome<Greeted> {
    let (since, began, all) = (Utc::now(), Instant::now(), names.len());
    stream::iter(names.iter().map(Ok))
        .try_for_each_concurrent(AT_ONCE, |name| async move {
            let mut manifest = manifest.clone();
            manifest["metadata"]["name"] = json!(name);
            api.create(&PostParams::default(), &serde_json::from_value(manifest)?)
                .await?;
            Ok::<_, Box<dyn std::error::Error>>(())
        })
        .await?;
    loop {
        let objects = api.list(&ListParams::default()).await?.items;
        let greeted = objects.iter().filter(|object| speaks(object)).count();
        if greeted == objects.len() || began.elapsed() > LIMIT {
            break;
        }
        tokio::time::sleep(POLL).await;
    }
    let mut delays = Audit::first_statuses(lab, namespace, since).await;
    delays.retain(|name, _| names.contains(name));
    let mut delays: Vec<Duration> = delays.into_values().collect();
    delays.sort();
    Ok(Greeted {
        all,
        soon: delays.iter().filter(|delay| **delay <= GREETING).count(),
        ever: delays.len(),
        median: delays.get(delays.len() / 2).map(Duration::as_secs_f64),
        slowest: delays.last().map(Duration::as_secs_f64),
    })
}

fn speaks(object: &PerfValidation) -> bool {
    let status = object.status.as_ref();
    let status = status.filter(|status| status.is_of_an_operator());
    status.is_some_and(|status| status.phase.is_some() && status.message.as_ref().is_some_and(|text| !text.is_empty()))
}

/// Waits until the planner has said to each object what it waits for.
pub async fn all_queued(api: &Api<PerfValidation>) -> Outcome<Reached> {
    let began = Instant::now();
    loop {
        let objects = api.list(&ListParams::default()).await?.items;
        let queued = objects.iter().filter(|object| is_queued(object)).count();
        if queued == objects.len() {
            return Ok(Reached::After(began.elapsed().as_secs_f64()));
        }
        if began.elapsed() > LIMIT {
            return Ok(Reached::Only(queued, objects.len()));
        }
        tokio::time::sleep(POLL * 4).await;
    }
}

fn is_queued(object: &PerfValidation) -> bool {
    let arrived = Reason::Running.as_str();
    object.status.as_ref().is_some_and(|status| {
        status.phase == Some(Phase::Sizing) && status.reason.as_deref().is_some_and(|reason| reason != arrived)
    })
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
