//! What makes an object be looked at. All of kube-runtime's features that are unstable by name are used here.
//!
//! No stream hands an error to the `Controller`: it would delay the events of all kinds (11 s measured with one broken
//! watch). Each watch logs, counts and swallows its own errors and starts again with its own backoff.

mod deployments;

use std::convert::Infallible;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt, future};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::api::{Api, PartialObjectMeta};
use kube::runtime::reflector::{ObjectRef, Store, store::Writer};
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::{Controller, WatchStreamExt, controller};
use kube::{Client, Resource, ResourceExt};
use perfval_api::{Phase, meta};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::controller::{Context, reconcile};
use crate::metrics::Metrics;
use crate::objects::Guarded;

/// One watched namespace (`None` is all of them), and where its objects are kept.
pub struct Scope {
    pub(crate) namespace: Option<String>,
    pub(crate) reader: Store<Guarded>,
    pub(crate) writer: Writer<Guarded>,
}

/// A pod that starts changes several times within milliseconds; one pass serves them all.
const DEBOUNCE: Duration = Duration::from_millis(150);

/// Reconciles the objects of a scope until told to stop, then lets the running passes finish.
pub async fn reconcile_all(scope: Scope, client: Client, context: Arc<Context>, workers: u16, stop: CancellationToken) {
    let Scope {
        namespace,
        reader,
        writer,
    } = scope;
    let watches = Watches {
        client,
        namespace,
        metrics: context.metrics.clone(),
    };
    let wakes = context.objects.wakes(watches.namespace.clone());
    Controller::for_stream(root(&watches, writer, &context).map(Ok), reader)
        .with_config(controller::Config::default().debounce(DEBOUNCE).concurrency(workers))
        .reconcile_on(watches.children::<Job>("Job"))
        .reconcile_on(watches.children::<Pod>("Pod"))
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
        .for_each(|outcome| {
            match outcome {
                Ok(_) => {}
                // A child's last event after its owner is gone.
                Err(controller::Error::ObjectNotFound(object)) => debug!(%object, "gone already"),
                Err(error) => warn!(error = &error as &dyn std::error::Error, "a trigger was lost"),
            }
            future::ready(())
        })
        .await;
}

/// The objects themselves.
fn root(
    watches: &Watches,
    writer: Writer<Guarded>,
    context: &Arc<Context>,
) -> impl Stream<Item = Guarded> + Send + use<> {
    let context = context.clone();
    let events = watcher(watches.api::<Guarded>(), watcher::Config::default())
        .default_backoff()
        .modify(|object| object.meta_mut().managed_fields = None)
        .reflect(writer)
        .inspect(move |event| {
            if let Ok(Event::Delete(object)) = event {
                context.superseded.forget(object);
                // Its GPUs may be free now.
                context.objects.wake_in(&[Phase::Sizing]);
            }
        })
        .applied_objects();
    without_errors(watches.metrics.clone(), "PerfValidation", events)
}

/// What every watch of a scope needs.
#[derive(Clone)]
struct Watches {
    client: Client,
    namespace: Option<String>,
    metrics: Arc<Metrics>,
}

impl Watches {
    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType: Default>,
    {
        match &self.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }

    /// The objects whose children of this kind changed. Metadata alone: a pass reads what it needs.
    fn children<K>(&self, kind: &'static str) -> impl Stream<Item = ObjectRef<Guarded>> + Send + use<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + DeserializeOwned
            + Send
            + 'static,
    {
        self.owners(kind, self.api::<PartialObjectMeta<K>>())
    }

    fn owners<K>(&self, kind: &'static str, api: Api<K>) -> impl Stream<Item = ObjectRef<Guarded>> + Send + use<K>
    where
        K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let ours = watcher::Config::default().labels(meta::NAME_LABEL);
        let touched = watcher(api, ours).default_backoff().touched_objects();
        without_errors(self.metrics.clone(), kind, touched).filter_map(|child| future::ready(owner(&child)))
    }
}

/// Logs, counts and swallows: the watcher starts again by itself.
fn without_errors<T: Send>(
    metrics: Arc<Metrics>,
    kind: &'static str,
    stream: impl Stream<Item = watcher::Result<T>> + Send,
) -> impl Stream<Item = T> + Send {
    stream.filter_map(move |item| {
        if let Err(error) = &item {
            metrics.watch_failed(kind);
            if is_not_served(error) {
                debug!(kind, "not served by this cluster");
            } else {
                warn!(
                    kind,
                    error = error as &dyn std::error::Error,
                    "watch broke; it starts again"
                );
            }
        }
        future::ready(item.ok())
    })
}

/// The object that a child belongs to, by our label.
fn owner(child: &impl ResourceExt) -> Option<ObjectRef<Guarded>> {
    let name = child.labels().get(meta::NAME_LABEL)?;
    Some(ObjectRef::new(name).within(&child.namespace()?))
}

/// Whether the kind itself is unknown: a cluster without DRA serves no ResourceClaims.
fn is_not_served(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(source) | watcher::Error::WatchStartFailed(source)) = error else {
        return false;
    };
    matches!(source, kube::Error::Api(status) if status.is_not_found())
}

#[cfg(test)]
mod tests {
    use kube::api::ObjectMeta;

    use super::*;

    fn child(namespace: Option<&str>, labels: &[(&str, &str)]) -> Pod {
        let labels = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let metadata = ObjectMeta {
            namespace: namespace.map(Into::into),
            labels: Some(labels),
            ..ObjectMeta::default()
        };
        Pod {
            metadata,
            ..Pod::default()
        }
    }

    #[test]
    fn a_child_wakes_the_object_its_label_names_in_its_own_namespace() {
        let found = owner(&child(
            Some("perf"),
            &[(meta::NAME_LABEL, "h100"), (meta::RUN_LABEL, "0011aabb")],
        ))
        .unwrap();
        assert_eq!(
            (found.name.as_str(), found.namespace.as_deref()),
            ("h100", Some("perf"))
        );
    }

    #[test]
    fn a_stranger_wakes_nobody() {
        assert!(owner(&child(Some("perf"), &[("app", "h100")])).is_none());
        assert!(owner(&child(None, &[(meta::NAME_LABEL, "h100")])).is_none());
    }
}
