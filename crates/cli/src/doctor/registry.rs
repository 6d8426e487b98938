//! Architectures of an image, as its registry lists them. No credentials are sent.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use oci_client::Reference;
use oci_client::client::{Client, ClientConfig, ClientProtocol};
use oci_client::errors::{OciDistributionError as Failure, OciErrorCode};
use oci_client::manifest::OciManifest;
use oci_client::secrets::RegistryAuth;
use serde_json::Value;

/// Time for all answers of a registry. Behind a firewall that drops packets, none comes.
const PATIENCE: Duration = Duration::from_secs(10);
/// Architecture of entries that are no images, such as attestations of a build.
const NO_IMAGE: &str = "unknown";

/// Reason why the architectures of an image are not known.
#[derive(Debug, PartialEq, Eq)]
pub enum Unread {
    /// The registry has the repository, but not this image.
    Absent,
    /// The registry did not answer, or wants credentials.
    Unknown(String),
}

/// Asks a registry for the architectures of an image, in Go's names (`amd64`, `arm64`).
pub async fn architectures(image: &str) -> Result<BTreeSet<String>, Unread> {
    let image: Reference = image.parse().map_err(|error| Unread::Unknown(format!("{error}")))?;
    match tokio::time::timeout(PATIENCE, ask(&image)).await {
        Ok(Ok(found)) if found.is_empty() => Err(Unread::Unknown("the registry lists none".to_owned())),
        Ok(Ok(found)) => Ok(found),
        Ok(Err(failure)) => Err(unread(failure, image.registry())),
        Err(_) => Err(Unread::Unknown(format!(
            "{} did not answer within {} s",
            image.registry(),
            PATIENCE.as_secs()
        ))),
    }
}

async fn ask(image: &Reference) -> Result<BTreeSet<String>, Failure> {
    // Fails only if a provider is there already.
    drop(tokio_rustls::rustls::crypto::ring::default_provider().install_default());
    let client = Client::new(ClientConfig {
        protocol: ClientProtocol::HttpsExcept(plain(image.resolve_registry()).into_iter().collect()),
        ..ClientConfig::default()
    });
    let anonymous = RegistryAuth::Anonymous;
    match client.pull_manifest(image, &anonymous).await?.0 {
        OciManifest::ImageIndex(index) => {
            let platforms = index.manifests.into_iter().filter_map(|entry| entry.platform);
            let names = platforms.map(|platform| platform.architecture.to_string());
            Ok(names.filter(|name| name != NO_IMAGE).collect())
        }
        OciManifest::Image(_) => {
            let (_, _, config) = client.pull_manifest_and_config(image, &anonymous).await?;
            let config: Value = serde_json::from_str(&config)?;
            Ok(config["architecture"].as_str().map(str::to_owned).into_iter().collect())
        }
    }
}

/// A registry without TLS: one on this machine, as for container engines.
fn plain(registry: &str) -> Option<String> {
    let host = registry.rsplit_once(':').map_or(registry, |(host, _)| host);
    let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    is_here.then(|| registry.to_owned())
}

fn unread(failure: Failure, registry: &str) -> Unread {
    let words = match failure {
        Failure::ImageManifestNotFoundError(_) => return Unread::Absent,
        Failure::RegistryError { envelope, .. } => {
            let is_absent = |code: &OciErrorCode| matches!(code, OciErrorCode::ManifestUnknown);
            if envelope.errors.iter().any(|error| is_absent(&error.code)) {
                return Unread::Absent;
            }
            // Some registries hide private repositories behind "unknown".
            format!("{registry} refused: {envelope}")
        }
        Failure::UnauthorizedError { .. } | Failure::AuthenticationFailure(_) => {
            format!("{registry} wants credentials")
        }
        Failure::RequestError(error) => format!("{registry} cannot be reached: {error}"),
        other => format!("{registry}: {other}"),
    };
    Unread::Unknown(words)
}
