//! A deployment as its trials show it, from a seeded generator.

use std::collections::BTreeMap;
use std::f64::consts::TAU;

use fastrand::Rng;
use perfval_api::{Metric, PerfValidationSpec, Statistic};
use perfval_verdict::aiperf::Report;
use perfval_verdict::frame::{Outcome, TrialRecord};
use perfval_verdict::workers::WorkerSummary;
use rust_decimal::Decimal;
use rust_decimal::prelude::FromPrimitive as _;
use serde_json::{Value, json};

/// Averages that may be gated, and their good side.
const AVERAGES: [(&str, Metric, &str); 6] = [
    ("throughput", Metric::OutputTokenThroughput, ">="),
    ("request-latency", Metric::RequestLatency, "<="),
    ("requests", Metric::RequestThroughput, ">="),
    ("inter-token", Metric::InterTokenLatency, "<="),
    ("per-user", Metric::OutputTokenThroughputPerUser, ">="),
    ("second-token", Metric::TimeToSecondToken, "<="),
];
/// Threshold of every average.
const GATE: f64 = 1000.0;
/// Limit of the time to the first token, p99 (ms).
const LIMIT: f64 = 2000.0;
/// Deviation of the logarithm of that percentile from trial to trial: 21.9 % in 21 trials of one start on H200s.
const TAIL_NOISE: f64 = 0.25;
/// Length of that percentile in a trial that stalls, of the usual one.
const STALL: f64 = 4.0;

/// Truth about a deployment.
#[derive(Clone, Debug)]
pub struct Deployment {
    /// Distances of the means from their gates (percent, positive on the good side), one for each gated average.
    pub means: Vec<f64>,
    /// Position of the first of these among [`AVERAGES`].
    pub first: usize,
    /// Standard deviation of an average from trial to trial (percent of it).
    pub noise: f64,
    /// The same of the level from one run to another, alike for all averages.
    pub starts: f64,
    /// Correlation of a trial with the next one, of averages and of stalls.
    pub correlation: f64,
    /// Share of the trials that stall.
    pub stalls: f64,
    /// Time to the first token, p99, in a usual trial (share of its limit).
    pub tail: f64,
}

impl Deployment {
    /// Far from every limit, apart from these means; one trial of twenty stalls.
    pub fn new(means: Vec<f64>, noise: f64, correlation: f64) -> Self {
        Self {
            means,
            first: 0,
            noise,
            starts: 0.0,
            correlation,
            stalls: 0.05,
            tail: 0.5,
        }
    }

    fn averages(&self) -> impl Iterator<Item = (&(&'static str, Metric, &'static str), f64)> {
        AVERAGES[self.first..].iter().zip(self.means.iter().copied())
    }

    /// The manifest that gates it.
    pub fn spec(&self, soak: bool) -> PerfValidationSpec {
        let mut gates: Vec<Value> = self
            .averages()
            .map(|((name, metric, operator), _)| {
                json!({"name": name, "metric": metric.as_str(), "operator": operator, "threshold": GATE.to_string()})
            })
            .collect();
        gates.push(json!({
            "name": "ttft-p99", "metric": "TimeToFirstToken", "statistic": "P99", "operator": "<=", "threshold": LIMIT.to_string(),
        }));
        serde_json::from_value(json!({
            "model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1"}}, "gates": gates,
            "benchmark": {"soak": soak.then_some("10m")},
        }))
        .expect("a spec")
    }
}

/// Its trials, one after the other.
pub struct Trials<'a> {
    deployment: &'a Deployment,
    rng: Rng,
    level: f64,
    noise: Vec<Option<f64>>,
    stalls: Option<bool>,
}

impl<'a> Trials<'a> {
    pub fn new(deployment: &'a Deployment, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let level = if deployment.starts > 0.0 {
            1.0 + deployment.starts / 100.0 * normal(&mut rng)
        } else {
            1.0
        };
        Self {
            deployment,
            rng,
            level,
            noise: vec![None; deployment.means.len()],
            stalls: None,
        }
    }

    /// Record of the next one.
    pub fn next_record(&mut self, workers: Vec<WorkerSummary>) -> TrialRecord {
        let deployment = self.deployment;
        let mut metrics: BTreeMap<Metric, BTreeMap<Statistic, Decimal>> = BTreeMap::new();
        for (at, ((_, metric, operator), mean)) in deployment.averages().enumerate() {
            let noise = self.next_noise(at);
            let side = if *operator == ">=" { 1.0 } else { -1.0 };
            let factor = self.level * (1.0 + deployment.noise / 100.0 * noise);
            let value = GATE * (1.0 + side * mean / 100.0) * factor;
            // With so many requests in flight, throughput is their number over their latency.
            if *metric == Metric::RequestLatency {
                let throughput = metrics.entry(Metric::OutputTokenThroughput).or_default();
                throughput
                    .entry(Statistic::Avg)
                    .or_insert_with(|| decimal(GATE / factor));
            }
            metrics
                .entry(*metric)
                .or_default()
                .insert(Statistic::Avg, decimal(value));
        }
        let stall = if self.next_stalls() { STALL } else { 1.0 };
        let tail = LIMIT * deployment.tail * stall * (TAIL_NOISE * normal(&mut self.rng)).exp();
        let ttft = metrics.entry(Metric::TimeToFirstToken).or_default();
        ttft.insert(Statistic::P99, decimal(tail));
        record(metrics, workers)
    }

    /// An autoregressive process of first order: every trial has the same variance.
    fn next_noise(&mut self, average: usize) -> f64 {
        let correlation = self.deployment.correlation;
        let fresh = normal(&mut self.rng);
        let now = self.noise[average].map_or(fresh, |before| {
            correlation * before + (1.0 - correlation * correlation).sqrt() * fresh
        });
        self.noise[average] = Some(now);
        now
    }

    /// A chain of two states with this correlation.
    fn next_stalls(&mut self) -> bool {
        let Deployment {
            stalls, correlation, ..
        } = self.deployment;
        let chance = match self.stalls {
            None => *stalls,
            Some(before) => (1.0 - correlation) * stalls + correlation * f64::from(u8::from(before)),
        };
        let now = self.rng.f64() < chance;
        self.stalls = Some(now);
        now
    }
}

/// A complete trial with these numbers.
pub fn record(metrics: BTreeMap<Metric, BTreeMap<Statistic, Decimal>>, workers: Vec<WorkerSummary>) -> TrialRecord {
    let report = Report {
        concurrency: 256,
        succeeded: 16384,
        complete: true,
        metrics,
        ..Report::default()
    };
    TrialRecord {
        workers,
        ..TrialRecord::new(Outcome::Report(Box::new(report)))
    }
}

fn decimal(value: f64) -> Decimal {
    Decimal::from_f64(value).expect("a number").round_dp(3)
}

/// A normal deviate (Box and Muller).
pub fn normal(rng: &mut Rng) -> f64 {
    (-2.0 * (1.0 - rng.f64()).ln()).sqrt() * (TAU * rng.f64()).cos()
}
