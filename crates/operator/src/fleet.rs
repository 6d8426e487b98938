//! Tasks of the leader about many nodes.

mod baseline;
mod fingerprint;
mod former;
mod memory;
mod nodes;
mod policy;
mod stored_objects;
mod survey;

use std::fmt::Debug;
use std::sync::Arc;

use futures::StreamExt as _;
use kube::api::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::{store, store::Writer};
use kube::runtime::watcher::watcher;
use kube::{Client, Resource};
use perfval_api::fleet::{NodePerformance, PerfBaseline, PerfValidationPolicy};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use self::stored_objects::{FleetObject, report_unreadable};
use crate::context::Context;
use crate::metrics::OperatorMetrics;
use crate::streams;

/// Keeps the `NodePerformance`s up to date and follows policies and baselines for as long as this process leads. Only an operator of
/// all namespaces does: the objects are cluster-wide.
pub async fn work_until(context: Arc<Context>, client: Client, stop: CancellationToken) {
    if !context.records_nodes() {
        return;
    }
    let metrics = &context.metrics;
    let (measured, writer) = store::<FleetObject<NodePerformance>>();
    let watched = watch("NodePerformance", client.clone(), metrics, writer, || ());
    let (policies, writer) = store::<FleetObject<PerfValidationPolicy>>();
    let bell = Notify::new();
    let ring = || bell.notify_one();
    let listed = watch("PerfValidationPolicy", client.clone(), metrics, writer, ring);
    let (baselines, writer) = store::<FleetObject<PerfBaseline>>();
    let approved = watch("PerfBaseline", client, metrics, writer, ring);
    let recorded = nodes::record(&context, &measured, &policies);
    let followed = Box::pin(policy::follow(&context, &policies, &measured, &baselines, &bell));
    let all = async { futures::join!(watched, recorded, listed, approved, followed) };
    // It only ends when it is stopped.
    let _: Option<((), (), (), (), ())> = Box::pin(stop.run_until_cancelled(all)).await;
}

/// Fills a store, and reports objects that cannot be parsed.
async fn watch<K>(
    kind: &'static str,
    client: Client,
    metrics: &Arc<OperatorMetrics>,
    writer: Writer<FleetObject<K>>,
    changed: impl Fn(),
) where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let strip = |object: &mut FleetObject<K>| object.meta_mut().managed_fields = None;
    let known = writer.as_reader();
    let events = watcher(Api::<FleetObject<K>>::all(client), streams::config())
        .default_backoff()
        .modify(strip)
        .inspect(|event| report_unreadable(kind, event, &known, metrics))
        .reflect(writer);
    streams::without_errors(metrics.clone(), kind, events)
        .for_each(async |_| changed())
        .await;
}
