use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use perfval_api::{Environment, PerfValidationStatus, Verdict, Why};
use perfval_verdict::environment;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::meta::metadata;
use super::packing::{CONTENT_MAX, PackedTrial, pack};
use crate::{Run, names};

/// Annotation: SHA-256 (hex) over the content, see [`results_sha256`].
pub const SHA256: &str = "perfvalidation.dev/sha256";
/// Key of the summary.
pub const SUMMARY: &str = "summary.json";
/// End of the key of a trial's log lines.
pub const LOG: &str = ".log";
/// Component label of the ConfigMap.
pub const RESULTS: &str = "results";
/// Kept free for what does not fit: at most 20 trials and a soak, a line each.
const NOTES_MAX: usize = 2 * 1024;

/// Contents of the summary in a results ConfigMap.
#[derive(Clone, Debug, Deserialize)]
pub struct Summary {
    /// Namespace, name and uid of the validation.
    #[serde(default)]
    pub object: ObjectMeta,
    /// Status when the results were saved. As in any status, the exact numbers are in the operator's state.
    #[serde(flatten)]
    pub status: PerfValidationStatus,
}

/// The ConfigMap with all measurements: a summary, and each trial (key: its number) as gzip. It outlives the cleanup
/// and goes with the object. If the trials are too large for it, their samples are thinned, and `thinned.txt` lists
/// them. Trials that do not fit even so are left out, and `omitted.txt` lists them. `logs`: last lines of frontend
/// and workers in trials with errors (`trial-<n>.log`).
pub fn results(
    run: &Run<'_>,
    verdict: Verdict,
    why: &Why,
    trials: &BTreeMap<i64, PackedTrial>,
    logs: &BTreeMap<i64, String>,
) -> ConfigMap {
    let summary = summary(run, verdict, why);
    let texts = summary.len() + logs.values().map(String::len).sum::<usize>();
    let free = CONTENT_MAX.saturating_sub(NOTES_MAX + texts);
    let packed = pack(trials, free);
    let mut data = BTreeMap::from([(SUMMARY.to_owned(), summary)]);
    data.extend(
        logs.iter()
            .map(|(trial, text)| (format!("trial-{trial}{LOG}"), text.clone())),
    );
    for (key, lines) in [("thinned.txt", packed.thinned), ("omitted.txt", packed.omitted)] {
        if !lines.is_empty() {
            data.insert(key.to_owned(), lines.concat());
        }
    }
    let key = |(trial, bytes)| (format!("trial-{trial}.json.gz"), ByteString(bytes));
    let binary_data = packed.trials.into_iter().map(key).collect();

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
    format!("{:x}", digest.finalize())
}

/// The verdict, and the part of the status that no later phase changes.
fn summary(run: &Run<'_>, verdict: Verdict, why: &Why) -> String {
    let (status, id) = (run.status(), run.id());
    // The status has the digest only once the run ends, which is after this.
    let environment = status.state.environment.as_ref().map(|known| Environment {
        digest: Some(environment::digest(known)),
        ..known.clone()
    });
    let summary = json!({
        "object": { "namespace": run.namespace(), "name": run.name(), "uid": run.uid() },
        "run": status.run.as_ref().map(|run| json!({
            "number": run.number, "id": id, "trigger": run.trigger, "generation": run.generation, "startedAt": run.started_at,
        })),
        "verdict": verdict,
        "reason": why.reason.as_str(),
        "message": why.message,
        "environment": environment,
        "placement": status.placement,
        "plan": { "deviceIds": status.state.plan.device_ids, "expectedBy": status.state.plan.expected_by },
        "thresholds": status.state.thresholds,
        "metrics": status.state.metrics,
        "gates": status.gates,
        "trials": status.state.trials,
        "workerPods": status.state.worker_pods,
        "diagnosis": status.diagnosis,
    });
    format!("{summary:#}\n")
}

/// Reads the summary of a results ConfigMap. Fields that its version did not write are empty.
pub fn read_summary(results: &ConfigMap) -> Result<Summary, String> {
    let text = results.data.as_ref().and_then(|data| data.get(SUMMARY));
    let text = text.ok_or_else(|| format!("it has no {SUMMARY}: perhaps another version of the operator wrote it"))?;
    parse(text).map_err(|error| {
        format!("{SUMMARY} cannot be read, perhaps because another version of the operator wrote it: {error}")
    })
}

fn parse(text: &str) -> serde_json::Result<Summary> {
    let mut fields: Map<String, Value> = serde_json::from_str(text)?;
    let exact: Map<String, Value> = ["environment", "metrics", "plan", "thresholds", "trials", "workerPods"]
        .into_iter()
        .filter_map(|name| fields.remove_entry(name))
        .filter(|(_, value)| !value.is_null())
        .collect();
    let mut summary: Summary = serde_json::from_value(Value::Object(fields))?;
    summary.status.state = serde_json::from_value(Value::Object(exact))?;
    Ok(summary)
}
