//! The manifest with which krew, kubectl's plug-in manager, installs the plug-in.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::Result;
use crate::source::Source;

/// The sample of the repository, with version, architecture and sum of this release.
pub fn manifest(source: &Source, version: &str, architecture: &str, archive: &[u8]) -> Result<String> {
    let sample = String::from_utf8(source.read("deploy/krew/perfval.yaml")?)?;
    filled(
        &sample,
        version,
        architecture,
        &format!("{:x}", Sha256::digest(archive)),
    )
}

fn filled(sample: &str, version: &str, architecture: &str, sum: &str) -> Result<String> {
    let text = sample
        .replace("VERSION", version)
        .replace("ARCHITECTURE", architecture)
        .replace("SUM", sum);
    let manifest: Value = serde_saphyr::from_str(&text)?;
    let platform = &manifest["spec"]["platforms"][0];
    if platform["sha256"] != sum || manifest["spec"]["version"] != format!("v{version}") {
        return Err("deploy/krew/perfval.yaml has no place for version and sum".into());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_has_a_place_for_everything_that_a_release_knows() {
        let sample = include_str!("../../../deploy/krew/perfval.yaml");
        let text = filled(sample, "0.1.0", "amd64", &"ab".repeat(32)).unwrap();
        assert!(
            text.contains("/v0.1.0/kubectl-perfval-0.1.0-linux-amd64.tar.gz"),
            "{text}"
        );
        let manifest: Value = serde_saphyr::from_str(&text).unwrap();
        let platform = &manifest["spec"]["platforms"][0];
        assert_eq!(
            (&platform["bin"], &platform["selector"]["matchLabels"]["arch"]),
            (&"kubectl-perfval".into(), &"amd64".into())
        );
        assert!(filled("a: b", "0.1.0", "amd64", "ab").is_err());
    }
}
