//! Architectures of the nodes, beside those of the images.

use std::collections::{BTreeMap, BTreeSet};

use perfval_run::build::{ARCHITECTURE_LABEL, OWN_ARCHITECTURES};
use perfval_sizing::{frontend_is_pinned, trial_is_pinned};

use super::asked::Asked;
use super::check::Check;
use crate::registry;

/// Number of nodes by architecture.
type Nodes<'a> = BTreeMap<&'a str, usize>;

/// An image of the manifest, and the nodes on which its pods may run.
struct Image<'a> {
    name: &'a str,
    nodes: &'a Nodes<'a>,
    /// Advice if it fits only some of these nodes.
    remedy: String,
}

/// Compares the architectures of nodes with those of the operator's images and of the manifest's. Nodes come as their labels,
/// `None` where a kubelet reports none. No registry is contacted for pods that only amd64 nodes can get, because Dynamo's own
/// images all have that one.
pub async fn checks<'a>(
    asked: &Asked<'_>,
    with_gpus: impl Iterator<Item = Option<&'a str>>,
    all: impl Iterator<Item = Option<&'a str>>,
) -> Vec<Check> {
    let wanted = asked.object.spec.placement.node_selector.get(ARCHITECTURE_LABEL);
    let (mut with_gpus, all) = (count(with_gpus), count(all));
    with_gpus.retain(|name, _| wanted.is_none_or(|wanted| wanted == name));
    if with_gpus.is_empty() {
        return Vec::new();
    }
    let text = format!(
        "nodes with GPUs: {}; the operator's images: {}",
        in_words(&with_gpus),
        OWN_ARCHITECTURES.join(", ")
    );
    if !with_gpus.keys().any(|name| OWN_ARCHITECTURES.contains(name)) {
        return vec![Check::missing(
            text,
            format!("kubectl get nodes -L {ARCHITECTURE_LABEL}"),
        )];
    }
    let mut checks = vec![Check::good(text)];
    if asked.given() {
        for image in images(asked, &with_gpus, &all) {
            checks.push(compare(&image, registry::architectures(image.name).await));
        }
    } else if !is_amd64(&with_gpus) {
        let next = asked.command("doctor") + " -f FILE   (asks the registries for the images of a manifest)";
        checks.push(Check::worse("an image may lack an architecture of these nodes", next));
    }
    checks
}

/// Images of a manifest that may land on a node that is not amd64.
fn images<'a>(asked: &'a Asked<'_>, with_gpus: &'a Nodes<'a>, all: &'a Nodes<'a>) -> Vec<Image<'a>> {
    let spec = &asked.object.spec;
    let dynamo = spec.dynamo();
    let selector = format!("write {ARCHITECTURE_LABEL} in placement.nodeSelector");
    let frontend = if dynamo.frontend.image.is_empty() {
        &dynamo.image
    } else {
        &dynamo.frontend.image
    };
    let places = [
        (&dynamo.image, true, selector.clone()),
        (
            frontend,
            frontend_is_pinned(spec),
            format!("{selector}, and workload.dynamo.frontend.placement: WorkloadNode"),
        ),
        (
            &spec.benchmark.image,
            trial_is_pinned(spec),
            format!("{selector}, and benchmark.placement: WorkloadNode"),
        ),
    ];
    let mut known = BTreeSet::new();
    let images = places.into_iter().map(|(name, bound, remedy)| Image {
        name,
        nodes: if bound { with_gpus } else { all },
        remedy,
    });
    images
        .filter(|image| !image.name.is_empty() && !is_amd64(image.nodes))
        .filter(|image| known.insert((image.name, image.nodes)))
        .collect()
}

fn compare(image: &Image<'_>, found: Result<BTreeSet<String>, String>) -> Check {
    let Image { name, nodes, remedy } = image;
    let found = match found {
        Ok(found) => found,
        Err(why) => {
            return Check::unknown(
                format!("architectures of {name}: {why}"),
                format!("docker manifest inspect {name}"),
            );
        }
    };
    let mut others = (*nodes).clone();
    others.retain(|architecture, _| !found.contains(*architecture));
    let text = format!("{name} is for {}", Vec::from_iter(found).join(", "));
    if others.is_empty() {
        return Check::good(text);
    }
    let text = format!(
        "{text}, and its pod may get a node of another architecture: {}",
        in_words(&others)
    );
    if others.len() == nodes.len() {
        Check::missing(text, "use an image for the architecture of these nodes")
    } else {
        Check::worse(text, remedy)
    }
}

fn count<'a>(labels: impl Iterator<Item = Option<&'a str>>) -> Nodes<'a> {
    let mut counts = Nodes::new();
    for architecture in labels.flatten() {
        *counts.entry(architecture).or_default() += 1;
    }
    counts
}

fn is_amd64(nodes: &Nodes<'_>) -> bool {
    nodes.keys().eq(["amd64"].iter())
}

fn in_words(nodes: &Nodes<'_>) -> String {
    let words: Vec<_> = nodes.iter().map(|(name, count)| format!("{count} {name}")).collect();
    words.join(", ")
}
