//! Triggers that make the operator look at an object. All of kube-runtime's features that are unstable by name are
//! used here.
//!
//! No stream hands an error to the `Controller`: it would delay the events of all kinds (11 s measured with one
//! broken watch). Each watch logs, counts and swallows its own errors and starts again with its own backoff.

mod child;
mod deployments;
mod watches;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::{Event, watcher};
use kube::runtime::{Controller, WatchStreamExt, controller};
use kube::{Client, Resource as _};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use self::watches::Watches;
pub(crate) use self::watches::{WATCH, config, without_errors};
use crate::context::Context;
use crate::controller::reconcile;
use crate::objects::WatchScope;
use crate::stored::Stored;

/// Objects of one page of the first list, which is in memory whole. They have up to 1.5 MB each.
const PAGE: u32 = 20;

/// A starting pod changes several times within milliseconds, and one pass serves all changes. With 150 ms the median
/// from event to next write was 0.16 s.
const DEBOUNCE: Duration = Duration::from_millis(10);

/// Reconciles the objects of a scope until it is stopped, then lets the running passes finish.
pub async fn reconcile_all(
    scope: WatchScope,
    client: Client,
    context: Arc<Context>,
    workers: u16,
    stop: CancellationToken,
) {
    let watches = Watches {
        client,
        namespace: scope.namespace,
        metrics: context.metrics.clone(),
        copies: context.cluster.copies(),
    };
    let wakes = context.objects.wakes(watches.namespace.clone());
    let paced = context.clone();
    let jobs = watches
        .copied_children::<Job>("Job", watches.api())
        .inspect(move |object| paced.pace.expect_job(object));
    Controller::for_stream(root(&watches, scope.writer, &context).map(Ok), scope.reader)
        .with_config(controller::Config::default().debounce(DEBOUNCE).concurrency(workers))
        .reconcile_on(jobs)
        .reconcile_on(watches.copied_children::<Pod>("Pod", watches.api()))
        .reconcile_on(watches.children::<ResourceClaim>("ResourceClaim"))
        .reconcile_on(deployments::changes(
            watches,
            context.cluster.clone(),
            context.objects.clone(),
        ))
        .reconcile_on(wakes)
        .graceful_shutdown_on(stop.cancelled_owned())
        .run(
            |object, context| reconcile(object, context).boxed(),
            |_, never: &Infallible, _| match *never {},
            context,
        )
        .for_each(async |outcome| match outcome {
            Ok(_) => {}
            // A child's last event after its owner is gone.
            Err(controller::Error::ObjectNotFound(object)) => debug!(%object, "gone already"),
            Err(error) => warn!(error = &error as &dyn std::error::Error, "a trigger was lost"),
        })
        .await;
}

impl Context {
    /// Handles a new or changed object.
    pub fn observe(&self, object: &Stored) {
        self.newcomers.observe(object, object.is_answered());
    }

    /// Handles a deleted object.
    pub fn observe_removal(&self, object: &Stored) {
        let uid = object.meta().uid.as_deref().unwrap_or_default();
        self.own_writes.forget(uid);
        self.looks.forget(uid);
        self.setbacks.forget(uid);
        self.suspects.forget(uid);
        self.rights.forget(uid);
        self.pace.forget(object);
        self.cluster.copies().forget_object(object);
        self.newcomers.forget(object);
        self.store_limits.forget(object.meta());
        // Its GPUs may be free now.
        self.queue.wake();
    }

    /// Handles a complete list of a watch. Objects that went while the watch was down bring no event of their own.
    fn observe_all(&self, namespace: Option<&str>) {
        self.objects.end_list(namespace);
        let uids = self.objects.uids();
        self.own_writes.retain(&uids);
        self.looks.retain(&uids);
        self.pace.retain(&uids);
        self.newcomers.retain(&uids);
        self.setbacks.retain(&uids);
        self.store_limits.retain(&uids);
        self.rights.retain(&uids);
        self.cluster.copies().retain(&uids);
        // Deaths are older than the lists: until all are complete, no store has the objects of some namespaces.
        if self.objects.listed() {
            self.suspects.retain(&uids);
        }
        // GPUs of those that went may be free now.
        self.queue.wake();
    }
}

/// The objects themselves.
fn root(
    watches: &Watches,
    writer: Writer<Stored>,
    context: &Arc<Context>,
) -> impl Stream<Item = Stored> + Send + use<> {
    let (context, admitting) = (context.clone(), context.clone());
    let namespace = watches.namespace.clone();
    let events = watcher(watches.api::<Stored>(), config().page_size(PAGE))
        .default_backoff()
        .modify(move |object| admitting.store_limits.admit(object))
        .reflect(writer)
        .inspect(move |event| match event {
            Ok(Event::Init) => context.objects.begin_list(namespace.as_deref()),
            Ok(Event::InitApply(object)) => {
                context.objects.add_to_list(namespace.as_deref(), object);
                context.observe(object);
            }
            Ok(Event::Apply(object)) => context.observe(object),
            Ok(Event::Delete(object)) => context.observe_removal(object),
            Ok(Event::InitDone) => context.observe_all(namespace.as_deref()),
            Err(_) => {}
        })
        .applied_objects();
    without_errors(watches.metrics.clone(), "PerfValidation", events)
}
