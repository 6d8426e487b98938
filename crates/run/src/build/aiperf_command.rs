//! The command line of the load generator, one argument a word: no shell ever sees it.

use perfval_api::{Benchmark, Metric, Objective, quantity};

use super::endpoint;
use super::load::{Load, concurrency, prompts, seed, warmup};
use crate::{Run, time};

/// Folder of AIPerf's results.
pub const RESULTS_PATH: &str = "/results";

/// Time after a request's own deadline until a trial ends (s): with a grace of 5 s and a deadline of 20 s, six
/// hanging requests left no trace at all (AIPerf 0.13.0).
const GRACE_BEYOND_TIMEOUT: u64 = 10;

/// `aiperf profile …` for one trial. Flags are AICR's, plus the server's own token counts (without them a truncated stream
/// cannot be recognised) and a request deadline (AIPerf's own is 6 h).
pub fn aiperf_command(run: &Run<'_>, trial: i64) -> Vec<String> {
    let benchmark = &run.spec().benchmark;
    let concurrency = concurrency(run);
    let load = Load::new(run, trial);
    let warmup = warmup(run);
    let request_timeout = time::duration(&benchmark.request_timeout).as_secs().max(1);

    let mut words: Vec<String> = ["aiperf", "profile", "--endpoint-type", "chat", "--streaming"]
        .map(str::to_owned)
        .into();
    let mut flag = |name: &str, value: String| words.extend([name.to_owned(), value]);
    flag("--model", run.spec().model.name.clone());
    flag("--url", endpoint(run));
    flag("--concurrency", concurrency.to_string());
    match load {
        Load::Requests(requests) => flag("--request-count", requests.to_string()),
        Load::Seconds(seconds) => {
            flag("--benchmark-duration", seconds.to_string());
            // AIPerf drops requests that are still in flight after the grace, without an error: a worker that hangs
            // would leave no trace.
            let grace = request_timeout.saturating_add(GRACE_BEYOND_TIMEOUT);
            flag("--benchmark-grace-period", grace.to_string());
        }
    }
    if warmup > 0 {
        // AIPerf refuses a warm-up of 0 requests.
        flag("--warmup-request-count", warmup.to_string());
    }
    flag("--prompt-input-tokens-mean", benchmark.input_tokens.to_string());
    flag("--prompt-input-tokens-stddev", "0".to_owned());
    flag("--prompt-output-tokens-mean", benchmark.output_tokens.to_string());
    flag("--prompt-output-tokens-stddev", "0".to_owned());
    flag("--num-dataset-entries", prompts(run, load).to_string());
    flag("--random-seed", seed(benchmark, trial).to_string());
    for (key, value) in &benchmark.extra_inputs {
        flag("--extra-inputs", format!("{key}:{value}"));
    }
    flag("--request-timeout-seconds", request_timeout.to_string());
    flag("--ui", "none".to_owned());
    flag("--output-artifact-dir", RESULTS_PATH.to_owned());
    flag("--export-level", "records".to_owned());
    if !benchmark.tokenizer.is_empty() {
        flag("--tokenizer", benchmark.tokenizer.clone());
    }
    if let Some(objectives) = goodput(benchmark) {
        flag("--goodput", objectives);
    }
    words.extend(["--use-server-token-count", "--no-gpu-telemetry"].map(str::to_owned));
    words.extend(benchmark.extra_args.iter().cloned());
    words
}

/// All objectives in one word, as `tag:value tag:value` with plain numbers.
fn goodput(benchmark: &Benchmark) -> Option<String> {
    let objective = |Objective { metric, max }: &Objective| {
        let value = quantity::parse(max).map_or_else(|| max.clone(), |value| value.to_string());
        Metric::from(*metric).aiperf_tag().map(|tag| format!("{tag}:{value}"))
    };
    let objectives: Vec<String> = benchmark.goodput.iter().filter_map(objective).collect();
    (!objectives.is_empty()).then(|| objectives.join(" "))
}
