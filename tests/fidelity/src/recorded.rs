//! The part of the page on recorded trials: where they are from, and what was found of each fault.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::corpus::LabRun;
use crate::fault::{Fault, Truth};
use crate::matrix::cases;
use crate::published::percent;
use crate::rejudged::{Seen, drawn};
use crate::setting::freeze;

const EXCLUDED: &str = include_str!("../excluded.csv");

/// Trials that were recorded and do not count.
fn excluded() -> usize {
    let rows = EXCLUDED.lines().filter(|line| !line.starts_with('#')).skip(1);
    rows.filter_map(|line| line.split(',').nth(4)?.parse::<usize>().ok())
        .sum()
}

/// Places of the trials, and the rules by which they are judged.
pub(super) fn settings(page: &mut String, seen: &[&Seen<'_>]) {
    let _ = write!(
        page,
        "\n## Recorded trials\n\n\
         * **Lab**: real Kubernetes with NVIDIA's DRA driver, the operator and four simulated engines (Dynamo 1.4.2), and AIPerf 0.13.0 with 32\n\
         \x20 requests in flight and 448 per trial, on two cores.\n\
         * **Rig**: the same frontend, workers, load generator and runner on loopback, without a cluster.\n\
         * **Silicon**: the rig with vLLM 0.26.0 on [real GPUs](#on-real-gpus).\n\n\
         [trials.csv](trials.csv) has one row for each trial. Their samples are in\n\
         [recorded.jsonl.gz](../../tests/fidelity/recorded.jsonl.gz). [excluded.csv](../../tests/fidelity/excluded.csv) gives the reason of each\n\
         trial that does not count: it has {}.\n\n\
         Gates follow the healthy trials of the same setting (machine, router, load): three quarters of their median throughput, two and a half\n\
         times their median TTFT p99, 10 % tolerance. In a setting with few healthy trials these gates judge the trials that set them.\n\n\
         | place | routers | trials |\n|---|---|---|\n",
        excluded()
    );
    let mut places: BTreeMap<_, (BTreeSet<&str>, usize)> = BTreeMap::new();
    for seen in seen {
        let place = places
            .entry((seen.run.place, seen.run.conditions.busy_machine))
            .or_default();
        place.0.insert(seen.run.router.flag());
        place.1 += 1;
    }
    for ((place, busy), (routers, trials)) in places {
        let busy = if busy { ", busy machine" } else { "" };
        let routers: Vec<&str> = routers.into_iter().collect();
        let _ = writeln!(page, "| {}{busy} | {} | {trials} |", place.as_str(), routers.join(", "));
    }
}

/// Causes that were found for each fault, on trials that thresholds were fixed on and on those recorded afterwards.
pub(super) fn faults(page: &mut String, seen: &[&Seen<'_>]) {
    let wrong = seen.iter().filter(|seen| seen.is_wrong()).count();
    let _ = write!(
        page,
        "\n### Fault by fault\n\n\
         Thresholds were fixed on the trials before the **freeze** ({}), so only later trials are evidence. Five rules changed after a look at\n\
         later trials, which are no evidence for them: `ThroughputDecay`, `BalancedDegradation`, `TailLatency`, and `FrontendBound` twice.\n\n\
         How a trial counts:\n\n\
         * **Named**: a cause, or a cause of its run, is one of the fault's.\n\
         * **First**: the first cause is one of the fault's, and the first worker in its evidence is the affected one.\n\
         * **Plain gate wrong**: one trial by its gates alone passes a degraded deployment, or does not pass a healthy one.\n\
         * **Runs wrong**: a run by the default rule, its trials drawn from these, passes a degraded deployment or fails a healthy one.\n\
         * **Wrong** in the file: a healthy trial that misses or has a cause, and a fault that is not named. It applies to {wrong} of {} trials.\n\
         \x20 A [frontend on a shared CPU](#frontends-without-cpu) does not count.\n\n\
         | fault | should | before: trials | named | after: trials | named | first | plain gate wrong | runs wrong |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        freeze().format("%Y-%m-%d %H:%M UTC"),
        seen.len()
    );
    let mut rows: BTreeMap<Fault, Vec<&Seen<'_>>> = BTreeMap::new();
    for trial in seen {
        rows.entry(trial.run.fault).or_default().push(trial);
    }
    for (fault, trials) in rows {
        let (before, after): (Vec<&Seen<'_>>, Vec<&Seen<'_>>) = trials.iter().partition(|seen| seen.run.training());
        let plain = |letter| trials.iter().filter(|seen| seen.plain == letter).count();
        let (should, wrong) = match fault.truth() {
            Truth::Healthy => ("pass", Some((trials.len() - plain('P'), drawn(&trials).failed))),
            Truth::Degraded => ("fail", Some((plain('P'), drawn(&trials).passed))),
            Truth::Open | Truth::Broken => ("be named", None),
        };
        let (plain, runs) = wrong.map_or(("–".to_owned(), "–".to_owned()), |(plain, runs)| {
            (format!("{plain} of {}", trials.len()), percent(runs))
        });
        let shown = |count: usize| match fault {
            Fault::Healthy => "–".to_owned(),
            _ => count.to_string(),
        };
        let named = |trials: &[&Seen<'_>]| shown(trials.iter().filter(|seen| seen.named()).count());
        let _ = writeln!(
            page,
            "| {} | {should} | {} | {} | {} | {} | {} | {plain} | {runs} |",
            fault.title(),
            before.len(),
            named(&before),
            after.len(),
            named(&after),
            shown(after.iter().filter(|seen| seen.first_is_right()).count()),
        );
    }
}

/// Faults that end a run before any trial.
pub(super) fn before_any_trial(page: &mut String, ended: &[&LabRun]) {
    if ended.is_empty() {
        return;
    }
    page.push_str("\n### Faults that let nothing be measured\n\n| fault | runs | verdict | reason | seconds to the verdict |\n|---|---|---|---|---|\n");
    let mut by_fault: BTreeMap<Fault, Vec<&LabRun>> = BTreeMap::new();
    for run in ended {
        by_fault.entry(run.fault).or_default().push(run);
    }
    for (fault, runs) in by_fault {
        let live = || runs.iter().filter_map(|run| run.live.as_ref());
        let verdicts: BTreeSet<&str> = live().map(|live| live.verdict.as_str()).collect();
        let reasons: BTreeSet<&str> = live().map(|live| live.reason.as_str()).collect();
        let seconds: BTreeSet<u64> = runs.iter().map(|run| run.seconds).collect();
        let words = |words: BTreeSet<&str>| words.into_iter().collect::<Vec<_>>().join(", ");
        let seconds: Vec<String> = [seconds.first(), seconds.last()]
            .into_iter()
            .flatten()
            .map(u64::to_string)
            .collect();
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} |",
            fault.title(),
            runs.len(),
            words(verdicts),
            words(reasons),
            seconds.join(" to ")
        );
    }
}

/// What no recording shows, so that silence is not taken for success.
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
