//! Architectures of the nodes with GPUs, beside those of the images.

use std::collections::{BTreeMap, BTreeSet};

use perfval_run::build::{ARCHITECTURE, ARCHITECTURES};

use super::asked::Asked;
use super::check::Check;
use super::registry::{self, Unread};

/// Number of nodes with GPUs, by architecture.
type Nodes<'a> = BTreeMap<&'a str, usize>;

/// Compares the architectures of nodes with GPUs (`None` for a node without the label) with those of the operator's images
/// and of the manifest's. No registry is contacted if all nodes are amd64: Dynamo's own images all have that one.
pub async fn checks<'a>(asked: &Asked<'_>, nodes: impl Iterator<Item = Option<&'a str>>) -> Vec<Check> {
    let wanted = asked.object.spec.placement.node_selector.get(ARCHITECTURE);
    let mut counts = Nodes::new();
    for architecture in nodes
        .flatten()
        .filter(|found| wanted.is_none_or(|wanted| wanted == found))
    {
        *counts.entry(architecture).or_default() += 1;
    }
    if counts.is_empty() {
        return Vec::new();
    }
    let text = format!(
        "nodes with GPUs: {}; the operator's images: {}",
        in_words(&counts),
        ARCHITECTURES.join(", ")
    );
    if !counts.keys().any(|name| ARCHITECTURES.contains(name)) {
        return vec![Check::missing(text, format!("kubectl get nodes -L {ARCHITECTURE}"))];
    }
    let mut checks = vec![Check::good(text)];
    if counts.keys().eq(["amd64"].iter()) {
        return checks;
    }
    if !asked.given {
        let next = "kubectl perfval doctor -f FILE   (asks the registries for the images of a manifest)";
        checks.push(Check::worse("an image may lack an architecture of these nodes", next));
        return checks;
    }
    let spec = &asked.object.spec;
    let serving = (
        &spec.dynamo().image,
        format!("write {ARCHITECTURE} in placement.nodeSelector"),
    );
    let generator = (
        &spec.benchmark.image,
        "write benchmark.placement: WorkloadNode".to_owned(),
    );
    for (image, remedy) in [serving, generator].into_iter().filter(|(image, _)| !image.is_empty()) {
        checks.push(compare(image, &registry::architectures(image).await, &counts, remedy));
    }
    checks
}

/// Compares an image with the nodes. `remedy` helps if it fits only some of them.
fn compare(image: &str, found: &Result<BTreeSet<String>, Unread>, nodes: &Nodes<'_>, remedy: String) -> Check {
    let found = match found {
        Ok(found) => found,
        Err(Unread::Absent) => {
            return Check::missing(
                format!("its registry has no {image}"),
                "correct the image in the manifest",
            );
        }
        Err(Unread::Unknown(why)) => {
            return Check::unknown(
                format!("architectures of {image}: {why}"),
                format!("docker manifest inspect {image}"),
            );
        }
    };
    let others: Nodes<'_> = nodes
        .iter()
        .filter(|(name, _)| !found.contains(**name))
        .map(|(name, count)| (*name, *count))
        .collect();
    let text = format!(
        "{image} is for {}",
        found.iter().cloned().collect::<Vec<_>>().join(", ")
    );
    if others.is_empty() {
        return Check::good(text);
    }
    let text = format!("{text}; it cannot run on nodes with GPUs: {}", in_words(&others));
    if others.len() == nodes.len() {
        Check::missing(text, "use an image for the architecture of these nodes")
    } else {
        Check::worse(text, remedy)
    }
}

fn in_words(nodes: &Nodes<'_>) -> String {
    let words: Vec<_> = nodes.iter().map(|(name, count)| format!("{count} {name}")).collect();
    words.join(", ")
}
