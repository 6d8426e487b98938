//! The manifest with which krew, kubectl's plug-in manager, installs the plug-in.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Result;
use crate::source::Source;

/// The sample of the repository, with the version and the checksum of the archive for each architecture.
pub fn manifest(source: &Source, version: &str, sums: &BTreeMap<&str, String>) -> Result<String> {
    let sample = String::from_utf8(source.read("deploy/krew/perfval.yaml")?)?;
    filled(&sample, version, sums)
}

fn filled(sample: &str, version: &str, sums: &BTreeMap<&str, String>) -> Result<String> {
    let mut text = sample.replace("VERSION", version);
    for (architecture, sum) in sums {
        text = text.replace(&format!("SUM_{}", architecture.to_uppercase()), sum);
    }
    let manifest: Value = serde_saphyr::from_str(&text)?;
    let platforms = manifest["spec"]["platforms"].as_array().into_iter().flatten();
    let filled: BTreeMap<_, _> = platforms
        .filter_map(|platform| {
            let architecture = platform["selector"]["matchLabels"]["arch"].as_str()?;
            Some((architecture, platform["sha256"].as_str()?.to_owned()))
        })
        .collect();
    if filled != *sums || manifest["spec"]["version"] != format!("v{version}") {
        return Err("deploy/krew/perfval.yaml has no place for the version or for a checksum".into());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::ARCHITECTURES;

    #[test]
    fn the_sample_has_a_place_for_each_architecture() {
        let sample = include_str!("../../../deploy/krew/perfval.yaml");
        let sums = ARCHITECTURES.map(|(architecture, _)| (architecture, architecture[..2].repeat(32)));
        let sums = BTreeMap::from(sums);
        let text = filled(sample, "0.1.0", &sums).unwrap();
        for architecture in sums.keys() {
            let file = format!("/v0.1.0/kubectl-perfval-0.1.0-linux-{architecture}.tar.gz");
            assert!(text.contains(&file), "{text}");
        }
        assert!(filled(sample, "0.1.0", &BTreeMap::from([("s390x", "ab".repeat(32))])).is_err());
        assert!(filled("a: b", "0.1.0", &sums).is_err());
    }
}
