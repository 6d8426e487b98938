//! Workers next to each other: how often a healthy GPU is blamed, and a slow one passes.

use std::collections::BTreeMap;

use fastrand::Rng;
use perfval_api::{Metric, PerfValidationSpec, Statistic, Verdict};
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::workers::{Engine, Reading, Sample, Scrape, WorkerSeries, summarize};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;
use serde_json::json;

use super::Wrong;
use super::deployment::{normal, record};
use super::run::play;

/// Time from token to token of a healthy GPU (ms), with this many requests at a time.
const TOKEN_MS: f64 = 11.0;
const BATCH: i64 = 200;
/// Length of a trial (s).
const SECONDS: i64 = 60;
/// Deviation of a window of two seconds of one worker: 5 % for a pair, in 62 healthy trials of two H200s.
const WINDOW: f64 = 0.035;
/// Deviation of a healthy GPU from the others in one trial, beyond the noise of its windows (percent): 1.4 for a pair of H200s,
/// so 1 for each; here for each.
const GPU: f64 = 1.4;

/// One row.
pub struct Row {
    pub what: &'static str,
    pub workers: usize,
    pub runs: usize,
    /// Whether a goal is set for it.
    pub has_goal: bool,
    trials: i32,
    /// Deviation of the healthy GPUs (percent).
    spread: f64,
    /// GPUs that are slower, and by how much (percent).
    slow: (usize, f64),
    /// Whether a gate on the slowest worker is enforced.
    gated: bool,
}

/// What became of its runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    /// Runs that blame a GPU.
    pub blamed: Wrong,
    /// Runs that passed.
    pub passed: Wrong,
}

/// Every row: add one for a new rule of the comparison.
pub fn rows() -> Vec<Row> {
    let healthy = |what, workers, trials, runs, spread| Row {
        what,
        workers,
        trials,
        runs,
        spread,
        has_goal: spread <= GPU,
        slow: (0, 0.0),
        gated: false,
    };
    let slow = |what, workers, slow| Row {
        what,
        workers,
        trials: 2,
        runs: 150,
        spread: GPU,
        has_goal: true,
        slow,
        gated: true,
    };
    vec![
        healthy("healthy GPUs", 2, 2, 300, GPU),
        healthy("healthy GPUs", 8, 2, 300, GPU),
        healthy("healthy GPUs, 20 trials", 8, 20, 50, GPU),
        healthy("healthy GPUs that vary by 2 %", 8, 2, 100, 2.0),
        slow("one GPU 20 % slower", 2, (1, 20.0)),
        slow("one GPU 20 % slower", 8, (1, 20.0)),
        slow("five GPUs 20 % slower", 8, (5, 20.0)),
    ]
}

impl Row {
    pub fn is_healthy(&self) -> bool {
        self.slow.0 == 0
    }

    pub fn play(&self, seed: usize) -> Found {
        let spec = self.spec();
        let mut found = Found::default();
        for run in 0..self.runs {
            let mut rng = Rng::with_seed(u64::try_from(seed * 100_000 + run).unwrap_or(0));
            let gpus = i64::try_from(self.workers).unwrap_or(0);
            let ended = play(&spec, gpus, || {
                let series: Vec<WorkerSeries> = (0..self.workers).map(|worker| self.series(worker, &mut rng)).collect();
                let throughput = [(Statistic::Avg, Decimal::from(2000))].into();
                let metrics = BTreeMap::from([(Metric::OutputTokenThroughput, throughput)]);
                record(metrics, summarize(&series, None))
            });
            let named = |word: &String| word == Cause::SlowWorker.as_str();
            let blamed = ended.status.diagnosis.iter().any(|finding| named(&finding.cause));
            found.blamed.add(blamed);
            found.passed.add(ended.verdict == Verdict::Passed);
        }
        found
    }

    fn spec(&self) -> PerfValidationSpec {
        let mut gates = vec![json!({
            "name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1000",
        })];
        gates.extend(self.gated.then(
            || json!({"name": "slowest", "metric": "SlowestWorkerPercent", "operator": ">=", "threshold": "90"}),
        ));
        let rule = if self.trials > 2 { "All" } else { "Sequential" };
        serde_json::from_value(json!({
            "model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1"}}, "gates": gates,
            "trials": {"rule": rule, "max": self.trials.max(8)},
        }))
        .expect("a spec")
    }

    /// The metrics of a worker, once a second.
    fn series(&self, worker: usize, rng: &mut Rng) -> WorkerSeries {
        let (slow, percent) = self.slow;
        let slower = if worker < slow { 1.0 - percent / 100.0 } else { 1.0 };
        let gpu = (self.spread / 100.0 * normal(rng)).exp() / slower;
        let (mut tokens, mut micros, mut steps, mut finished) = (0_i64, 0_i64, 0_i64, 0_i64);
        let mut samples = Vec::new();
        let mut window = 1.0;
        for second in 0..SECONDS {
            if second % 2 == 0 {
                window = (WINDOW * normal(rng)).exp();
            }
            samples.push(Sample(
                second,
                Scrape::Reading(Reading {
                    in_flight: BATCH,
                    started: finished + BATCH,
                    finished,
                    tokens: Some(tokens),
                    engine: Engine {
                        gaps: Some(tokens),
                        gap_us: Some(micros),
                        steps: Some(steps),
                        ..Engine::default()
                    },
                    ..Reading::default()
                }),
            ));
            let token_ms = TOKEN_MS * gpu * window;
            let now = (1000.0 / token_ms).round();
            let made = now.to_i64().unwrap_or(0) * BATCH;
            steps += now.to_i64().unwrap_or(0);
            tokens += made;
            micros += (token_ms * 1000.0).round().to_i64().unwrap_or(0) * made;
            finished += made / 128;
        }
        WorkerSeries {
            address: format!("10.0.0.{worker}"),
            samples,
        }
    }
}
