//! The watch on the `DynamoGraphDeployment`s, which may be installed long after this operator.

use std::future::ready;
use std::time::Duration;

use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::{Event, watcher};
use perfval_api::Phase;
use perfval_cluster::Cluster;
use perfval_cluster::dynamo::{CRD, KIND};
use perfval_sizing::Seen;
use tokio::time::sleep;
use tracing::{debug, info};

use super::watches::{Watches, config, without_errors};
use crate::objects::Objects;
use crate::stored::Stored;

const DISCOVERY_RETRY: Duration = Duration::from_secs(2);

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
                        let changed = changed?;
                        // The watch ends here without an error.
                        let ended = Ok(Event::Init);
                        watches.copies.follow::<DynamicObject>(watches.namespace.as_deref(), &ended);
                        inner = watch(&watches, &cluster, &objects, changed);
                    }
                    Some(object) = inner.next() => return Some((object, (served, inner))),
                }
            }
        }
    })
}

/// Stream of the CRD's presence, with an item for each change of its uid, because a replaced CRD needs a new watch.
fn served(watches: &Watches) -> impl Stream<Item = bool> + Send + use<> {
    let crds = Api::<PartialObjectMeta<CustomResourceDefinition>>::all(watches.client.clone());
    let this = config().fields(&format!("metadata.name={CRD}"));
    let events = watcher(crds, this).default_backoff();
    let mut listed: Option<String> = None;
    let mut last: Option<Option<String>> = None;
    without_errors(watches.metrics.clone(), "CustomResourceDefinition", events).filter_map(move |event| {
        let uid = match event {
            Event::Init => {
                listed = None;
                return ready(None);
            }
            Event::InitApply(crd) => {
                listed = crd.metadata.uid;
                return ready(None);
            }
            Event::InitDone => listed.take(),
            Event::Apply(crd) => crd.metadata.uid,
            Event::Delete(_) => None,
        };
        let changed = last.as_ref() != Some(&uid);
        last = Some(uid.clone());
        ready(changed.then_some(uid.is_some()))
    })
}

/// The watch, once discovery has the kind; empty while it is not installed.
fn watch(
    watches: &Watches,
    cluster: &Cluster,
    objects: &Objects,
    installed: bool,
) -> BoxStream<'static, ObjectRef<Stored>> {
    if !installed {
        info!(crd = CRD, "not installed: waiting for it");
        return stream::pending().boxed();
    }
    let (watches, cluster, objects) = (watches.clone(), cluster.clone(), objects.clone());
    let begin = async move {
        let resource = resource(&cluster).await;
        info!(crd = CRD, version = resource.version, "installed: watching");
        objects.wake_in(&[Phase::Pending]);
        let api: Api<PartialObjectMeta<DynamicObject>> = match &watches.namespace {
            Some(namespace) => Api::namespaced_with(watches.client.clone(), namespace, &resource),
            None => Api::all_with(watches.client.clone(), &resource),
        };
        watches.copied_children(KIND, api)
    };
    stream::once(begin).flatten().boxed()
}

/// The newest version that the operator supports, once discovery has it. Discovery lags a new CRD by some seconds.
async fn resource(cluster: &Cluster) -> ApiResource {
    loop {
        match cluster.served_dynamo().await {
            Seen::Present(resource) => return resource,
            unserved => debug!(crd = CRD, answer = unserved.unknown(), "not discovered yet"),
        }
        sleep(DISCOVERY_RETRY).await;
    }
}
