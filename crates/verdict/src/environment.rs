//! Environment of a run, field by field: runs with equal environments may be compared.

use perfval_api::text::cut;
use perfval_api::{EarlierRun, Environment, PerfValidationSpec, PerfValidationStatus};
use serde_json::json;
use sha2::{Digest, Sha256};

/// Hex digits of a digest: enough to distinguish ten runs, short enough to read.
pub(crate) const DIGEST: usize = 12;
/// Longest difference (bytes).
const DIFFERENCE: usize = 160;

/// One field that a comparison must match.
struct EnvironmentField {
    name: &'static str,
    /// Value that is compared; `None` if unknown.
    key: Option<String>,
    /// Text that people read.
    shown: String,
    /// True if two runs may still be the same when the value is unknown in both.
    may_be_unknown: bool,
}

/// The fields that make two runs comparable. Kubernetes' version is recorded, but does not serve requests.
fn fields(environment: &Environment) -> [EnvironmentField; 9] {
    let known = |name, value: Option<String>| EnvironmentField {
        name,
        shown: value.clone().unwrap_or_default(),
        key: value,
        may_be_unknown: false,
    };
    let image = environment.image_digest.as_deref().map(content);
    let short = image.map_or(String::new(), |digest| format!(" ({})", cut(digest, 22)));
    [
        known("model", Some(environment.model.clone())),
        EnvironmentField {
            may_be_unknown: true,
            ..known("revision", environment.revision.clone())
        },
        EnvironmentField {
            shown: format!("{}{short}", environment.image),
            ..known("image", image.map(str::to_owned))
        },
        known("settings", environment.settings.clone()),
        known("gpuProduct", environment.gpu_product.clone()),
        known("gpus", environment.gpus.map(|gpus| gpus.to_string())),
        known("gpuDriver", environment.gpu_driver.clone()),
        // Its operator does not serve requests: where it has no version, the image has one.
        EnvironmentField {
            may_be_unknown: true,
            ..known("dynamo", environment.dynamo.clone())
        },
        known("aiperf", environment.aiperf.clone()),
    ]
}

/// The digest of an image id, without the registry that it came from.
fn content(image_id: &str) -> &str {
    image_id.rfind("sha256:").map_or(image_id, |at| &image_id[at..])
}

/// Digest of the comparable fields (12 hex digits). Equal digests: equal environments. One with an unknown field has one
/// too, but is never [the same](differences) as another.
pub fn digest(environment: &Environment) -> String {
    let keys: Vec<_> = fields(environment).into_iter().map(|field| field.key).collect();
    hex(&json!(keys).to_string(), DIGEST)
}

/// Completes an environment with the facts that come from a trial: AIPerf's version, and the commit of the model. The first
/// commit stays, because it is nearest to the time at which the engines loaded the weights.
pub fn complete(environment: &mut Environment, aiperf: Option<&String>, commit: Option<&String>) {
    if let Some(version) = aiperf {
        environment.aiperf = Some(version.clone());
    }
    if let Some(commit) = commit {
        environment.commit.get_or_insert_with(|| commit.clone());
    }
}

/// Difference between the commits that AIPerf loaded, where the spec leaves them open. It is no part of the digest: most commits
/// of a model change its description only, and each would start all comparisons again.
pub(crate) fn other_commit(before: &Environment, now: &Environment) -> Option<String> {
    let is_open = before.revision.is_none() && now.revision.is_none();
    let (before, now) = before.commit.as_ref().zip(now.commit.as_ref()).filter(|_| is_open)?;
    (before != now).then(|| format!("commit {before}, now {now}"))
}

/// Differences that keep two runs from being compared, in words; empty if they can be.
pub fn differences(before: &Environment, now: &Environment) -> Vec<String> {
    fields(before)
        .into_iter()
        .zip(fields(now))
        .filter_map(|(before, now)| {
            let name = now.name;
            let text = match (&before.key, &now.key) {
                (None, None) if now.may_be_unknown => return None,
                (None, None) => format!("{name} is not known"),
                (Some(_), None) => format!("{name} {}, now not known", before.shown),
                (None, Some(_)) => format!("{name} was not known, now {}", now.shown),
                (Some(one), Some(other)) if one == other => return None,
                (Some(_), Some(_)) => format!("{name} {}, now {}", before.shown, now.shown),
            };
            Some(text)
        })
        .chain(other_commit(before, now))
        .map(|text| cut(&text, DIFFERENCE))
        .collect()
}

/// Returns true if everything that a comparison needs is known.
pub fn is_known(environment: &Environment) -> bool {
    differences(environment, environment).is_empty()
}

/// Earlier runs in the environment of this one, apart from the run whose trials it judges again; none while the environment is
/// not known.
pub(crate) fn comparable_runs(status: &PerfValidationStatus) -> impl Iterator<Item = &EarlierRun> {
    let known = status.state.environment.as_ref().filter(|now| is_known(now));
    let (digest, itself) = (known.map(digest), status.state.judged_run);
    let runs = status.state.history.iter();
    runs.filter(move |entry| digest.is_some() && entry.environment == digest && Some(entry.run) != itself)
}

/// Digest (8 hex digits) of the spec's load and workload but model, engines' and AIPerf's image: other flags or another
/// concurrency are another measurement.
pub fn settings(spec: &PerfValidationSpec) -> String {
    let (dynamo, benchmark) = (spec.dynamo(), &spec.benchmark);
    let settings = json!({
        "routerMode": dynamo.router_mode,
        "worker": dynamo.worker,
        "frontend": dynamo.frontend,
        "env": dynamo.env,
        "runtimeClassName": spec.pod_template.spec.runtime_class_name,
        "generator": benchmark.placement,
        "generatorResources": benchmark.resources,
        "concurrencyPerGPU": benchmark.concurrency_per_gpu,
        "inputTokens": benchmark.input_tokens,
        "outputTokens": benchmark.output_tokens,
        "duration": benchmark.duration(),
        "soak": benchmark.soak,
        "requestsPerConcurrency": benchmark.requests_per_concurrency,
        "minRequests": benchmark.min_requests,
        "warmupPerConcurrency": benchmark.warmup_per_concurrency,
        "randomSeed": benchmark.random_seed,
        "datasetEntries": benchmark.dataset_entries,
        "extraInputs": benchmark.extra_inputs,
        "requestTimeout": benchmark.request_timeout,
        "tokenizer": benchmark.tokenizer,
        "extraArgs": benchmark.extra_args,
    });
    hex(&settings.to_string(), 8)
}

pub(crate) fn hex(text: &str, digits: usize) -> String {
    format!("{:.digits$x}", Sha256::digest(text))
}

#[cfg(test)]
mod tests {
    use perfval_testkit::environment::known as environment;

    use super::*;

    #[test]
    fn a_difference_is_named_and_changes_the_digest() {
        let base = environment();
        let changed = |change: fn(&mut Environment)| {
            let mut other = environment();
            change(&mut other);
            other
        };
        let same = [
            changed(|e| e.kubernetes = Some("v1.37.0".into())),
            // Another registry, or another tag, of the very image.
            changed(|e| e.image_digest = Some("sha256:aa".into())),
            changed(|e| e.image = "mirror/vllm-runtime:latest".into()),
        ];
        for other in same {
            assert_eq!(differences(&base, &other), Vec::<String>::new());
            assert_eq!(digest(&base), digest(&other));
        }
        let different = [
            (
                changed(|e| e.gpu_driver = Some("580.95.5".into())),
                "gpuDriver 580.82.7, now 580.95.5",
            ),
            (changed(|e| e.gpus = Some(4)), "gpus 8, now 4"),
            (
                changed(|e| e.revision = Some("b9".into())),
                "revision was not known, now b9",
            ),
            (
                changed(|e| e.image_digest = Some("sha256:bb".into())),
                "image vllm-runtime:1.4.2 (sha256:aa), now vllm-runtime:1.4.2 (sha256:bb)",
            ),
            (
                changed(|e| e.settings = Some("89abcdef".into())),
                "settings 01234567, now 89abcdef",
            ),
            (changed(|e| e.aiperf = None), "aiperf 0.13.0, now not known"),
            (changed(|e| e.dynamo = None), "dynamo 1.4.2, now not known"),
        ];
        for (other, text) in different {
            assert_eq!(differences(&base, &other), [text]);
            assert_ne!(digest(&base), digest(&other), "{text}");
        }
    }

    #[test]
    fn the_commit_of_the_first_trial_is_compared_and_is_not_in_the_digest() {
        let completed = |revision: Option<&str>, commits: &[Option<&str>]| {
            let mut completed = Environment {
                revision: revision.map(str::to_owned),
                aiperf: None,
                ..environment()
            };
            for commit in commits {
                let commit = commit.map(str::to_owned);
                complete(&mut completed, Some(&"0.13.0".to_owned()), commit.as_ref());
            }
            assert_eq!(completed.aiperf.as_deref(), Some("0.13.0"));
            completed
        };
        let first = completed(None, &[None, Some("b9"), Some("c0")]);
        assert_eq!(first.commit.as_deref(), Some("b9"));
        let other = completed(None, &[Some("c0")]);
        assert_eq!(differences(&first, &other), ["commit b9, now c0"]);
        assert_eq!(digest(&first), digest(&other));
        assert_eq!(
            differences(&first, &completed(None, &[None])),
            Vec::<String>::new(),
            "not known"
        );
        let pinned = |commit| completed(Some("a8"), &[Some(commit)]);
        assert_eq!(
            differences(&pinned("b9"), &pinned("c0")),
            Vec::<String>::new(),
            "the spec has it"
        );
    }

    #[test]
    fn a_soak_and_another_frontend_are_another_measurement() {
        let spec = |benchmark: serde_json::Value, frontend: serde_json::Value| -> PerfValidationSpec {
            let mut spec =
                json!({"model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1"}}, "benchmark": benchmark});
            spec["workload"]["dynamo"]["frontend"] = frontend;
            serde_json::from_value(spec).expect("a spec")
        };
        let plain = settings(&spec(json!({}), json!({})));
        let soak = |length: &str| settings(&spec(json!({"soak": length}), json!({})));
        let frontend = settings(&spec(json!({}), json!({"image": "f:2"})));
        assert_ne!(soak("10m"), plain);
        assert_ne!(soak("10m"), soak("20m"));
        assert_ne!(frontend, plain);
    }

    #[test]
    fn an_unknown_value_is_never_equal_except_the_operators_version() {
        let mut unknown = environment();
        unknown.dynamo = None;
        assert!(is_known(&unknown), "{:?}", differences(&unknown, &unknown));
        unknown.gpu_product = None;
        assert!(!is_known(&unknown));
        assert_eq!(differences(&unknown, &unknown), ["gpuProduct is not known"]);
    }
}
