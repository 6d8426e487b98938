//! Load of one trial: its duration or number of requests, its number of prompts, and its seed.

use perfval_api::Benchmark;

use crate::{Run, time};

/// Fewest prompts where the spec leaves the number open: AIPerf's own default.
const FEWEST_PROMPTS: i64 = 100;
/// Most of them, and of their tokens together. AIPerf 0.13.0 makes them before each trial: 100 of 128 tokens took 1.2 s on two
/// cores, 5,000 took 3.8 s, 20,000 took 10.9 s; 20,000 of 4,000 tokens were not made after two and a half minutes. The
/// prefix caches of eight H100 have room for about 2.7 million tokens (computed) of Qwen3-8B (147 KB each), prompts and answers together, so
/// few repeated prompts are still in them. The fewest prompts exceed these tokens from 25,600 tokens each on.
const MOST_PROMPTS: i64 = 20_000;
const MOST_TOKENS: i64 = MOST_PROMPTS * 128;
/// AIPerf's seeds have 32 bits.
const SEEDS: i64 = 1 << 32;

/// End of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// After this many requests.
    Requests(i64),
    /// After this long.
    Seconds(i64),
}

impl Load {
    /// The load of a trial; the soak has a length of its own.
    pub fn new(run: &Run<'_>, trial: i64) -> Self {
        let benchmark = &run.spec().benchmark;
        let soak = benchmark.soak.as_deref().filter(|_| is_soak(run, trial));
        match soak.or(benchmark.duration()) {
            Some(duration) => Self::Seconds(whole_seconds(duration)),
            None => Self::Requests(benchmark.requests(concurrency(run)).unwrap_or(1)),
        }
    }
}

/// Requests in flight of a trial: `concurrencyPerGPU` for each GPU in use.
pub fn concurrency(run: &Run<'_>) -> i64 {
    let gpus = run.placement().map_or(0, |placement| placement.gpus);
    i64::from(run.spec().benchmark.concurrency_per_gpu) * gpus
}

/// Requests of the warm-up, which uses prompts too.
pub fn warmup(run: &Run<'_>) -> i64 {
    concurrency(run) * i64::from(run.spec().benchmark.warmup_per_concurrency)
}

/// Additional time that a trial may take: a soak takes its own duration, plus `timeouts.benchmark` for the rest.
pub fn extra_seconds(run: &Run<'_>, trial: i64) -> i64 {
    let soak = run.spec().benchmark.soak.as_deref().filter(|_| is_soak(run, trial));
    soak.map_or(0, whole_seconds)
}

/// Distinct prompts. A prompt that comes back may be answered from the prefix cache, and then prefill is not measured.
pub fn prompts(run: &Run<'_>, load: Load) -> i64 {
    let benchmark = &run.spec().benchmark;
    let measured = match load {
        Load::Requests(requests) => requests,
        // A slot that is answered once a second uses one prompt a second: 0.9 to 1.6 s on H100 and H200 (128 tokens each way).
        Load::Seconds(seconds) => seconds.saturating_mul(concurrency(run)),
    };
    let most = MOST_PROMPTS.min(MOST_TOKENS / i64::from(benchmark.input_tokens.max(1)));
    let needed = measured.saturating_add(warmup(run)).min(most).max(FEWEST_PROMPTS);
    benchmark.dataset_entries.map_or(needed, i64::from)
}

/// The seed of a trial's prompts: each trial has its own, and the same trial of another run has the same.
pub fn seed(benchmark: &Benchmark, trial: i64) -> i64 {
    (benchmark.random_seed + (trial - 1).max(0)) % SEEDS
}

fn is_soak(run: &Run<'_>, trial: i64) -> bool {
    let mut trials = run.status().state.trials.iter();
    trials.any(|known| known.number == trial && known.soak)
}

/// Seconds of a duration, rounded up, and at least one.
pub fn whole_seconds(duration: &str) -> i64 {
    let seconds = time::duration(duration).as_millis().div_ceil(1000);
    i64::try_from(seconds).unwrap_or(i64::MAX).max(1)
}
