//! The part of the page on real GPUs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use perfval_api::{Metric, RouterMode, Statistic, TrialOutcome};

use crate::fault::Fault;
use crate::rejudged::Seen;
use crate::setting::Place;

/// What a foreign load costs a GPU. A router of another kind piles requests up on a slow GPU, and its own trials exaggerate;
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

    /// How much longer a request takes on the GPU that was struck (percent); `None` without a foreign load.
    pub(super) fn of_the_gpu(&self, seen: &Seen<'_>) -> Option<f64> {
        self.longer.get(&per_mille(seen)?).copied()
    }
}

/// Share of the time in which a foreign process had the GPU (per mille).
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1,000")]
fn per_mille(seen: &Seen<'_>) -> Option<u32> {
    let share = seen.run.conditions.share.filter(|_| seen.run.fault == Fault::SlowGpu)?;
    Some((share * 1000.0).round() as u32)
}

/// What is recorded there by which commands, slow GPUs by their load, and how much healthy trials differ.
pub(super) fn section(page: &mut String, seen: &[&Seen<'_>]) {
    page.push_str(
        "\n## On real GPUs\n\n\
         A machine with 1 to 8 NVIDIA GPUs, Python 3.12 with torch 2.11, and no network. Dynamo's frontend and one vLLM worker on each GPU\n\
         run on loopback, under AIPerf and the runner: Qwen3-8B's dimensions, weights that are random numbers, real kernels. A slow GPU is one\n\
         on which another process multiplies matrices for a share of the time. No setting of a GPU is changed.\n\n\
         <!-- needs GPUs -->\n```sh\njust silicon-pack DIR                         # here: wheels, runner and scripts, in portions of 60 MB\n\
         python3 part-000/unpack.py /tmp/silicon       # there, for each portion, in any order; the last one checks all sums\n\
         cd /tmp/silicon/session/rig\n\
         python3 silicon.py check                      # says what is missing there\n\
         python3 silicon.py start --router least-loaded\n\
         python3 silicon.py trials healthy:3 slow:0.15 slow:0.3 frozen:10 --out RESULTS\n\
         python3 silicon.py trials route:round-robin healthy:2 slow:0.5 --out RESULTS\n\
         python3 silicon.py stop --out RESULTS\n\
         just silicon-add RESULTS/records.jsonl.gz     # here: into the recorded trials, and this page\n```\n",
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

/// What was run on which machine, start by start.
fn sessions(page: &mut String, seen: &[&Seen<'_>]) {
    page.push_str(
        "\n### What was run\n\nEvery start of the engines with all of its trials. Runs of the whole product, whose\n\
         operator judged them there, are [a page of their own](silicon.md) and not counted here.\n\n\
         | start | GPUs, driver | trials |\n|---|---|---|\n",
    );
    let mut rows: BTreeMap<_, BTreeMap<_, usize>> = BTreeMap::new();
    for trial in seen {
        let hardware = trial.run.hardware.clone().unwrap_or_default();
        let machine = format!("{} × {}, {}", hardware.gpus, hardware.product, hardware.driver);
        let start = trial.run.deployment.clone().unwrap_or_default();
        let (benchmark, router) = (&trial.run.spec.benchmark, trial.run.router);
        let what = format!(
            "{}{}, {}, {} per GPU, {}/{} tokens",
            trial.run.what(),
            trial
                .run
                .conditions
                .workers
                .map_or(String::new(), |workers| format!(" ({workers} workers)")),
            router.flag(),
            benchmark.concurrency_per_gpu,
            benchmark.input_tokens,
            benchmark.output_tokens
        );
        let trials = rows.entry((start, machine)).or_default();
        *trials.entry((router_rank(router), what)).or_default() += 1;
    }
    for ((start, machine), trials) in rows {
        let trials: Vec<String> = trials
            .into_iter()
            .map(|((_, what), times)| format!("{times} × {what}"))
            .collect();
        let _ = writeln!(page, "| {start} | {machine} | {} |", trials.join("; "));
    }
}

fn slow_gpus(page: &mut String, seen: &[&Seen<'_>]) {
    page.push_str(
        "\n### Slow GPUs\n\n*Longer*: how much longer a request took the struck worker than its peers (median), from its own counters. Only least-loaded and\n\
         power-of-two keep the queues alike, so that it is the GPU's own; round-robin and kv exaggerate it. So the goals count a trial under\n\
         any router by what least-loaded trials with the same foreign load lost (median): a GPU is 10 % slower where a request takes 11 %\n\
         longer, and 20 % where it takes 25 % longer.\n\n\
         | recorded | router | foreign load | trials | longer | named | first, and the right one |\n|---|---|---|---|---|---|---|\n",
    );
    let mut rows: BTreeMap<_, Vec<&Seen<'_>>> = BTreeMap::new();
    for trial in seen.iter().filter(|seen| seen.run.fault == Fault::SlowGpu) {
        let key = (!trial.run.training(), trial.run.router.flag(), per_mille(trial));
        rows.entry(key).or_default().push(trial);
    }
    for ((held_out, router, _), trials) in rows {
        let mut longer: Vec<f64> = trials.iter().filter_map(|seen| seen.slowdown_percent()).collect();
        longer.sort_by(f64::total_cmp);
        let ends: Vec<String> = [longer.first(), longer.last()]
            .into_iter()
            .flatten()
            .map(|percent| format!("{percent:.0}"))
            .collect();
        let _ = writeln!(
            page,
            "| {} the freeze | {router} | {:.0} % | {} | {} % | {} | {} |",
            if held_out { "after" } else { "before" },
            trials[0].run.conditions.share.unwrap_or_default() * 100.0,
            trials.len(),
            if trials.len() > 1 {
                ends.join(" to ")
            } else {
                ends.into_iter().take(1).collect()
            },
            trials.iter().filter(|seen| seen.named()).count(),
            trials.iter().filter(|seen| seen.first_is_right()).count(),
        );
    }
}

/// How much healthy trials of one start of the engines differ, and how much starts differ.
fn deployments(page: &mut String, seen: &[&Seen<'_>]) {
    page.push_str(
        "\n### Healthy trials, start by start\n\nThroughput and TTFT p99 within one start of the engines (mean, and standard deviation in percent of it), at one load.\n\n\
         | start | router | load | trials | tokens/s per GPU | TTFT p99 | blamed |\n|---|---|---|---|---|---|---|\n",
    );
    let mut rows: BTreeMap<_, Vec<&Seen<'_>>> = BTreeMap::new();
    for trial in seen.iter().filter(|seen| seen.run.fault == Fault::Healthy) {
        let benchmark = &trial.run.spec.benchmark;
        let load = format!(
            "{} per GPU, {}/{} tokens",
            benchmark.concurrency_per_gpu, benchmark.input_tokens, benchmark.output_tokens
        );
        let start = trial.run.deployment.clone().unwrap_or_default();
        let key = (start, router_rank(trial.run.router), trial.run.router.flag(), load);
        rows.entry(key).or_default().push(trial);
    }
    for ((start, _, router, load), trials) in rows {
        let gpus = |seen: &&Seen<'_>| seen.run.gpus.0.max(1);
        let throughput = trials.iter().filter_map(|seen| {
            let total = seen.value(Metric::OutputTokenThroughput, Statistic::Avg)?;
            Some(total / i32::try_from(gpus(seen)).map_or(1.0, f64::from))
        });
        let ttft = trials
            .iter()
            .filter_map(|seen| seen.value(Metric::TimeToFirstToken, Statistic::P99));
        let blamed = |seen: &&&Seen<'_>| !seen.causes.is_empty() || seen.outcome != TrialOutcome::Pass;
        let _ = writeln!(
            page,
            "| {start} | {router} | {load} | {} | {} | {} ms | {} |",
            trials.len(),
            spread(&throughput.collect::<Vec<_>>()),
            spread(&ttft.collect::<Vec<_>>()),
            trials.iter().filter(blamed).count(),
        );
    }
}

fn router_rank(router: RouterMode) -> usize {
    crate::matrix::ROUTERS
        .iter()
        .position(|known| *known == router)
        .unwrap_or_default()
}

/// Mean, and the standard deviation where there is one.
fn spread(values: &[f64]) -> String {
    let count = f64::from(u32::try_from(values.len()).unwrap_or(u32::MAX));
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 {
        return format!("{mean:.0}");
    }
    let square = |value: &f64| (value - mean).powi(2);
    let deviation = (values.iter().map(square).sum::<f64>() / (count - 1.0)).sqrt();
    format!("{mean:.0} ± {:.1} %", deviation / mean * 100.0)
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
