//! The part of the page on recorded trials: where they are from, and what was found of each fault.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::corpus::{LabRun, Live};
use crate::fault::Fault;
use crate::matrix::cases;
use crate::rejudged::Seen;
use crate::setting::Place;

const EXCLUDED: &str = include_str!("../excluded.csv");

/// Trials that were recorded and do not count.
fn excluded() -> usize {
    let rows = EXCLUDED.lines().filter(|line| !line.starts_with('#')).skip(1);
    rows.filter_map(|line| line.split(',').nth(4)?.parse::<usize>().ok())
        .sum()
}

/// Places of the trials, and the rules by which they are judged.
pub(super) fn settings(page: &mut String, seen: &[&Seen<'_>]) {
    let count = |place| seen.iter().filter(|seen| seen.run.place == place).count();
    let on_busy_rig = |seen: &&&Seen<'_>| seen.run.place == Place::Rig && seen.run.conditions.busy_machine;
    let busy = seen.iter().filter(on_busy_rig).count();
    let _ = write!(
        page,
        "\n## Recorded trials\n\n\
         * **Lab** ({} trials): real Kubernetes with NVIDIA's DRA driver, the operator, four simulated engines (Dynamo 1.4.2), and AIPerf 0.13.0, on\n\
         \x20 two cores.\n\
         * **Rig** ({} trials, {busy} of them on a busy machine): the same without a cluster and operator.\n\
         * **Silicon** ({} trials): the rig with vLLM 0.26.0 on [real GPUs](#on-real-gpus).\n\n\
         [trials.csv](trials.csv) has one row for each trial, [recorded.jsonl.gz](../../tests/fidelity/recorded.jsonl.gz) their samples. {} more\n\
         [do not count](../../tests/fidelity/excluded.csv).\n\n\
         The gates are 0.75 × the median throughput and 2.5 × the median TTFT p99 of the healthy trials of the same setting (machine, router, load),\n\
         with 10 % tolerance. With few healthy trials they judge the trials that set them.\n",
        count(Place::Lab),
        count(Place::Rig),
        count(Place::Silicon),
        excluded()
    );
}

/// Causes that were found for each fault, on trials that thresholds were fixed on and on those recorded afterwards.
/// `on_shared_cpu`: throughput that frontends on a shared CPU kept (percent).
pub(super) fn faults(page: &mut String, seen: &[&Seen<'_>], on_shared_cpu: &str) {
    let mut rows: BTreeMap<Fault, Vec<&Seen<'_>>> = BTreeMap::new();
    for trial in seen {
        rows.entry(trial.run.fault).or_default().push(trial);
    }
    rows.remove(&Fault::Healthy);
    let (mut always, mut table) = (Vec::new(), String::new());
    let mut late = 0;
    for (fault, trials) in rows {
        let (before, after): (Vec<&Seen<'_>>, Vec<&Seen<'_>>) = trials.iter().partition(|seen| seen.run.training());
        let is_late = |seen: &&&Seen<'_>| seen.named() && !seen.first_is_right();
        late += after.iter().filter(is_late).count();
        if trials.iter().all(|seen| seen.named()) {
            always.push(format!("{} ({}, {})", fault.title(), after.len(), before.len()));
        } else {
            let _ = writeln!(table, "| {} | {} | {} |", fault.title(), named(&after), named(&before));
        }
    }
    let _ = write!(
        page,
        "\n### Fault by fault\n\n\
         A fault is named if a cause of the trial or its run is one of the fault's. Five rules changed after a look at later trials, which are no\n\
         evidence for them: `ThroughputDecay`, `BalancedDegradation`, `TailLatency`, and `FrontendBound` twice. {} of {} trials are wrong: they are\n\
         healthy but miss or have a cause, or their fault is not named. A frontend on a shared CPU does not count: it kept {on_shared_cpu} % of the\n\
         throughput of healthy trials (median of the same setting).\n\n\
         These faults were named every time (later, earlier trials): {}.\n\n\
         | other faults | named in later trials | in earlier ones |\n|---|---|---|\n{table}\n\
         In {late} of the later trials that name the fault, another cause or worker comes first.\n",
        seen.iter().filter(|seen| seen.is_wrong()).count(),
        seen.len(),
        always.join(", ")
    );
}

/// Trials in which the fault was named, of all; a miss is bold.
fn named(trials: &[&Seen<'_>]) -> String {
    let named = trials.iter().filter(|seen| seen.named()).count();
    match trials.len() {
        0 => "–".to_owned(),
        all if named < all => format!("**{named} of {all}**"),
        all => format!("{named} of {all}"),
    }
}

/// Faults that end a run before any trial.
pub(super) fn before_any_trial(page: &mut String, ended: &[&LabRun]) {
    if ended.is_empty() {
        return;
    }
    let mut by_fault: BTreeMap<Fault, Vec<&LabRun>> = BTreeMap::new();
    for run in ended {
        by_fault.entry(run.fault).or_default().push(run);
    }
    let faults = by_fault.into_iter().map(|(fault, runs)| {
        let live = runs.iter().filter_map(|run| run.live.as_ref());
        let text = |live: &Live| format!("{} {}", live.verdict.as_str(), live.reason);
        let ends: BTreeSet<String> = live.map(text).collect();
        let ends = ends.into_iter().collect::<Vec<_>>().join(", ");
        format!("{} ({} × {ends})", fault.title(), runs.len())
    });
    let _ = write!(
        page,
        "\n### Faults that let nothing be measured\n\nAll runs, with verdict and cause: {}.\n",
        faults.collect::<Vec<_>>().join(", ")
    );
}

/// Cases without a recording, so that silence is not taken for success.
pub(super) fn missing(page: &mut String, runs: &[LabRun]) {
    let mut missing: BTreeMap<Fault, Vec<&str>> = BTreeMap::new();
    for case in cases() {
        if case.repeats_in(runs) < case.repeats {
            missing.entry(case.fault).or_default().push(case.router.flag());
        }
    }
    if missing.is_empty() {
        return;
    }
    page.push_str(
        "\n### Not recorded yet\n\nThese were repeated fewer than three times, or never; `just fidelity` records them on the lab.\n\n",
    );
    for (fault, routers) in missing {
        let _ = writeln!(page, "* {}: {}", fault.title(), routers.join(", "));
    }
}
