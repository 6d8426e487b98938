//! Architectures of the nodes with GPUs, beside those of the operator's images. For other images, ask their registries.

use std::collections::BTreeMap;

use super::asked::Asked;
use super::check::Check;

/// Label in which each kubelet reports its architecture.
pub const LABEL: &str = "kubernetes.io/arch";
/// Architectures of the operator's own images, as the workflow `release` builds them.
const OWN_IMAGES: [&str; 2] = ["amd64", "arm64"];

/// Compares the architectures of nodes with GPUs (`None` for a node without the label) with those of the operator's images.
pub fn check<'a>(asked: &Asked<'_>, nodes: impl Iterator<Item = Option<&'a str>>) -> Option<Check> {
    let wanted = asked.object.spec.placement.node_selector.get(LABEL);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for architecture in nodes
        .flatten()
        .filter(|found| wanted.is_none_or(|wanted| wanted == found))
    {
        *counts.entry(architecture).or_default() += 1;
    }
    let found: Vec<_> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let text = format!(
        "nodes with GPUs: {}; the operator's images: {}",
        found.join(", "),
        OWN_IMAGES.join(", ")
    );
    let image = if asked.given {
        asked.object.spec.dynamo().image.as_str()
    } else {
        "IMAGE"
    };
    let inspect = format!("docker manifest inspect {image}   (shows its architectures)");
    let is_own = |name: &&str| OWN_IMAGES.contains(name);
    match counts.keys().copied().collect::<Vec<_>>().as_slice() {
        [] => None,
        names if !names.iter().any(is_own) => Some(Check::missing(text, format!("kubectl get nodes -L {LABEL}"))),
        // Dynamo's own images have this one.
        ["amd64"] => Some(Check::good(text)),
        [_] => Some(Check::worse(text, inspect)),
        _ => Some(Check::worse(
            format!("{text}; an image for one of them fails on the others: write {LABEL} in placement.nodeSelector"),
            inspect,
        )),
    }
}
