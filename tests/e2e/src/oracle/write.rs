//! A random cluster on the API server: written, settled, erased.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::kinds::Kind;
use super::{CLUSTER_LABEL, Cluster, DELETED};

/// Requests under way at once, per cluster.
const AT_ONCE: usize = 16;
/// The longest that controllers may take over one step.
pub const PATIENCE: Duration = Duration::from_mins(1);
/// Taints that controllers put on a node by themselves.
const OWN_TAINTS: &str = "node.kubernetes.io/";

/// Writes every object and waits until controllers and scheduler did what they do about them.
pub async fn write(client: &Client, namespace: &str, cluster: &Cluster) -> Result<(), Box<dyn Error>> {
    for kind in Kind::all() {
        let of_kind: Vec<&Value> = cluster
            .objects
            .iter()
            .filter(|object| object["kind"] == kind.name)
            .collect();
        stream::iter(of_kind.into_iter().filter(|object| !is_scheduled_later(object)).map(Ok))
            .try_for_each_concurrent(AT_ONCE, |object| create(client, namespace, cluster, object))
            .await?;
    }
    let pods = uids(client, namespace).await?;
    stream::iter(cluster.objects.iter().map(Ok))
        .try_for_each_concurrent(AT_ONCE, |object| finish(client, namespace, &pods, object))
        .await?;
    settle_nodes(client, cluster).await?;
    // Those that ask the scheduler for a device themselves come last: they have to see the others' claims.
    let later = cluster.objects.iter().filter(|object| is_scheduled_later(object));
    stream::iter(later.map(Ok))
        .try_for_each_concurrent(AT_ONCE, |object| create(client, namespace, cluster, object))
        .await?;
    settle_pods(client, namespace).await?;
    Ok(())
}

/// A pod without a node, which the scheduler binds.
fn is_scheduled_later(object: &Value) -> bool {
    object["kind"] == "Pod" && object["spec"]["nodeName"].is_null()
}

async fn create(client: &Client, namespace: &str, cluster: &Cluster, object: &Value) -> Result<(), kube::Error> {
    let kind = Kind::of(object);
    let mut body = object.clone();
    body["metadata"]["labels"][CLUSTER_LABEL] = json!(cluster.id);
    if kind.name != "Node" {
        // Every other kind has it written by its subresource.
        body.as_object_mut().map(|fields| fields.remove("status"));
    }
    let body: DynamicObject = serde_json::from_value(body).map_err(kube::Error::SerdeError)?;
    kind.api(client, namespace)
        .create(&PostParams::default(), &body)
        .await?;
    Ok(())
}

async fn uids(client: &Client, namespace: &str) -> Result<BTreeMap<String, String>, kube::Error> {
    let pods = Kind::named("Pod")
        .api(client, namespace)
        .list_metadata(&ListParams::default())
        .await?;
    Ok(pods
        .iter()
        .map(|pod| (pod.name_any(), pod.uid().unwrap_or_default()))
        .collect())
}

/// Status, then deletion.
async fn finish(
    client: &Client,
    namespace: &str,
    pods: &BTreeMap<String, String>,
    object: &Value,
) -> Result<(), kube::Error> {
    let kind = Kind::of(object);
    let api = kind.api(client, namespace);
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if kind.name != "Node" && object["status"].is_object() {
        let mut status = object["status"].clone();
        if let Some(consumers) = status.get_mut("reservedFor").and_then(Value::as_array_mut) {
            consumers.retain(|consumer| pods.contains_key(consumer["name"].as_str().unwrap_or_default()));
            for consumer in consumers {
                consumer["uid"] = json!(pods[consumer["name"].as_str().unwrap_or_default()]);
            }
        }
        let patch = json!({ "status": status });
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(&patch))
            .await?;
    }
    if object["metadata"]["annotations"][DELETED] == "true" {
        api.delete(name, &DeleteParams::default()).await?;
    }
    Ok(())
}

/// Waits until the taints that the node controller manages are those of each node's condition.
async fn settle_nodes(client: &Client, cluster: &Cluster) -> Result<(), String> {
    let api = Kind::named("Node").api(client, "");
    let of_cluster = ListParams::default().labels(&format!("{CLUSTER_LABEL}={}", cluster.id));
    until("nodes carry the taints of their conditions", || async {
        let nodes = api.list(&of_cluster).await.map_err(|error| error.to_string())?;
        match nodes.iter().find(|node| !is_settled(&node.data)) {
            Some(node) => Err(format!("{}: {}", node.name_any(), node.data["spec"])),
            None => Ok(()),
        }
    })
    .await
}

fn is_settled(node: &Value) -> bool {
    let taints: Vec<&str> = node["spec"]["taints"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|taint| taint["key"].as_str()?.strip_prefix(OWN_TAINTS))
        .collect();
    let conditions = node["status"]["conditions"].as_array();
    let ready = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    let cordoned = node["spec"]["unschedulable"] == true;
    let in_trouble = taints.iter().any(|key| ["not-ready", "unreachable"].contains(key));
    taints.contains(&"unschedulable") == cordoned && in_trouble != ready
}

/// Waits until the scheduler decided about every pod.
async fn settle_pods(client: &Client, namespace: &str) -> Result<(), String> {
    let api = Kind::named("Pod").api(client, namespace);
    until("the scheduler decides about the pods of others", || async {
        let pods = api
            .list(&ListParams::default())
            .await
            .map_err(|error| error.to_string())?;
        match pods.iter().find(|pod| Fate::of(&pod.data) == Fate::Open) {
            Some(pod) => Err(pod.name_any()),
            None => Ok(()),
        }
    })
    .await
}

/// What the scheduler decided about a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has a node.
    Bound,
    /// The scheduler tried and found none.
    Refused,
    /// The scheduler has not tried yet.
    Open,
}

impl Fate {
    /// Reads a pod.
    pub fn of(pod: &Value) -> Self {
        if pod["spec"]["nodeName"].is_string() {
            return Self::Bound;
        }
        let conditions = pod["status"]["conditions"].as_array();
        let refused = conditions.into_iter().flatten().any(|condition| {
            // A selector that ends in an error is a `SchedulerError`, tried again for ever.
            let reason = condition["reason"].as_str().unwrap_or_default();
            condition["type"] == "PodScheduled"
                && condition["status"] == "False"
                && ["Unschedulable", "SchedulerError"].contains(&reason)
                // Not a decision yet: the claim is still being made from its template.
                && !condition["message"].as_str().unwrap_or_default().contains("waiting for")
        });
        if refused { Self::Refused } else { Self::Open }
    }
}

/// Takes everything away again, whatever holds it.
pub async fn erase(client: &Client, namespace: &str, cluster: &str) -> Result<(), String> {
    let of_cluster = ListParams::default().labels(&format!("{CLUSTER_LABEL}={cluster}"));
    let mut kinds: Vec<Kind> = Kind::all().filter(|kind| kind.name != "Namespace").collect();
    kinds.reverse();
    until("the cluster is erased", || async {
        let mut left = Vec::new();
        for kind in &kinds {
            let scope = if kind.namespaced {
                ListParams::default()
            } else {
                of_cluster.clone()
            };
            let remaining = purge(client, namespace, *kind, &scope)
                .await
                .map_err(|error| error.to_string())?;
            if remaining > 0 {
                left.push(format!("{remaining} {}", kind.name));
            }
        }
        if left.is_empty() { Ok(()) } else { Err(left.join(", ")) }
    })
    .await
}

/// Deletes objects of a kind and takes their finalizers; how many there were.
async fn purge(client: &Client, namespace: &str, kind: Kind, scope: &ListParams) -> Result<usize, kube::Error> {
    let api = kind.api(client, namespace);
    let found = api.list_metadata(scope).await?;
    if found.items.is_empty() {
        return Ok(0);
    }
    api.delete_collection(&DeleteParams::default().grace_period(0), scope)
        .await?;
    let held = found.iter().filter(|object| !object.finalizers().is_empty());
    let freed = json!({ "metadata": { "finalizers": null } });
    stream::iter(held)
        .for_each_concurrent(AT_ONCE, |object| {
            let (api, freed) = (&api, &freed);
            // It may be gone by now, or gone on with its next holder: the next round shows it.
            async move {
                drop(
                    api.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(freed))
                        .await,
                );
            }
        })
        .await;
    Ok(found.items.len())
}

/// Looks until `look` is content; what it last complained about is the error.
///
/// # Errors
/// If controllers take longer than the limit.
pub async fn until<F: Future<Output = Result<(), String>>>(
    what: &str,
    mut look: impl FnMut() -> F,
) -> Result<(), String> {
    let began = Instant::now();
    loop {
        match look().await {
            Ok(()) => return Ok(()),
            Err(complaint) if began.elapsed() > PATIENCE => {
                return Err(format!("waited in vain until {what}: {complaint}"));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(150)).await,
        }
    }
}
