//! The lab has no registry. Its images get the names under which ours are published, so that commands need no change.

use std::collections::BTreeSet;
use std::fs;

use perfval_e2e::Lab;
use serde_json::Value;

use crate::Outcome;

const CONTAINERD: &str = "/run/containerd/containerd.sock";

/// What the lab has for an image of `config/default`.
const OF_THE_LAB: [(&str, &str); 2] = [
    ("perfvalidation-operator", "localhost/perfvalidation-operator:lab"),
    ("perfvalidation-aiperf", "localhost/dynamo-lab:1.4.2"),
];

/// Names the lab's images as `config/default` and the chart do.
pub async fn name_as_published(lab: &Lab) -> Outcome<()> {
    let kustomization: Value = serde_saphyr::from_slice(&fs::read("config/default/kustomization.yaml")?)?;
    let images = kustomization["images"]
        .as_array()
        .ok_or("config/default names no images")?;
    for (name, present) in OF_THE_LAB {
        let image = images.iter().find(|image| image["name"] == name);
        let image = image.ok_or_else(|| format!("config/default does not name {name}"))?;
        let word = |field: &str| image[field].as_str().ok_or_else(|| format!("{name} has no {field}"));
        let published = format!("{}:{}", word("newName")?, word("newTag")?);
        let ctr = ["exec", "--", "ctr", "--address", CONTAINERD, "-n", "k8s.io"];
        // The files of `just release` name the release to which a version in development leads.
        for name in BTreeSet::from([published.as_str(), published.trim_end_matches("-dev")]) {
            let tag = ["images", "tag", "--force", present, name];
            lab.run(&[&ctr[..], &tag[..]].concat()).await;
            println!("{present} is also {name}");
        }
    }
    Ok(())
}
