//! Numbers of the runs, and the manifest that they lead to.

use std::collections::BTreeSet;

use perfval_api::text::{number_of, quoted};
use perfval_api::{PerfValidationSpec, PerfValidationStatus, TrialOutcome, Verdict};
use serde_json::{Value, json};

use super::knee::whole;
use crate::args::CalibrateArgs;
use crate::error::Error;
use crate::exit;
use crate::output;
use crate::screen::Screen;
use crate::session::Session;

/// Runs from which the slowest is a reference of its own, and the gates' shares of a reference (docs/gates.md).
const ENOUGH_RUNS: usize = 3;
const OF_THE_SLOWEST_RUN: f64 = 0.95;
const OF_FEW_RUNS: f64 = 0.75;
/// Limit of the time to first token, as a multiple of the largest that was measured: it guards against stalls.
const OF_THE_LARGEST_TTFT: f64 = 1.5;

/// Measurement of one run.
pub struct MeasuredRun {
    pub node: String,
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
    let missing = || Error::NotMeasured {
        code: exit::code(Verdict::Error),
        why: "the run passed, but its status has no numbers: `kubectl perfval get -o yaml` shows it".to_owned(),
    };
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

/// The user's manifest with the load and the gates. `spec` is that of the manifest with its defaults.
pub fn calibrated(
    mut manifest: Value,
    spec: &PerfValidationSpec,
    load: i32,
    runs: &[MeasuredRun],
) -> Result<Value, Error> {
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
    // One worker has no peer to be compared with. Admission takes no minGPUs above expectGPUs.
    let two_workers = 2 * spec.gpus_per_worker();
    let has_room = spec
        .placement
        .expect_gpus
        .is_none_or(|gpus| i64::from(gpus) >= two_workers);
    let compares = has_room && runs.iter().all(|run| spec.workers(run.gpus) > 1);
    if compares {
        gates.push(
            json!({"name": "slowest-worker", "metric": "SlowestWorkerPercent", "operator": ">=", "threshold": "90"}),
        );
    }
    let fields = manifest["spec"]
        .as_object_mut()
        .ok_or_else(|| Error::BadInput("the manifest has no spec: write one".to_owned()))?;
    let benchmark = fields.entry("benchmark").or_insert_with(|| json!({}));
    benchmark["concurrencyPerGPU"] = json!(load);
    fields.insert("gates".to_owned(), json!(gates));
    if compares {
        let placement = fields.entry("placement").or_insert_with(|| json!({}));
        let least = placement["minGPUs"].as_i64().unwrap_or_default().max(two_workers);
        placement["minGPUs"] = json!(least);
    }
    Ok(manifest)
}

/// Prints the manifest, or writes it, with the numbers behind it.
pub fn print(
    screen: &mut Screen,
    session: &Session,
    args: &CalibrateArgs,
    manifest: &Value,
    runs: &[MeasuredRun],
) -> Result<(), Error> {
    let trials: Vec<f64> = runs.iter().flat_map(|run| run.trials.iter().copied()).collect();
    let (least, most) = trials.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), &trial| {
        (least.min(trial), most.max(trial))
    });
    // Without --node a run may get another node than the one before it.
    let places = runs
        .iter()
        .map(|run| format!("{} with {}", run.node, number_of(run.gpus, "GPU")));
    let places: BTreeSet<String> = places.collect();
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let text = format!(
        "# Measured by `kubectl perfval calibrate` on {}: {} with {}, {least:.0} to {most:.0} tokens/s per GPU.\n{}",
        Vec::from_iter(places).join(", "),
        number_of(count(runs.len()), "run"),
        number_of(count(trials.len()), "trial"),
        output::yaml(manifest)?
    );
    match args.output.as_ref().filter(|path| path.as_os_str() != "-") {
        None => screen.print(&format!("\n{text}")),
        Some(path) => {
            if let Err(error) = output::write_new(path, text.as_bytes()) {
                // The runs took hours.
                screen.print(&format!("\n{text}"))?;
                return Err(error);
            }
            let typed = quoted(&path.display().to_string());
            screen.print(&format!(
                "{} is written; run it with {}\n",
                path.display(),
                session.command("run -f", &typed)
            ))
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "tokens and milliseconds are far below 2^52")]
fn precise(number: i64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::parse;

    #[test]
    fn the_manifest_is_admitted_for_any_size_of_worker() {
        let run = |gpus| MeasuredRun {
            node: "n1".to_owned(),
            gpus,
            throughput: 1000.0,
            trials: vec![1000.0],
            ttft: 200,
        };
        // GPUs of a worker, GPUs in use, the user's placement; then minGPUs, if the workers are compared.
        for (each, gpus, placement, least) in [
            (1, 1, json!({}), None),
            (1, 2, json!({}), Some(2)),
            (2, 2, json!({}), None),
            (2, 4, json!({}), Some(4)),
            (2, 8, json!({"minGPUs": 6}), Some(6)),
            (4, 8, json!({"minGPUs": 1, "maxGPUs": 8}), Some(8)),
            (2, 4, json!({"expectGPUs": 2}), None),
            (2, 4, json!({"expectGPUs": 4}), Some(4)),
        ] {
            let manifest = json!({
                "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation", "metadata": {"name": "a"},
                "spec": {
                    "model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1.4.2", "worker": {"gpus": each}}},
                    "placement": placement,
                },
            });
            let spec = parse(&manifest.to_string(), "mine").expect("a manifest").spec;
            let written = calibrated(manifest, &spec, 80, &[run(gpus)]).expect("a manifest");
            let text = output::yaml(&written).expect("YAML");
            let object = parse(&text, "calibrated").unwrap_or_else(|refused| panic!("{refused}"));
            let compares = object.spec.gates.iter().any(|gate| gate.name == "slowest-worker");
            let placed = i64::from(object.spec.placement.min_gpus);
            assert_eq!(compares.then_some(placed), least, "{each} of {gpus}: {text}");
        }
    }
}
