//! The published runs of NVIDIA/aicr's `inference-perf` check, judged by the gate and trial code.

use std::collections::BTreeMap;

use perfval_api::{Metric, PerfValidationSpec, Statistic, TrialOutcome, TrialsSpec};
use perfval_testkit::odds::Odds;
use perfval_verdict::aiperf::Report;
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::frame::{Outcome, TrialRecord};
use perfval_verdict::gate::Share;
use perfval_verdict::trial::{self, Evidence};
use perfval_verdict::trials::Finished;
use perfval_verdict::workers::WorkerSummary;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;
use serde_json::json;

use crate::correlation::Sequence;
use crate::simulated::drawn;

const RUNS: &str = include_str!("../published.csv");
/// Requests in flight that each worker had when the load was shared evenly, in the runs that publish a peak.
const FAIR_PEAK: i64 = 256;

/// Gates that judge a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gates {
    /// Those of the published check, with its tolerance of 10 %.
    Published,
    /// Those of `config/samples/gpu-h100-80gb.yaml`, for eight GPUs.
    Shipped,
}

/// One published run.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its number in the table.
    pub id: u32,
    /// Output tokens/s, lowest and highest of a range; absent: not published.
    throughput: Option<(Decimal, Decimal)>,
    /// Time to first token p99 (ms), the same way.
    ttft: Option<(Decimal, Decimal)>,
    /// Highest requests in flight on one worker.
    peak: Option<i64>,
    gate: (String, String),
    /// Result of the published gate for the published numbers: `P`, `F`, or `E` for a run that measured nothing.
    pub published: char,
}

/// Every published run.
///
/// # Panics
/// If the table in this repository is broken.
pub fn rows() -> Vec<Row> {
    RUNS.lines()
        .filter(|line| !line.starts_with('#') && !line.starts_with("id,"))
        .map(|line| row(line).unwrap_or_else(|| panic!("published.csv: {line}")))
        .collect()
}

fn row(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line.split(',').collect();
    let [
        id,
        _,
        _,
        _,
        _,
        _,
        _,
        throughput,
        ttft,
        peak,
        gate,
        ttft_gate,
        verdict,
        _,
    ] = cells.as_slice()
    else {
        return None;
    };
    Some(Row {
        id: id.parse().ok()?,
        throughput: range(throughput).ok()?,
        ttft: range(ttft).ok()?,
        peak: if peak.is_empty() {
            None
        } else {
            Some(peak.parse().ok()?)
        },
        gate: ((*gate).to_owned(), (*ttft_gate).to_owned()),
        published: verdict.chars().next()?,
    })
}

/// `12`, `~12` or `10-20`; nothing for an empty cell.
fn range(cell: &str) -> Result<Option<(Decimal, Decimal)>, rust_decimal::Error> {
    let cell = cell.trim_start_matches('~');
    if cell.is_empty() {
        return Ok(None);
    }
    let (low, high) = cell.split_once('-').unwrap_or((cell, cell));
    Ok(Some((low.parse()?, high.parse()?)))
}

impl Row {
    /// The trial that this run is, judged by the operator's code; `None` for a run that measured nothing.
    ///
    /// # Panics
    /// If the two ends of a published range are judged differently: the table says nothing then.
    pub fn judge(&self, gates: Gates) -> Option<Finished> {
        if self.throughput.is_none() && self.ttft.is_none() {
            return None;
        }
        let low = |range: &Option<(Decimal, Decimal)>| range.map(|(low, _)| low);
        let high = |range: &Option<(Decimal, Decimal)>| range.map(|(_, high)| high);
        let worst = self.judge_values(gates, low(&self.throughput), high(&self.ttft));
        let best = self.judge_values(gates, high(&self.throughput), low(&self.ttft));
        assert_eq!(
            worst.outcome, best.outcome,
            "run {}: its range crosses the gate",
            self.id
        );
        Some(worst)
    }

    fn judge_values(&self, by: Gates, throughput: Option<Decimal>, ttft: Option<Decimal>) -> Finished {
        let (least, most, tolerance) = match by {
            Gates::Published => (self.gate.0.as_str(), self.gate.1.as_str(), 10),
            Gates::Shipped => ("108000", "2000", 0),
        };
        let mut metrics = BTreeMap::new();
        let mut gates = Vec::new();
        if let Some(value) = throughput {
            metrics.insert(Metric::OutputTokenThroughput, [(Statistic::Avg, value)].into());
            gates.push(
                json!({"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=",
                "threshold": least, "tolerancePercent": tolerance}),
            );
        }
        if let Some(value) = ttft {
            metrics.insert(Metric::TimeToFirstToken, [(Statistic::P99, value)].into());
            gates.push(
                json!({"name": "ttft-p99", "metric": "TimeToFirstToken", "statistic": "P99", "operator": "<=",
                "threshold": most, "tolerancePercent": tolerance}),
            );
        }
        // The check publishes no errors, and looks at none.
        let report = Report {
            requested: Some(16384),
            concurrency: 2048,
            succeeded: 16384,
            complete: true,
            metrics,
            ..Report::default()
        };
        let record = TrialRecord {
            workers: self.workers(),
            ..TrialRecord::new(Outcome::Report(Box::new(report)))
        };
        let spec: PerfValidationSpec = serde_json::from_value(json!({
            "model": {"name": "Qwen/Qwen3-8B"}, "workload": {"dynamo": {"image": "vllm-runtime:1.2.1"}}, "gates": gates,
        }))
        .unwrap_or_else(|error| panic!("run {}: {error}", self.id));
        let evidence = Evidence::new(&record, Share { gpus: 8, node_gpus: 8 });
        let verdict = trial::judge(evidence, &spec);
        Finished {
            outcome: verdict.outcome,
            far: far_below(&verdict),
            margins: verdict.margins.iter().filter_map(Decimal::to_f64).collect(),
        }
    }

    /// Logarithm of its throughput.
    fn log_throughput(&self) -> Option<f64> {
        let (low, high) = self.throughput?;
        Some(((low + high) / Decimal::TWO).to_f64()?.ln())
    }

    /// Workers that share the load evenly, where the published peak says so: the case in which far misses end a run early.
    fn workers(&self) -> Vec<WorkerSummary> {
        let Some(peak) = self.peak.filter(|peak| (FAIR_PEAK - *peak).abs() * 5 <= FAIR_PEAK) else {
            return Vec::new();
        };
        let worker = |index: i64| WorkerSummary {
            address: format!("10.0.0.{index}"),
            seconds: 60,
            samples: 60,
            served: 2048,
            seconds_per_request: Some(Decimal::TWO),
            peak_in_flight: peak,
            mean_in_flight: Decimal::from(peak),
            rate_per_second: Decimal::from(100),
            ..WorkerSummary::default()
        };
        (1..=8).map(worker).collect()
    }
}

/// Runs of one deployment in one stretch of time.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Name in the table.
    pub name: &'static str,
    /// First and last run.
    pub runs: (u32, u32),
    /// True if the deployment was healthy, as its users found out afterwards.
    pub healthy: bool,
}

/// The published stretches of repeated runs.
pub const WINDOWS: [Window; 8] = [
    Window {
        name: "EKS, four variants (r1–r8)",
        runs: (15, 22),
        healthy: true,
    },
    Window {
        name: "EKS, the last of these variants (r5–r8)",
        runs: (19, 22),
        healthy: true,
    },
    Window {
        name: "EKS, quiet morning (stall1–6)",
        runs: (25, 30),
        healthy: true,
    },
    Window {
        name: "EKS, afternoon, unpinned inputs (s1–s3)",
        runs: (34, 36),
        healthy: true,
    },
    Window {
        name: "EKS, afternoon, pinned inputs (t1–t6)",
        runs: (37, 42),
        healthy: true,
    },
    Window {
        name: "EKS, afternoon, after a driver restart (t8–t9)",
        runs: (44, 45),
        healthy: true,
    },
    Window {
        name: "AKS with isolcpus: a real platform fault (#1766)",
        runs: (57, 60),
        healthy: false,
    },
    Window {
        name: "AKS, healthy baseline",
        runs: (64, 67),
        healthy: true,
    },
];

/// Window under the rule.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Runs and their truth.
    pub window: Window,
    /// Its runs as trials, in order.
    pub trials: Vec<Finished>,
    /// Ends of a run of the operator whose trials are drawn from this window, exactly.
    pub odds: Odds,
}

impl Replayed {
    /// Trials that missed.
    pub fn missed(&self) -> usize {
        self.trials
            .iter()
            .filter(|trial| trial.outcome == TrialOutcome::Miss)
            .count()
    }
}

/// Replays a window through the default rule.
pub fn replay(window: Window, rows: &[Row], gates: Gates) -> Replayed {
    let spec = TrialsSpec::default();
    let within = |row: &&Row| (window.runs.0..=window.runs.1).contains(&row.id);
    let trials: Vec<Finished> = rows.iter().filter(within).filter_map(|row| row.judge(gates)).collect();
    Replayed {
        window,
        odds: drawn(&spec, &trials),
        trials,
    }
}

/// Runs of four variants of the deployment, one after the other: no two say how a trial follows the one before.
const VARIANTS: (u32, u32) = (15, 22);

/// The throughput of each healthy window of one deployment, run by run.
pub fn sequences(rows: &[Row]) -> Vec<Sequence> {
    let healthy = WINDOWS
        .iter()
        .filter(|window| window.healthy && window.runs != VARIANTS);
    let of = |window: &Window| {
        let within = rows
            .iter()
            .filter(|row| (window.runs.0..=window.runs.1).contains(&row.id));
        within.filter_map(Row::log_throughput).collect()
    };
    healthy.map(of).collect()
}

/// True for a trial that missed by so much that repeating it is no use.
pub fn far_below(verdict: &trial::JudgedTrial) -> bool {
    verdict.findings.iter().any(|(cause, _)| *cause == Cause::FarBelowGate)
}

/// A share as people read it.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// `part` of `all`, 0 to 1.
pub fn share(part: usize, all: usize) -> f64 {
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    number(part) / number(all.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_72_runs_are_judged_as_published() {
        let rows = rows();
        assert_eq!(rows.len(), 72);
        for row in rows {
            let judged = match row.judge(Gates::Published).map(|trial| trial.outcome) {
                Some(TrialOutcome::Pass) => 'P',
                Some(TrialOutcome::Miss) => 'F',
                Some(TrialOutcome::Invalid) => 'I',
                None => 'E',
            };
            assert_eq!(judged, row.published, "run {}: {row:?}", row.id);
        }
    }

    #[test]
    fn no_window_is_judged_wrongly_under_the_published_gates_with_at_most_a_third_of_misses() {
        for window in WINDOWS {
            let replayed = replay(window, &rows(), Gates::Published);
            if !window.healthy {
                assert!(replayed.odds.passed <= 0.02, "{}: {:?}", window.name, replayed.odds);
            } else if share(replayed.missed(), replayed.trials.len()) <= 1.0 / 3.0 {
                // One run of two missed in t8–t9: two runs bound no rate.
                assert!(replayed.odds.failed <= 0.02, "{}: {:?}", window.name, replayed.odds);
                assert!(replayed.odds.trials <= 3.2, "{}: {:?}", window.name, replayed.odds);
            }
        }
    }

    #[test]
    fn the_shipped_gates_match_the_sample() {
        let sample = std::fs::read_to_string("../../config/samples/gpu-h100-80gb.yaml").unwrap();
        assert!(
            sample.contains("threshold: \"13500\"") && 8 * 13_500 == 108_000,
            "{sample}"
        );
        assert!(sample.contains("threshold: \"2000\""), "{sample}");
    }
}
