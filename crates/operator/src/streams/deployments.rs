//! The watch on the `DynamoGraphDeployment`s, which may be installed long after this operator.

use std::future::ready;
use std::time::Duration;

use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, ObjectMeta, PartialObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::{Event, watcher};
use perfval_api::Phase;
use perfval_cluster::Cluster;
use perfval_cluster::dynamo::{CRD, KIND};
use perfval_sizing::Seen;
use tokio::time::sleep;
use tracing::{debug, info, warn};

use super::child::ChildMetadata;
use super::watches::{Watches, config, without_errors};
use crate::objects::Objects;
use crate::stored::Stored;

/// Pause before a look at discovery, which may still show the versions from before a change of the CRD.
const DISCOVERY_LAG: Duration = Duration::from_secs(2);

/// The objects whose deployment changed. While the kind is not served there is no watch, and so no failing one. When it comes, the
/// watch begins, and objects in Pending are woken.
pub(super) fn changes(
    watches: Watches,
    cluster: Cluster,
    objects: Objects,
) -> impl Stream<Item = ObjectRef<Stored>> + Send {
    let served = served(&watches).boxed();
    stream::unfold((served, stream::pending().boxed()), move |(mut served, mut inner)| {
        let (watches, cluster, objects) = (watches.clone(), cluster.clone(), objects.clone());
        async move {
            loop {
                tokio::select! {
                    changed = served.next() => {
                        // The watch ends here without an error.
                        let ended = Ok(Event::Init);
                        watches.copies.follow::<DynamicObject>(watches.namespace.as_deref(), &ended);
                        inner = if changed? {
                            watch(&watches, &cluster, &objects)
                        } else {
                            info!(crd = CRD, "not installed: waiting for it");
                            stream::pending().boxed()
                        };
                    }
                    Some(object) = inner.next() => return Some((object, (served, inner))),
                }
            }
        }
    })
}

/// Stream of the CRD's presence, with an item for each change of its uid or its spec: a CRD that was replaced, or that serves other
/// versions, needs a new watch.
fn served(watches: &Watches) -> impl Stream<Item = bool> + Send + use<> {
    let crds = Api::<PartialObjectMeta<CustomResourceDefinition>>::all(watches.client.clone());
    let this = config().fields(&format!("metadata.name={CRD}"));
    let events = watcher(crds, this).default_backoff();
    // The API server counts the changes of a spec in its generation.
    let identity = |crd: ObjectMeta| (crd.uid, crd.generation);
    let mut listed = None;
    let mut last: Option<Option<_>> = None;
    without_errors(watches.metrics.clone(), "CustomResourceDefinition", events).filter_map(move |event| {
        let crd = match event {
            Event::Init => {
                listed = None;
                return ready(None);
            }
            Event::InitApply(crd) => {
                listed = Some(identity(crd.metadata));
                return ready(None);
            }
            Event::InitDone => listed.take(),
            Event::Apply(crd) => Some(identity(crd.metadata)),
            Event::Delete(_) => None,
        };
        if last.as_ref() == Some(&crd) {
            return ready(None);
        }
        let is_there = crd.is_some();
        last = Some(crd);
        ready(Some(is_there))
    })
}

/// The watch, once discovery has the kind; empty if it has no supported version.
fn watch(watches: &Watches, cluster: &Cluster, objects: &Objects) -> BoxStream<'static, ObjectRef<Stored>> {
    let (watches, cluster, objects) = (watches.clone(), cluster.clone(), objects.clone());
    let begin = async move {
        sleep(DISCOVERY_LAG).await;
        let Some(resource) = resource(&cluster).await else {
            return stream::pending().boxed();
        };
        info!(crd = CRD, version = resource.version, "installed: watching");
        objects.wake_in(|phase| phase == Phase::Pending);
        let api: Api<ChildMetadata<DynamicObject>> = match &watches.namespace {
            Some(namespace) => Api::namespaced_with(watches.client.clone(), namespace, &resource),
            None => Api::all_with(watches.client.clone(), &resource),
        };
        watches.copied_children(KIND, api).boxed()
    };
    stream::once(begin).flatten().boxed()
}

/// The newest version that the operator supports, once discovery has it. `None` if the CRD has no such version: it has to change first.
async fn resource(cluster: &Cluster) -> Option<ApiResource> {
    loop {
        match cluster.served_dynamo().await {
            Seen::Present(Ok(resource)) => return Some(resource),
            Seen::Present(Err(versions)) => {
                warn!(
                    crd = CRD,
                    versions = versions.join(", "),
                    "no served version is supported: install Dynamo's operator 1.1 to 1.6, or another version of this operator"
                );
                return None;
            }
            unserved => debug!(crd = CRD, answer = unserved.unknown(), "not discovered yet"),
        }
        sleep(DISCOVERY_LAG).await;
    }
}
