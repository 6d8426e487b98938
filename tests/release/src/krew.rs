//! The manifest with which krew, kubectl's plug-in manager, installs the plug-in.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Result;
use crate::source::Source;

/// Checksums of the archives, by operating system and architecture.
type Sums<'a> = BTreeMap<(&'a str, &'a str), String>;

/// The sample of the repository, with the version and the checksum of the archive for each platform.
pub fn manifest(source: &Source, version: &str, sums: &Sums<'_>) -> Result<String> {
    let sample = String::from_utf8(source.read("deploy/krew/perfval.yaml")?)?;
    filled(&sample, version, sums)
}

fn filled(sample: &str, version: &str, sums: &Sums<'_>) -> Result<String> {
    let mut text = without_missing(sample, sums).replace("VERSION", version);
    for ((os, architecture), sum) in sums {
        text = text.replace(&place(os, architecture), sum);
    }
    let manifest: Value = serde_saphyr::from_str(&text)?;
    let platforms = manifest["spec"]["platforms"].as_array().into_iter().flatten();
    let filled: BTreeMap<_, _> = platforms
        .filter_map(|platform| {
            let labels = &platform["selector"]["matchLabels"];
            let of = (labels["os"].as_str()?, labels["arch"].as_str()?);
            Some((of, platform["sha256"].as_str()?.to_owned()))
        })
        .collect();
    if filled != *sums || manifest["spec"]["version"] != format!("v{version}") {
        return Err("deploy/krew/perfval.yaml has no place for the version or for a checksum".into());
    }
    Ok(text)
}

/// The sample without the platforms that the release has no archive for.
fn without_missing(sample: &str, sums: &Sums<'_>) -> String {
    let mut parts = sample.split(PLATFORM);
    let head = parts.next().unwrap_or_default().to_owned();
    let is_there = |part: &&str| {
        let mut known = sums.keys();
        known.any(|(os, architecture)| part.contains(&place(os, architecture)))
    };
    parts.filter(is_there).fold(head, |text, part| text + PLATFORM + part)
}

/// First line of a platform.
const PLATFORM: &str = "    - selector:\n";

/// Place of a checksum in the sample.
fn place(os: &str, architecture: &str) -> String {
    format!("SUM_{os}_{architecture}").to_uppercase()
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::names::PLATFORMS;

    #[test]
    fn the_sample_has_a_place_for_each_platform() {
        let sample = include_str!("../../../deploy/krew/perfval.yaml");
        let sums = PLATFORMS.map(|(os, architecture, _)| {
            let sum = format!("{:x}", Sha256::digest(format!("{os} {architecture}")));
            ((os, architecture), sum)
        });
        let sums = BTreeMap::from(sums);
        let text = filled(sample, "0.1.0", &sums).unwrap();
        for (os, architecture) in sums.keys() {
            let file = format!("/v0.1.0/kubectl-perfval-0.1.0-{os}-{architecture}.tar.gz");
            assert!(text.contains(&file), "{text}");
        }
        let linux = sums.into_iter().filter(|((os, _), _)| *os == "linux").collect();
        let text = filled(sample, "0.1.0", &linux).unwrap();
        assert!(text.contains("linux-arm64") && !text.contains("darwin"), "{text}");
        let other = BTreeMap::from([(("linux", "s390x"), "ab".repeat(32))]);
        assert!(filled(sample, "0.1.0", &other).is_err());
        assert!(filled("a: b", "0.1.0", &linux).is_err());
    }
}
