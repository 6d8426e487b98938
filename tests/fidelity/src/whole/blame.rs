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
/// Deviation of a healthy GPU from the others in all trials of a run (percent): 1.4 for a pair of H200s, so 1 for each; here for
/// each.
const GPU: f64 = 1.4;

/// One row.
pub struct Row {
    pub what: &'static str,
    pub workers: usize,
    pub runs: usize,
    /// True if a goal is set for it.
    pub has_goal: bool,
    trials: i32,
    /// Deviation of the healthy GPUs (percent).
    spread: f64,
    /// GPUs that are slower, and by how much (percent).
    slow: (usize, f64),
    /// True if a gate on the slowest worker is enforced.
    gated: bool,
}

/// Ends of its runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    /// Runs that blame a healthy GPU.
    pub blamed: Wrong,
    /// Runs that name a slow GPU.
    pub named: Wrong,
    /// Runs that passed.
    pub passed: Wrong,
    /// Runs that blame a healthy GPU, or pass with a slow one.
    pub wrong: Wrong,
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
            let times: Vec<f64> = (0..self.workers).map(|worker| self.time(worker, &mut rng)).collect();
            let ended = play(&spec, gpus, || {
                let workers = times.iter().enumerate();
                let series: Vec<WorkerSeries> = workers.map(|(at, time)| series(at, *time, &mut rng)).collect();
                let throughput = [(Statistic::Avg, Decimal::from(2000))].into();
                let metrics = BTreeMap::from([(Metric::OutputTokenThroughput, throughput)]);
                record(metrics, summarize(&series, None))
            });
            let findings = ended.status.diagnosis.iter();
            let slow: Vec<_> = findings
                .filter(|finding| finding.cause == Cause::SlowWorker.as_str())
                .collect();
            let is_named = |worker: usize| slow.iter().any(|finding| finding.evidence.contains(&address(worker)));
            let blamed = (self.slow.0..self.workers).any(is_named);
            let passed = ended.verdict == Verdict::Passed;
            found.blamed.add(blamed);
            found.named.add((0..self.slow.0).any(is_named));
            found.passed.add(passed);
            found.wrong.add(blamed || passed && !self.is_healthy());
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

    /// Time of a GPU for a token in a run, beside the usual one.
    fn time(&self, worker: usize, rng: &mut Rng) -> f64 {
        let (slow, percent) = self.slow;
        let slower = if worker < slow { 1.0 - percent / 100.0 } else { 1.0 };
        (self.spread / 100.0 * normal(rng)).exp() / slower
    }
}

fn address(worker: usize) -> String {
    format!("10.0.0.{worker}")
}

/// Metrics of a worker in one trial, once a second.
fn series(worker: usize, gpu: f64, rng: &mut Rng) -> WorkerSeries {
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
        address: address(worker),
        samples,
    }
}
