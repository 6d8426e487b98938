use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ResourceRequirements;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::defaults::number;
use crate::{Latency, PodPlacement, rules};

/// Load of one trial: streamed chat requests at a fixed concurrency, for a duration or for a number of requests.
#[skip_serializing_none]
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.duration) || !(has(self.requestsPerConcurrency) || has(self.minRequests))")
    .message("a trial ends after a time or after a number of requests: write either duration, or requestsPerConcurrency and minRequests"))]
pub struct Benchmark {
    /// Image with `aiperf` that `--benchmark-images` of the operator permits. Empty: its `--aiperf-image`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    #[x_kube(validation = rules::image_or_empty())]
    pub image: String,
    /// Requests in flight per GPU (1–4096).
    #[serde(default = "number::<128>", rename = "concurrencyPerGPU")]
    #[schemars(range(min = 1, max = 4096))]
    pub concurrency_per_gpu: i32,
    /// Tokens per prompt (1–1000000); the model's chat template adds some.
    #[serde(default = "number::<128>")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub input_tokens: i32,
    /// Tokens requested per answer (1–1000000).
    #[serde(default = "number::<128>")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub output_tokens: i32,
    /// Length of a trial after its warm-up (Go duration, at most 24h). Absent, without a number of requests: 60s.
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub duration: Option<String>,
    /// Length of a last trial (Go duration, 5m–24h), which must pass too. If missed, it is repeated, at most twice.
    /// Absent: no soak.
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::soak())]
    pub soak: Option<String>,
    /// Requests per slot of concurrency (1–1000), instead of `duration`. Absent with `minRequests`: 8. A trial sends
    /// `minRequests` if that is more.
    #[schemars(range(min = 1, max = 1000))]
    pub requests_per_concurrency: Option<i32>,
    /// Minimum number of requests (1–1000000), instead of `duration`. Absent with `requestsPerConcurrency`: 1000.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub min_requests: Option<i32>,
    /// Warm-up requests per slot of concurrency (1–100), not measured.
    #[serde(default = "number::<1>")]
    #[schemars(range(min = 1, max = 100))]
    pub warmup_per_concurrency: i32,
    /// Seed of the first trial's prompts (0–4294967295); each later trial uses the next.
    #[serde(default = "default_random_seed")]
    #[schemars(range(min = 0, max = 4_294_967_295_i64))]
    pub random_seed: i64,
    /// Distinct prompts (1–100000); the prefix cache may answer repeated ones. Absent: as many as requests with the
    /// warm-up (with `duration` one per second and slot of concurrency), at least 100, at most 20000 or 2560000 tokens.
    #[schemars(range(min = 1, max = 100_000))]
    pub dataset_entries: Option<i32>,
    /// Extra fields of every request, all as strings. Without `ignore_eos` the output length is an upper bound.
    #[serde(default = "default_extra_inputs")]
    #[schemars(extend("maxProperties" = 32))]
    #[x_kube(
        validation = Rule::new("!['model', 'messages', 'stream', 'max_tokens', 'max_completion_tokens'].exists(k, k in self)")
            .message("leave model, messages, stream and max_tokens out: write model.name and benchmark.outputTokens"),
        validation = Rule::new("self.all(k, k.matches('^[A-Za-z_][A-Za-z0-9_.-]*$'))")
            .message("write the name of a request's field: letters, digits, '_', '.' and '-', not beginning with a digit, '.' or '-', such as top_p"),
        validation = Rule::new("self.all(k, !self[k].contains(','))")
            .message("write one value without a comma per field: AIPerf splits at commas"),
    )]
    pub extra_inputs: BTreeMap<String, String>,
    /// Objectives of a good request, for gates on Goodput.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["metric"]))]
    pub goodput: Vec<Objective>,
    /// Time-out of one request (Go duration, at most 24h).
    #[serde(default = "default_request_timeout")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub request_timeout: String,
    /// Tokenizer id. Empty: the model's name. In an air-gapped cluster `model.cache` must contain it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    #[x_kube(validation = Rule::new("self == '' || self.matches('^[A-Za-z0-9/][A-Za-z0-9._/-]*$')")
        .message("write a tokenizer id or path of letters, digits, '.', '_', '-' and '/', such as Qwen/Qwen3-8B, or leave it out"))]
    pub tokenizer: String,
    /// Additional arguments of AIPerf, one word per element.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 1024)))]
    #[x_kube(
        validation = Rule::new(format!("!self.exists(a, a.matches('^(({OWNED_FLAGS})(=|$)|-v*[muf])'))"))
            .message("the operator sets this flag of AIPerf: write the field of spec.benchmark, spec.model or spec.timeouts instead, such as concurrencyPerGPU for --concurrency"),
        validation = Rule::new(format!("!self.exists(a, a.matches('^({MANY_RUN_FLAGS})(=|$)'))"))
            .message("a trial is one run of AIPerf: write spec.trials for repetitions, and one PerfValidation per operating point instead of a sweep or search"),
        validation = Rule::new("!self.exists(a, a.matches('^--[^=]*_'))")
            .message("write '-' instead of '_' in the name of a flag, such as --request-rate: AIPerf takes both for one flag"),
        validation = Rule::new("!self.exists(a, a.matches('^(--[a-z-]+=)? *[0-9.]+ *(, *[0-9.]+ *)+$'))")
            .message("a comma list starts a sweep, which has no single result: write one number, and one PerfValidation per operating point"),
    )]
    pub extra_args: Vec<String>,
    /// Resources of the load generator. Without `cpu` it requests one per 100 requests in flight, at most 32.
    #[serde(default)]
    #[x_kube(validation = Rule::new("!has(self.claims) || size(self.claims) == 0")
        .message("leave claims out: the load generator needs CPU and memory only"))]
    pub resources: ResourceRequirements,
    /// Place of the load generator: `WorkloadNode` (the node under test) or `Anywhere`. Absent: `Anywhere`, but
    /// `WorkloadNode` if `model.cache` is an existing claim or lacks `ReadWriteMany`.
    #[serde(default)] // else the schema would require it
    #[schemars(with = "PodPlacement")] // else the type's description would stand instead of this one
    pub placement: Option<PodPlacement>,
}

/// Default time for which a trial sends requests. Eight H100 serve eight requests per slot in under ten seconds.
const DURATION: &str = "60s";
/// Default if only `minRequests` is set.
const REQUESTS_PER_CONCURRENCY: i32 = 8;
/// Default if only `requestsPerConcurrency` is set.
const MIN_REQUESTS: i32 = 1000;

/// Flags of AIPerf 0.13 that the Job sets, with their aliases, but without `-m`, `-u` and `-f`: those take a value without a
/// blank too, also behind `-v` (`-uhttp://x`, `-vuhttp://x`).
const OWNED_FLAGS: &str = "--model|--model-names|--url|--endpoint|--custom-endpoint|--endpoint-type|--streaming\
|--concurrency|--request-count|--num-requests|--benchmark-duration|--benchmark-grace-period|--warmup-request-count|--num-warmup-requests|--warmup-duration\
|--(prompt-input-tokens|synthetic-input-tokens|prompt-output-tokens|output-tokens)-(mean|stddev)|--isl|--isl-stddev|--osl|--osl-stddev\
|--num-dataset-entries|--num-prompts|--random-seed|--extra-inputs|--goodput|--request-timeout-seconds|--tokenizer\
|--use-server-token-count|--ui|--ui-type|--gpu-telemetry|--no-gpu-telemetry|--output-artifact-dir|--artifact-dir\
|--profile-export-prefix|--profile-export-file|--export-level|--profile-export-level|--config|--api-key";

/// Flags of AIPerf 0.13 that turn one run into several, so that the results are more than one file.
const MANY_RUN_FLAGS: &str = "--num-profile-runs|--(search|convergence|parameter-sweep|sweep)-[a-z-]+|--variant|--isl-osl-pairs\
|--(isl|osl|concurrency)-(min|max|steps)";

/// Upper bound on a latency metric of a good request.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Objective {
    /// Latency (ms).
    pub metric: Latency,
    /// Largest good value (quantity, ms).
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::threshold())]
    pub max: String,
}

impl Benchmark {
    /// Time for which a trial sends requests (Go duration); `None` if the spec sets a number of requests.
    ///
    /// The CRD has no such default, because the API server would add it to the count of an older object.
    pub fn duration(&self) -> Option<&str> {
        let counted = self.requests_per_concurrency.is_some() || self.min_requests.is_some();
        match &self.duration {
            Some(duration) => Some(duration),
            None => (!counted).then_some(DURATION),
        }
    }

    /// Number of requests of a trial with this concurrency, if the spec sets a number.
    pub fn requests(&self, concurrency: i64) -> Option<i64> {
        if self.duration().is_some() {
            return None;
        }
        let each = i64::from(self.requests_per_concurrency.unwrap_or(REQUESTS_PER_CONCURRENCY));
        let fewest = i64::from(self.min_requests.unwrap_or(MIN_REQUESTS));
        Some(fewest.max(concurrency.saturating_mul(each)))
    }
}

fn default_random_seed() -> i64 {
    100
}

fn default_extra_inputs() -> BTreeMap<String, String> {
    [("temperature", "0"), ("ignore_eos", "true")]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into()
}

fn default_request_timeout() -> String {
    "5m".into()
}
