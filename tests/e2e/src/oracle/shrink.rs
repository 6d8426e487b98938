//! The smallest cluster that still differs.

use futures::future::join_all;
use serde_json::{Value, json};

use super::compare::Difference;
use super::session::Session;
use super::{Cluster, Judged};

/// Lists whose elements may be left out one by one.
const LISTS: [&str; 9] = [
    "/spec/devices",
    "/spec/sharedCounters",
    "/spec/taints",
    "/spec/initContainers",
    "/spec/containers",
    "/spec/selectors",
    "/status/allocation/devices/results",
    "/metadata/finalizers",
    "/status/reservedFor",
];

/// Leaves out whatever can be left out while the node differs in the same way.
pub async fn shrink(
    session: &Session,
    cluster: &Cluster,
    node: &str,
    difference: &Difference,
    parallel: usize,
) -> Cluster {
    let mut smallest = cluster.clone();
    smallest.probes.retain(|probe| probe.node == node);
    let still = |candidate: Cluster| async move {
        let judged = session.judge(&candidate).await.ok()?;
        let same = |judged: &Judged| {
            judged.node == node && judged.difference().is_some_and(|found| is_like(found, difference))
        };
        judged.iter().any(same).then_some(candidate)
    };
    let mut size = smallest.objects.len();
    while size > 0 {
        let candidates = chunks(&smallest, node, size);
        match first(candidates, parallel, &still).await {
            Some(smaller) => smallest = smaller,
            None => size /= 2,
        }
    }
    while let Some(smaller) = first(parts(&smallest), parallel, &still).await {
        smallest = smaller;
    }
    smallest
}

/// The number of workers may change while a cluster shrinks; the direction may not.
fn is_like(found: &Difference, wanted: &Difference) -> bool {
    std::mem::discriminant(found) == std::mem::discriminant(wanted)
}

/// The first candidate that still differs; some are tried at once.
async fn first<F: Future<Output = Option<Cluster>>>(
    candidates: Vec<Cluster>,
    parallel: usize,
    still: &impl Fn(Cluster) -> F,
) -> Option<Cluster> {
    for group in candidates.chunks(parallel) {
        let tried = join_all(group.iter().cloned().map(still)).await;
        if let Some(found) = tried.into_iter().flatten().next() {
            return Some(found);
        }
    }
    None
}

/// Clusters without some neighbouring objects; the node in question stays.
fn chunks(cluster: &Cluster, node: &str, size: usize) -> Vec<Cluster> {
    let is_kept = |object: &Value| object["kind"] == "Node" && object["metadata"]["name"] == node;
    (0..cluster.objects.len())
        .step_by(size)
        .filter_map(|start| {
            let end = (start + size).min(cluster.objects.len());
            let removed: Vec<usize> = (start..end)
                .filter(|index| !is_kept(&cluster.objects[*index]))
                .collect();
            (!removed.is_empty()).then(|| without(cluster, &removed))
        })
        .collect()
}

/// A cluster without some objects; a pool that loses a slice announces one less.
fn without(cluster: &Cluster, removed: &[usize]) -> Cluster {
    let mut smaller = cluster.clone();
    for &index in removed.iter().rev() {
        let gone = smaller.objects.remove(index);
        let same_pool = |slice: &Value| {
            let of = |field: &str| slice["spec"]["pool"][field] == gone["spec"]["pool"][field];
            slice["kind"] == "ResourceSlice"
                && gone["kind"] == "ResourceSlice"
                && of("name")
                && of("generation")
                && slice["spec"]["driver"] == gone["spec"]["driver"]
        };
        for slice in smaller.objects.iter_mut().filter(|slice| same_pool(slice)) {
            let announced = slice["spec"]["pool"]["resourceSliceCount"].as_u64().unwrap_or_default();
            slice["spec"]["pool"]["resourceSliceCount"] = json!(announced.saturating_sub(1).max(1));
        }
    }
    smaller
}

/// Clusters without one element of one object.
fn parts(cluster: &Cluster) -> Vec<Cluster> {
    let mut all = Vec::new();
    for (index, object) in cluster.objects.iter().enumerate() {
        for list in LISTS {
            let elements = object.pointer(list).and_then(Value::as_array).map_or(0, Vec::len);
            for element in 0..elements {
                let mut smaller = cluster.clone();
                if let Some(list) = smaller.objects[index].pointer_mut(list).and_then(Value::as_array_mut) {
                    list.remove(element);
                    all.push(smaller);
                }
            }
        }
    }
    for field in ["tolerations", "nodeSelector", "deviceTolerations"] {
        if !cluster.spec["placement"][field].is_null() {
            let mut smaller = cluster.clone();
            smaller.spec["placement"]
                .as_object_mut()
                .map(|placement| placement.remove(field));
            all.push(smaller);
        }
    }
    all
}
