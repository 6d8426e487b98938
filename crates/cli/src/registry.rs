//! Architectures of an image, as its registry lists them. No credentials are sent.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use oci_client::Reference;
use oci_client::client::{Client, ClientConfig, ClientProtocol};
use oci_client::errors::OciDistributionError as Failure;
use oci_client::manifest::OciManifest;
use oci_client::secrets::RegistryAuth;
use perfval_api::text::cut;
use serde_json::Value;

use crate::error::innermost;

/// Time for all answers of a registry. Behind a firewall that drops packets, none comes.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest reason (bytes).
const REASON: usize = 200;
/// Largest configuration of an image that is read (bytes).
const CONFIGURATION: i64 = 4 << 20;

/// Asks a registry for the architectures of an image, in Go's names (`amd64`, `arm64`). The error is the reason why they are
/// not known.
pub async fn architectures(image: &str) -> Result<BTreeSet<String>, String> {
    let image: Reference = image.parse().map_err(|_| "it is no reference of an image".to_owned())?;
    let registry = image.resolve_registry();
    let found = match tokio::time::timeout(PATIENCE, ask(&image)).await {
        Ok(found) => found.map_err(|failure| reason(&failure, registry))?,
        Err(_) => return Err(format!("{registry} did not answer within {} s", PATIENCE.as_secs())),
    };
    if found.is_empty() {
        return Err(format!("{registry} lists none for Linux"));
    }
    Ok(found)
}

async fn ask(image: &Reference) -> Result<BTreeSet<String>, Failure> {
    // Fails only if a provider is there already.
    drop(tokio_rustls::rustls::crypto::ring::default_provider().install_default());
    let config = ClientConfig {
        protocol: ClientProtocol::HttpsExcept(plain(image.resolve_registry()).into_iter().collect()),
        ..ClientConfig::default()
    };
    // Without any CA certificate `Client::new` panics.
    let client = Client::try_from(config)?;
    let names = match client.pull_manifest(image, &RegistryAuth::Anonymous).await?.0 {
        OciManifest::ImageIndex(index) => {
            let platforms = index.manifests.into_iter().filter_map(|entry| entry.platform);
            // Entries of a build's attestations have the system "unknown".
            let linux = platforms.filter(|platform| platform.os.to_string() == "linux");
            linux.map(|platform| platform.architecture.to_string()).collect()
        }
        OciManifest::Image(manifest) if manifest.config.size > CONFIGURATION => BTreeSet::new(),
        OciManifest::Image(manifest) => {
            let mut config = Vec::new();
            client.pull_blob(image, &manifest.config, &mut config).await?;
            let config: Value = serde_json::from_slice(&config)?;
            let linux = config["os"] == "linux";
            let name = config["architecture"].as_str().filter(|_| linux);
            name.map(str::to_owned).into_iter().collect()
        }
    };
    Ok(names)
}

/// A registry without TLS: one on this machine, as for container engines.
fn plain(registry: &str) -> Option<String> {
    let host = registry.rsplit_once(':').map_or(registry, |(host, _)| host);
    let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    is_here.then(|| registry.to_owned())
}

/// Reason in one line. A registry, or a proxy before it, may answer with a page of any content.
fn reason(failure: &Failure, registry: &str) -> String {
    let words = match failure {
        Failure::RegistryError { envelope, .. } => {
            let codes: Vec<_> = envelope
                .errors
                .iter()
                .map(|error| format!("{:?}", error.code))
                .collect();
            format!(
                "{registry} refused ({}): it has none, or wants credentials",
                codes.join(", ")
            )
        }
        Failure::UnauthorizedError { .. } | Failure::AuthenticationFailure(_) => {
            format!("{registry} wants credentials")
        }
        Failure::ServerError { code, .. } => format!("{registry} answered with HTTP {code}"),
        Failure::RequestError(error) => format!("{registry} cannot be reached: {}", innermost(error)),
        other => format!("{registry}: {other}"),
    };
    let words: String = words.chars().filter(|c| !c.is_control()).collect();
    cut(&words, REASON)
}
