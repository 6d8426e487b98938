//! A device plugin that gives one GPU to several pods, by time slicing, by MPS or as MIG partitions: what it calls a GPU is
//! then a share of one. How it does so is only in labels of the node.

use perfval_api::text::number_of;

use super::expected;
use super::plugin::whole;
use super::report::{NodeObstacle, SharedAs};
use crate::inventory::{Node, PodUse};

/// NVIDIA's plugin adds it to a resource that is shared under a name of its own.
const RENAMED: &str = ".shared";
/// Prefix of the names of partitions behind the domain.
const PARTITION: &str = "mig-";
/// Marker before the profile in the product's name, as in `NVIDIA-H100-80GB-HBM3-MIG-1g.10gb`.
const OF_PROFILE: &str = "-MIG-";
/// Suffix of the name of a product that is shared.
const OF_SHARED: &str = "-SHARED";
/// Labels that have the same meaning for GKE's own plugin.
const GKE_STRATEGY: &str = "cloud.google.com/gke-gpu-sharing-strategy";
const GKE_CLIENTS: &str = "cloud.google.com/gke-max-shared-clients-per-gpu";
const GKE_PROFILE: &str = "cloud.google.com/gke-gpu-partition-size";
/// Labels with the GPUs of the machine: no node has more.
const GPUS_OF_MACHINE: [&str; 4] = [
    expected::COUNT,
    "cloud.google.com/gke-accelerator-count",
    "karpenter.k8s.aws/instance-gpu-count",
    "karpenter.azure.com/sku-gpu-count",
];

/// Obstacle of a node whose plugin gives out less than whole GPUs under a resource, or under another name instead.
/// `users` are the pods that have some of the resource.
pub fn shared(node: &Node, resource: &str, users: &[&PodUse]) -> Option<NodeObstacle> {
    let offered = |resource: &str| {
        let most = node.allocatable.get(resource).max(node.capacity.get(resource));
        Some(whole(most)).filter(|offered| *offered > 0)
    };
    let (resource, offered, (are, how)) = if let Some(offered) = offered(resource) {
        (resource, offered, how(node, resource, offered, users)?)
    } else {
        let (domain, _) = resource.split_once('/')?;
        let (renamed, partitions) = (format!("{resource}{RENAMED}"), format!("{domain}/{PARTITION}"));
        let mut others = node.allocatable.iter().map(|(name, _)| name);
        // A run that asks for partitions does not want MIG off.
        let wants_whole = profile_of(resource).is_none();
        let other = others.find(|name| *name == renamed || wants_whole && name.starts_with(&partitions))?;
        let offered = offered(other)?;
        let by_name = || match profile_of(other).filter(|_| other != renamed) {
            Some(profile) => (SharedAs::Partitions, profile.to_owned()),
            None => (SharedAs::Shares, profile_of(other).unwrap_or_default().to_owned()),
        };
        (other, offered, how(node, other, offered, users).unwrap_or_else(by_name))
    };
    let resource = resource.to_owned();
    Some(NodeObstacle::SharedGpus {
        resource,
        offered,
        are,
        how,
    })
}

fn how(node: &Node, resource: &str, offered: i64, users: &[&PodUse]) -> Option<(SharedAs, String)> {
    let is_partition = profile_of(resource).is_some();
    // Only the resource of whole GPUs and those of partitions have labels of their own.
    let domain = resource.split('/').next().unwrap_or_default();
    let own = |what: &str| node.label(&format!("{resource}.{what}"));
    let label =
        |what: &str| own(what).or_else(|| node.label(&format!("{domain}/gpu.{what}")).filter(|_| !is_partition));

    let product = label("product").unwrap_or_default();
    let replicas = label("replicas").and_then(|replicas| replicas.parse::<i64>().ok());
    let clients = || node.label(GKE_CLIENTS).and_then(|clients| clients.parse().ok());
    if replicas.is_some_and(|replicas| replicas > 1) || product.ends_with(OF_SHARED) {
        let strategy = label("sharing-strategy").filter(|strategy| !["", "none"].contains(strategy));
        return Some((SharedAs::Shares, in_words(strategy.unwrap_or("time-slicing"), replicas)));
    }
    if let Some(strategy) = node.label(GKE_STRATEGY) {
        return Some((SharedAs::Shares, in_words(strategy, clients())));
    }
    let devices = || users.iter().flat_map(|pod| pod.devices_of(resource));
    if let Some(device) = devices().find(|device| device.contains("::")) {
        return Some((SharedAs::Shares, format!("a pod has {device}")));
    }
    if is_partition {
        return None;
    }
    let profile = product.split_once(OF_PROFILE).map(|(_, profile)| profile);
    if let Some(profile) = profile.or_else(|| node.label(GKE_PROFILE)) {
        return Some((SharedAs::Partitions, profile.to_owned()));
    }
    if let Some(device) = devices().find(|device| device.starts_with("MIG-")) {
        return Some((SharedAs::Partitions, format!("a pod has {device}")));
    }
    GPUS_OF_MACHINE.into_iter().find_map(|key| {
        let gpus: i64 = node.label(key)?.parse().ok()?;
        let of_label = || format!("the {} of its label {key}", number_of(gpus, "GPU"));
        (0 < gpus && gpus < offered).then(|| (SharedAs::TooMany, of_label()))
    })
}

fn in_words(strategy: &str, pods: Option<i64>) -> String {
    match pods {
        Some(pods) if pods > 1 => format!("{strategy}, {pods} pods to a GPU"),
        _ => strategy.to_owned(),
    }
}

/// `1g.10gb` of `nvidia.com/mig-1g.10gb`.
fn profile_of(resource: &str) -> Option<&str> {
    resource.split_once('/')?.1.strip_prefix(PARTITION)
}
