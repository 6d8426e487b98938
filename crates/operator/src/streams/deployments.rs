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

use super::watches::{Watches, config, without_errors};
use crate::objects::Objects;
use crate::stored::Stored;

const DISCOVERY_RETRY: Duration = Duration::from_secs(2);
/// After a change of the CRD, discovery shows the versions of before for a moment.
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

/// Stream of the CRD's presence, with an item for each change of its uid or its spec: a CRD that was replaced, or that serves other
/// versions, needs a new watch. `Some` is the time by which discovery may lag behind the change.
fn served(watches: &Watches) -> impl Stream<Item = Option<Duration>> + Send + use<> {
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
        let was_installed = matches!(last, Some(Some(_)));
        let lag = if was_installed { DISCOVERY_LAG } else { Duration::ZERO };
        let installed = crd.is_some().then_some(lag);
        last = Some(crd);
        ready(Some(installed))
    })
}

/// The watch, once discovery has the kind; empty while it is not installed, or serves no supported version.
fn watch(
    watches: &Watches,
    cluster: &Cluster,
    objects: &Objects,
    installed: Option<Duration>,
) -> BoxStream<'static, ObjectRef<Stored>> {
    let Some(lag) = installed else {
        info!(crd = CRD, "not installed: waiting for it");
        return stream::pending().boxed();
    };
    let (watches, cluster, objects) = (watches.clone(), cluster.clone(), objects.clone());
    let begin = async move {
        sleep(lag).await;
        let Some(resource) = resource(&cluster).await else {
            return stream::pending().boxed();
        };
        info!(crd = CRD, version = resource.version, "installed: watching");
        objects.wake_in(|phase| phase == Phase::Pending);
        let api: Api<PartialObjectMeta<DynamicObject>> = match &watches.namespace {
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
        sleep(DISCOVERY_RETRY).await;
    }
}
