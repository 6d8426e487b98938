use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

use flate2::{Compression, GzBuilder};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use perfval_api::{Verdict, Why};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::meta::metadata;
use crate::{Run, names};

/// Annotation: SHA-256 (hex) over the content, see [`results_sha256`].
pub const SHA256: &str = "perfvalidation.dev/sha256";
/// Key of the summary.
pub const SUMMARY: &str = "summary.json";
/// Component label of the ConfigMap.
pub const RESULTS: &str = "results";
/// Most bytes of content. The API server takes 1 MiB; the rest is for keys, metadata and the server's own fields.
const CONTENT_MAX: usize = 900 * 1024;
/// Kept free for the names of what does not fit: at most 20 trials, a line each.
const OMITTED_MAX: usize = 2 * 1024;

/// The ConfigMap with everything measured: a summary, and each trial's payload (key: its number) as gzip. It outlives the
/// cleanup and goes with the object. Trials are added from the first on; those that do not fit any more are named under
/// `omitted.txt` instead.
pub fn results(run: &Run<'_>, verdict: Verdict, why: &Why, payloads: &BTreeMap<i64, String>) -> ConfigMap {
    let summary = summary(run, verdict, why);
    let mut free = CONTENT_MAX.saturating_sub(OMITTED_MAX + summary.len());
    let mut data = BTreeMap::from([(SUMMARY.to_owned(), summary)]);
    let mut binary_data = BTreeMap::new();
    let mut omitted = Vec::new();
    for (trial, payload) in payloads {
        let packed = gzip(payload);
        if packed.len() <= free {
            free -= packed.len();
            binary_data.insert(format!("trial-{trial}.json.gz"), ByteString(packed));
        } else {
            omitted.push(format!(
                "trial {trial}: {} bytes packed, too big for this ConfigMap\n",
                packed.len()
            ));
        }
    }
    if !omitted.is_empty() {
        data.insert("omitted.txt".to_owned(), omitted.concat());
    }

    let id = run.id();
    let mut results = ConfigMap {
        metadata: metadata(run, names::results(run.name(), &id), RESULTS),
        data: Some(data),
        binary_data: Some(binary_data),
        immutable: None,
    };
    let sum = results_sha256(&results);
    results.metadata.annotations = Some([(SHA256.to_owned(), sum)].into());
    results
}

/// SHA-256 (hex) over keys and values of a results ConfigMap, each with its length; metadata does not count.
pub fn results_sha256(results: &ConfigMap) -> String {
    let texts = results.data.iter().flatten().map(|(key, text)| (key, text.as_bytes()));
    let binaries = results
        .binary_data
        .iter()
        .flatten()
        .map(|(key, bytes)| (key, bytes.0.as_slice()));
    let mut digest = Sha256::new();
    for (key, value) in texts.chain(binaries) {
        digest.update(format!("{key} {}\n", value.len()));
        digest.update(value);
    }
    digest.finalize().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The verdict, and the part of the status that no later phase changes.
fn summary(run: &Run<'_>, verdict: Verdict, why: &Why) -> String {
    let status = run.status();
    let summary = json!({
        "object": { "namespace": run.namespace(), "name": run.name(), "uid": run.uid() },
        "run": status.run.as_ref().map(|run| json!({
            "number": run.number, "id": run.id, "trigger": run.trigger, "generation": run.generation, "startedAt": run.started_at,
        })),
        "verdict": verdict,
        "reason": why.reason.as_str(),
        "message": why.message,
        "environment": status.environment,
        "placement": status.placement,
        "metrics": status.metrics,
        "gates": status.gates,
        "trials": status.trials,
        "diagnosis": status.diagnosis,
    });
    format!("{summary:#}\n")
}

/// The same bytes for the same text: no time, no name, no operating system.
fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzBuilder::new()
        .mtime(0)
        .operating_system(255)
        .write(Vec::new(), Compression::best());
    // A Vec takes every write.
    let _ = encoder.write_all(text.as_bytes());
    encoder.finish().unwrap_or_default()
}
