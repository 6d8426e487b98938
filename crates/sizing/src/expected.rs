//! How many GPUs a node should have. One that fell off the bus is in no list any more, so other sources must show it.

use std::collections::BTreeMap;

use perfval_api::{ExpectedBy, ExpectedGpus};

use crate::inventory::Node;

/// What NVIDIA's feature discovery calls the GPUs of a node.
pub const PRODUCT: &str = "nvidia.com/gpu.product";
/// GPUs that NVIDIA's feature discovery counted.
pub const COUNT: &str = "nvidia.com/gpu.count";
/// With both partitions and whole GPUs, the count is not that of either.
const MIG_STRATEGY: &str = "nvidia.com/mig.strategy";
/// The machine type. Where it is not set, all nodes of a product are alike.
const MACHINE: &str = "node.kubernetes.io/instance-type";

/// What a node should have by the spec, or else by what the node itself says. `shown` are its GPUs; the label is that of all
/// GPUs of the machine, so it proves nothing where the class holds only some of them.
pub fn by_itself(spec: Option<i32>, node: &Node, shown: i64, class_holds_all: bool) -> ExpectedGpus {
    if let Some(gpus) = spec {
        let (gpus, by) = (gpus.into(), ExpectedBy::Spec);
        return ExpectedGpus { gpus, by };
    }
    let label = node.label(COUNT).and_then(|count| count.parse().ok());
    let counts_these = class_holds_all && node.label(MIG_STRATEGY) != Some("mixed");
    match label.filter(|count| counts_these && *count > shown) {
        Some(gpus) => ExpectedGpus {
            gpus,
            by: ExpectedBy::Label,
        },
        None => ExpectedGpus {
            gpus: shown,
            by: ExpectedBy::Node,
        },
    }
}

/// What most other nodes of the same product and machine type show, if that is more than `known` and at least two do. `all`
/// are the nodes with the GPUs that they show.
pub fn by_peers<'n>(
    node: &'n Node,
    known: i64,
    all: impl Iterator<Item = (&'n Node, i64)> + Clone,
    product: impl Fn(&'n Node) -> Option<&'n str>,
) -> Option<ExpectedGpus> {
    // In most clusters no node shows more, and nothing has to be compared.
    all.clone().find(|(_, shown)| *shown > known)?;
    let machine = node.label(MACHINE);
    let wanted = product(node)?;
    let alike = |(other, shown): &(&'n Node, i64)| {
        *shown > 0 && other.name != node.name && other.label(MACHINE) == machine && product(other) == Some(wanted)
    };
    let mut shown: BTreeMap<i64, usize> = BTreeMap::new();
    for (_, gpus) in all.filter(alike) {
        *shown.entry(gpus).or_default() += 1;
    }
    let peers: usize = shown.values().sum();
    let usual = shown.into_iter().find(|(_, nodes)| nodes * 2 > peers && *nodes >= 2);
    let (gpus, _) = usual.filter(|(gpus, _)| *gpus > known)?;
    let by = ExpectedBy::Peers;
    Some(ExpectedGpus { gpus, by })
}
