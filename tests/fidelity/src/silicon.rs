//! The part of the page on real GPUs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use perfval_api::{Metric, RouterMode, Statistic};
use perfval_verdict::workers::{Reading, Scrape, WorkerSeries};
use rust_decimal::prelude::ToPrimitive as _;

use crate::corpus::LabTrial;
use crate::fault::Fault;
use crate::frontend::range;
use crate::rejudged::Seen;
use crate::setting::Place;

/// Cost of a foreign load for a GPU. A router of another kind piles requests up on a slow GPU, and its own trials exaggerate;
/// so the loss is what trials under least-loaded with the same share of the time show.
pub(super) struct ForeignLoad {
    /// By share (per mille): how much longer a request took (median, percent).
    longer: BTreeMap<u32, f64>,
}

impl ForeignLoad {
    /// From all recorded trials.
    pub(super) fn of(seen: &[&Seen<'_>]) -> Self {
        let mut longer: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        let least_loaded = seen.iter().filter(|seen| seen.run.router == RouterMode::LeastLoaded);
        for seen in least_loaded {
            if let (Some(share), Some(percent)) = (per_mille(seen), seen.slowdown_percent()) {
                longer.entry(share).or_default().push(percent);
            }
        }
        let longer = longer.into_iter().map(|(share, mut percents)| {
            percents.sort_by(f64::total_cmp);
            (share, percents[percents.len() / 2])
        });
        Self {
            longer: longer.collect(),
        }
    }

    /// True if a goal is set for such a loss: 10 % of the speed under least-loaded, 20 % under other routers.
    pub(super) fn has_goal(&self, seen: &Seen<'_>) -> bool {
        let least = if seen.run.router == RouterMode::LeastLoaded {
            11.1
        } else {
            25.0
        };
        self.of_the_gpu(seen).is_some_and(|loss| loss >= least)
    }

    /// Time that a request takes longer on the GPU that was struck (percent); `None` without a foreign load.
    fn of_the_gpu(&self, seen: &Seen<'_>) -> Option<f64> {
        self.longer.get(&per_mille(seen)?).copied()
    }
}

/// Share of the time in which a foreign process had the GPU (per mille).
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1,000")]
fn per_mille(seen: &Seen<'_>) -> Option<u32> {
    let share = seen.run.conditions.share.filter(|_| seen.run.fault == Fault::SlowGpu)?;
    Some((share * 1000.0).round() as u32)
}

/// Section on real GPUs: commands, slow GPUs by their load, and differences between healthy trials.
pub(super) fn section(page: &mut String, seen: &[&Seen<'_>]) {
    page.push_str(
        "\n## On real GPUs\n\n\
         One vLLM worker on each GPU serves Qwen3-8B's dimensions with random weights. On a slow GPU another process multiplies matrices for a share of\n\
         the time (*foreign load*). The machine needs 1 to 8 NVIDIA GPUs and Python 3.12 with torch 2.11, but no network:\n\n\
         <!-- needs GPUs -->\n```sh\njust silicon-pack DIR                         # here: portions of 60 MB\n\
         python3 part-000/unpack.py /tmp/silicon       # there, for each portion\n\
         cd /tmp/silicon/session/rig\n\
         python3 silicon.py start --router least-loaded\n\
         python3 silicon.py trials healthy:3 slow:0.3 route:round-robin healthy:2 slow:0.5 --out RESULTS\n\
         python3 silicon.py stop --out RESULTS\n\
         just silicon-add RESULTS/records.jsonl.gz     # here: adds them to this page\n```\n",
    );
    let seen: Vec<&Seen<'_>> = seen
        .iter()
        .copied()
        .filter(|seen| seen.run.place == Place::Silicon)
        .collect();
    if seen.is_empty() {
        return;
    }
    sessions(page, &seen);
    slow_gpus(page, &seen);
    deployments(page, &seen);
}

/// Starts and trials of each machine.
fn sessions(page: &mut String, seen: &[&Seen<'_>]) {
    page.push_str(
        "\n### What was run\n\nWith [runs under the operator](silicon.md) (*whole product* in [trials.csv](trials.csv)):\n\n\
         | GPUs | starts | trials |\n|---|---|---|\n",
    );
    let mut rows: BTreeMap<_, (BTreeSet<_>, usize)> = BTreeMap::new();
    for trial in seen {
        let hardware = trial.run.hardware.clone().unwrap_or_default();
        let machine = format!("{} × {}", hardware.gpus, hardware.product);
        let row = rows.entry(machine).or_default();
        row.0.insert(trial.run.deployment.clone().unwrap_or_default());
        row.1 += 1;
    }
    for (machine, (starts, trials)) in rows {
        let _ = writeln!(page, "| {machine} | {} | {trials} |", starts.len());
    }
}

fn slow_gpus(page: &mut String, seen: &[&Seen<'_>]) {
    page.push_str(
        "\n### Slow GPUs\n\nLater trials. *Longer*: how much longer a request took on the affected worker than on its peers (median). Round-robin and kv\n\
         exaggerate this, so the goals rate a foreign load by its least-loaded trials (median): 11 % longer means a GPU that is 10 % slower, 25 % longer\n\
         one that is 20 % slower.\n\n\
         | router | has a goal | foreign load | longer | right GPU in the first cause |\n|---|---|---|---|---|\n",
    );
    let loss = ForeignLoad::of(seen);
    let mut rows: BTreeMap<_, Vec<&Seen<'_>>> = BTreeMap::new();
    let evidence = seen.iter().filter(|seen| !seen.run.training());
    for trial in evidence.filter(|seen| seen.run.fault == Fault::SlowGpu) {
        let key = (trial.run.router.flag(), loss.has_goal(trial));
        rows.entry(key).or_default().push(trial);
    }
    for ((router, has_goal), trials) in rows {
        let shares = trials.iter().filter_map(|seen| seen.run.conditions.share);
        let loads: Vec<f64> = shares.map(|share| share * 100.0).collect();
        let longer: Vec<f64> = trials.iter().filter_map(|seen| seen.slowdown_percent()).collect();
        let right = trials.iter().filter(|seen| seen.first_is_right()).count();
        let bold = if right < trials.len() { "**" } else { "" };
        let _ = writeln!(
            page,
            "| {router} | {} | {} % | {} % | {bold}{right} of {}{bold} |",
            if has_goal { "yes" } else { "no" },
            range(&loads, 0),
            range(&longer, 0),
            trials.len(),
        );
    }
}

/// Differences between healthy trials of one start of the engines, and between starts.
fn deployments(page: &mut String, seen: &[&Seen<'_>]) {
    page.push_str(
        "\n### Healthy trials, start by start\n\n256 requests in flight per GPU, 128/128 tokens, least-loaded. The prefix cache held nine of ten prompt tokens. *Tokens/s*: means of\n\
         the slowest and the fastest start. The last three columns: standard deviation between trials of one start, of throughput, decode speed and\n\
         prefill time per request. Decode speed varies least, so nodes are compared by it.\n\n\
         | GPUs | starts | trials | tokens/s per GPU | of their mean | throughput | decode | prefill |\n|---|---|---|---|---|---|---|---|\n",
    );
    let mut machines: BTreeMap<_, BTreeMap<_, Vec<[Option<f64>; 3]>>> = BTreeMap::new();
    let healthy = seen.iter().filter(|seen| seen.run.fault == Fault::Healthy);
    for trial in healthy.filter(|seen| seen.run.router == RouterMode::LeastLoaded) {
        let benchmark = &trial.run.spec.benchmark;
        let load = (
            benchmark.concurrency_per_gpu,
            benchmark.input_tokens,
            benchmark.output_tokens,
        );
        let total = trial.value(Metric::OutputTokenThroughput, Statistic::Avg);
        let (Some(total), (256, 128, 128)) = (total, load) else {
            continue;
        };
        let gpus = f64::from(i32::try_from(trial.run.gpus.0.max(1)).unwrap_or(1));
        let machine = trial.run.hardware.clone().unwrap_or_default().product;
        let start = trial.run.deployment.clone().unwrap_or_default();
        let starts = machines.entry(machine).or_default();
        let [decode, prefill] = engines(trial.trial);
        starts
            .entry(start)
            .or_default()
            .push([Some(total / gpus), decode, prefill]);
    }
    for (machine, starts) in machines {
        let column = |at: usize| {
            starts
                .values()
                .map(move |trials| trials.iter().filter_map(|trial| trial[at]).collect())
        };
        let deviations = |at: usize| {
            let columns: Vec<Vec<f64>> = column(at).collect();
            let deviations: Vec<f64> = columns.iter().filter_map(|trials| deviation(trials)).collect();
            range(&deviations, 1)
        };
        let mut means: Vec<f64> = column(0).map(|trials: Vec<f64>| mean(&trials)).collect();
        let middle = mean(&means);
        means.sort_by(f64::total_cmp);
        let ends = [means.first(), means.last()].map(|end| end.copied().unwrap_or_default());
        let parts = ends.map(|end| end / middle * 100.0);
        let _ = writeln!(
            page,
            "| {machine} | {} | {} | {} | {} % | {} % | {} % | {} % |",
            starts.len(),
            starts.values().map(Vec::len).sum::<usize>(),
            range(&ends, 0),
            range(&parts, 0),
            deviations(0),
            deviations(1),
            deviations(2),
        );
    }
}

/// Time from one token to the next, and in prefill for one request, by the counters of the engines of a trial.
fn engines(trial: &LabTrial) -> [Option<f64>; 2] {
    let readings = |worker: &WorkerSeries| {
        let mut readings = worker.samples.iter().filter_map(|sample| match sample.1 {
            Scrape::Reading(reading) => Some(reading),
            Scrape::Nothing(_) => None,
        });
        let first = readings.find(|reading| reading.engine.gaps.is_some())?;
        Some((first, readings.next_back()?))
    };
    let ends: Vec<_> = trial.series.iter().filter_map(readings).collect();
    let total = |count: fn(&Reading) -> Option<i64>| {
        let grown = ends.iter().map(|(first, last)| Some(count(last)? - count(first)?));
        grown
            .sum::<Option<i64>>()
            .filter(|total| *total > 0)
            .and_then(|total| total.to_f64())
    };
    let per = |time: Option<f64>, number: Option<f64>| Some(time? / number?);
    [
        per(
            total(|reading| reading.engine.gap_us),
            total(|reading| reading.engine.gaps),
        ),
        per(
            total(|reading| reading.engine.prefill_ms),
            total(|reading| Some(reading.finished)),
        ),
    ]
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / count(values)
}

fn count(values: &[f64]) -> f64 {
    f64::from(u32::try_from(values.len()).unwrap_or(u32::MAX))
}

/// Standard deviation in percent of the mean; `None` for a single value.
fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (count(values) - 1.0)).sqrt() / mean * 100.0)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{corpus, rejudged};

    #[test]
    fn what_a_gpu_loses_is_read_from_trials_that_do_not_exaggerate() {
        let runs = corpus::read(Path::new("recorded.jsonl.gz")).expect("the recorded runs");
        let groups = rejudged::groups(&runs);
        let seen: Vec<&Seen<'_>> = groups.iter().flat_map(|group| &group.trials).collect();
        let loss = ForeignLoad::of(&seen);
        let round_robin = |share: u32| {
            let found = seen
                .iter()
                .find(|seen| seen.run.router == RouterMode::RoundRobin && per_mille(seen) == Some(share));
            let found = found.expect("a trial under round-robin");
            (
                loss.of_the_gpu(found).map(f64::round),
                found.slowdown_percent().map(f64::round),
            )
        };
        // By hand: 24.2, 26.5 and 28.3 % under least-loaded.
        assert_eq!(round_robin(400), (Some(27.0), Some(65.0)));
        let (loss_at_300, shown) = round_robin(300);
        assert!(
            loss_at_300 < Some(25.0) && shown > Some(25.0),
            "{loss_at_300:?} {shown:?}"
        );
        let healthy = seen
            .iter()
            .find(|seen| seen.run.fault == Fault::Healthy)
            .expect("a healthy trial");
        assert_eq!(loss.of_the_gpu(healthy), None);
    }
}
