//! Versions of Dynamo, as far as compatibility needs them.

use std::fmt;

/// MAJOR.MINOR: Dynamo promises nothing across minors (frontend and workers must share one).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// MAJOR
    pub major: u32,
    /// MINOR
    pub minor: u32,
}

impl Version {
    /// Reads `1.4.2`, `v1.4.2` or `1.2.1-cuda13`; `None` for anything that is not a release number.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts = text.splitn(3, '.');
        let (major, minor) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        parts
            .next()?
            .starts_with(|first: char| first.is_ascii_digit())
            .then_some(Self { major, minor })
    }

    /// The version in an image's tag; `None` for digests, `latest` and other tags.
    pub fn from_image(image: &str) -> Option<Self> {
        let name = image.split('@').next()?;
        let (_, tag) = name.rsplit('/').next()?.split_once(':')?;
        Self::parse(tag)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_release_tags_name_a_version() {
        let version = |major, minor| Some(Version { major, minor });
        let cases = [
            ("nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.6.1", version(1, 6)),
            ("vllm-runtime:1.2.1-cuda13", version(1, 2)),
            ("registry:5000/vllm-runtime:v1.4.2", version(1, 4)),
            ("registry:5000/vllm-runtime:1.4.2@sha256:00", version(1, 4)),
            ("registry:5000/vllm-runtime", None),
            ("vllm-runtime:latest", None),
            ("vllm-runtime:20260101", None),
            ("vllm-runtime:1.4", None),
            ("", None),
        ];
        for (image, expected) in cases {
            assert_eq!(Version::from_image(image), expected, "{image}");
        }
    }
}
