//! Numbers of the runs, and the manifest that they lead to.

use std::fs;

use perfval_api::text::number_of;
use perfval_api::{PerfValidationStatus, TrialOutcome};
use serde_json::{Value, json};

use crate::args::CalibrateArgs;
use crate::error::Error;
use crate::output;
use crate::screen::Screen;

/// Runs from which the slowest is a reference of its own, and the gates' shares of a reference (docs/gates.md).
const ENOUGH_RUNS: usize = 3;
const OF_THE_SLOWEST_RUN: f64 = 0.95;
const OF_FEW_RUNS: f64 = 0.75;
/// Limit of the time to first token, as a multiple of the largest that was measured: it guards against stalls.
const OF_THE_LARGEST_TTFT: f64 = 1.5;

/// Measurement of one run.
pub struct MeasuredRun {
    /// Node under test.
    pub node: String,
    /// GPUs in use.
    pub gpus: i64,
    /// Output tokens per second and GPU, mean of the trials.
    pub throughput: f64,
    /// The same for each trial.
    pub trials: Vec<f64>,
    /// Largest time to first token of the trials, 99th percentile (ms).
    pub ttft: i64,
}

/// Numbers of a run that passed.
pub fn measured(status: &PerfValidationStatus) -> Result<MeasuredRun, Error> {
    let missing = || Error::Render("the run passed without numbers".to_owned());
    let placement = status.placement.as_ref().ok_or_else(missing)?;
    let trials = status
        .trials
        .iter()
        .filter(|trial| trial.outcome == Some(TrialOutcome::Pass));
    let per_gpu = |tokens: i64| precise(tokens) / precise(placement.gpus.max(1));
    let ttft = trials.clone().filter_map(|trial| trial.ttft_p99_milliseconds).max();
    let ttft = ttft.ok_or_else(missing)?;
    let trials: Vec<f64> = trials
        .filter_map(|trial| trial.output_tokens_per_second)
        .map(per_gpu)
        .collect();
    if trials.is_empty() {
        return Err(missing());
    }
    Ok(MeasuredRun {
        node: placement.node.clone(),
        gpus: placement.gpus,
        throughput: trials.iter().sum::<f64>() / precise(trials.len().try_into().unwrap_or(1)),
        trials,
        ttft,
    })
}

/// One load in the table.
pub fn line(load: i32, measured: &MeasuredRun) -> String {
    format!("{load:<13}  {:<9.0}  {} ms\n", measured.throughput, measured.ttft)
}

/// The user's manifest with the load and the gates.
pub fn calibrated(mut manifest: Value, load: i32, runs: &[MeasuredRun]) -> Result<Value, Error> {
    let slowest = runs.iter().map(|run| run.throughput).fold(f64::INFINITY, f64::min);
    let share = if runs.len() >= ENOUGH_RUNS {
        OF_THE_SLOWEST_RUN
    } else {
        OF_FEW_RUNS
    };
    let largest = runs.iter().map(|run| run.ttft).max().unwrap_or_default();
    let mut gates = vec![
        json!({"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=",
               "threshold": whole(slowest * share).to_string(), "scaling": "PerGPU"}),
        json!({"name": "ttft-p99", "metric": "TimeToFirstToken", "statistic": "P99", "operator": "<=",
               "threshold": whole((precise(largest) * OF_THE_LARGEST_TTFT).ceil()).to_string()}),
    ];
    if runs.iter().all(|run| run.gpus > 1) {
        gates.push(
            json!({"name": "slowest-worker", "metric": "SlowestWorkerPercent", "operator": ">=", "threshold": "90"}),
        );
    }
    let compares = gates.len() > 2;
    let spec = manifest["spec"]
        .as_object_mut()
        .ok_or_else(|| Error::Render("the manifest has no spec".to_owned()))?;
    let benchmark = spec.entry("benchmark").or_insert_with(|| json!({}));
    benchmark["concurrencyPerGPU"] = json!(load);
    spec.insert("gates".to_owned(), json!(gates));
    if compares {
        // One worker has no peer to be compared with.
        let placement = spec.entry("placement").or_insert_with(|| json!({}));
        let least = placement["minGPUs"].as_i64().unwrap_or_default().max(2);
        placement["minGPUs"] = json!(least);
    }
    Ok(manifest)
}

/// Prints the manifest, or writes it, with the numbers behind it.
pub fn print(screen: &mut Screen, args: &CalibrateArgs, manifest: &Value, runs: &[MeasuredRun]) -> Result<(), Error> {
    let trials: Vec<f64> = runs.iter().flat_map(|run| run.trials.iter().copied()).collect();
    let (least, most) = trials.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), &trial| {
        (least.min(trial), most.max(trial))
    });
    let first = runs.first();
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let text = format!(
        "# Measured by `kubectl perfval calibrate` on {} with {}: {} with {}, {least:.0} to {most:.0} tokens/s per GPU.\n{}",
        first.map_or("an unknown node", |run| &run.node),
        number_of(first.map_or(0, |run| run.gpus), "GPU"),
        number_of(count(runs.len()), "run"),
        number_of(count(trials.len()), "trial"),
        output::yaml(manifest)?
    );
    match &args.output {
        None => screen.say(&format!("\n{text}")),
        Some(path) => {
            fs::write(path, text).map_err(Error::file(path))?;
            screen.say(&format!(
                "{0} is written; run it with `kubectl perfval run -f {0}`\n",
                path.display()
            ))
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "tokens and milliseconds are far below 2^52")]
fn precise(number: i64) -> f64 {
    number as f64
}

/// The nearest whole number.
#[expect(clippy::cast_possible_truncation, reason = "loads, tokens and milliseconds")]
pub fn whole(number: f64) -> i32 {
    number.round() as i32
}
