//! Number of GPUs that a node should have. A GPU that fell off the bus is missing from every list, so other sources
//! must show it.

use std::collections::BTreeMap;

use perfval_api::{ExpectedBy, ExpectedGpus};

use crate::inventory::Node;

/// Label in which NVIDIA's feature discovery gives the product of a node's GPUs.
pub const PRODUCT: &str = "nvidia.com/gpu.product";
/// GPUs that NVIDIA's feature discovery counted.
pub const COUNT: &str = "nvidia.com/gpu.count";
/// With both partitions and whole GPUs, the count is not that of either.
const MIG_STRATEGY: &str = "nvidia.com/mig.strategy";
/// The machine type. Where it is not set, all nodes of a product are alike.
const MACHINE: &str = "node.kubernetes.io/instance-type";

/// GPUs that a node should have according to the spec, or else to the node itself. `shown` is the number that it
/// shows. The label counts all GPUs of the machine, so it proves nothing if the class holds only some of them.
pub fn by_itself(spec: Option<i32>, node: &Node, shown: i64, class_holds_all: bool) -> ExpectedGpus {
    let label = node.label(COUNT).and_then(|count| count.parse().ok());
    let counts_these = class_holds_all && node.label(MIG_STRATEGY) != Some("mixed");
    let counted = label.filter(|count| counts_these && *count > shown);
    let (gpus, by) = match (spec, counted) {
        (Some(gpus), _) => (gpus.into(), ExpectedBy::Spec),
        (None, Some(gpus)) => (gpus, ExpectedBy::Label),
        (None, None) => (shown, ExpectedBy::Node),
    };
    ExpectedGpus { gpus, by }
}

/// GPUs that most other nodes of the same product and machine type show, if at least two of them do and it is more
/// than `known`. `all` are the nodes with the GPUs that they show.
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
