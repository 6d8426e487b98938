//! Tasks of the leader about many nodes.

mod baseline;
mod fingerprint;
pub(crate) mod measured;
mod memory;
mod nodes;
mod policy;
mod survey;

use std::fmt::Debug;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt as _};
use kube::api::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::{store, store::Writer};
use kube::runtime::watcher::watcher;
use kube::{Client, Resource};
use perfval_api::fleet::{NodePerformance, PerfBaseline, PerfValidationPolicy};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::context::Context;
use crate::streams;

/// Keeps the `NodePerformance`s up to date and follows policies and baselines for as long as this process leads. Only an operator of
/// all namespaces does: the objects are cluster-wide.
pub async fn work_until(context: Arc<Context>, client: Client, stop: CancellationToken) {
    if !context.records_nodes() {
        return;
    }
    let (measured, writer) = store::<NodePerformance>();
    let watched = watch(client.clone(), writer, || ());
    let recorded = nodes::record(&context, &measured);
    let (policies, writer) = store::<PerfValidationPolicy>();
    let bell = Notify::new();
    let listed = watch(client.clone(), writer, || bell.notify_one());
    let (baselines, writer) = store::<PerfBaseline>();
    let approved = watch(client, writer, || bell.notify_one());
    let followed = Box::pin(policy::follow(&context, &policies, &measured, &baselines, &bell));
    let all = async { futures::join!(watched, recorded, listed, approved, followed) };
    // It only ends when it is stopped.
    let _: Option<((), (), (), (), ())> = Box::pin(stop.run_until_cancelled(all)).await;
}

/// Fills a store. An error is no event: the watch starts again with its own backoff.
async fn watch<K>(client: Client, writer: Writer<K>, changed: impl Fn())
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let strip = |object: &mut K| object.meta_mut().managed_fields = None;
    watcher(Api::<K>::all(client), streams::config())
        .default_backoff()
        .modify(strip)
        .reflect(writer)
        .map_err(|error| {
            debug!(
                kind = &*K::kind(&()),
                error = &error as &dyn std::error::Error,
                "a watch broke"
            );
        })
        .for_each(async |_| changed())
        .await;
}
