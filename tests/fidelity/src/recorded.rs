//! The part of the page on recorded trials: what they are of, what was said of each fault, what was wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use perfval_api::TrialOutcome;

use crate::corpus::LabRun;
use crate::fault::{Fault, Truth};
use crate::matrix::{ROUTERS, cases};
use crate::published::{percent, share};
use crate::rejudged::{Group, Seen, drawn};
use crate::setting::{Place, freeze};

const EXCLUDED: &str = include_str!("../excluded.csv");

/// Trials that were recorded and do not count.
fn excluded() -> usize {
    let rows = EXCLUDED.lines().filter(|line| !line.starts_with('#')).skip(1);
    rows.filter_map(|line| line.split(',').nth(4)?.parse::<usize>().ok())
        .sum()
}

/// Where trials were recorded, and how fast the healthy ones are.
pub(super) fn settings(page: &mut String, groups: &[Group<'_>]) {
    let excluded = match excluded() {
        0 => "none does".to_owned(),
        some => format!("{some} do"),
    };
    let _ = write!(
        page,
        "\n## Recorded trials\n\n\
         The **lab** is real Kubernetes with NVIDIA's DRA driver, the operator and four simulated engines (Dynamo 1.4.2), AIPerf 0.13.0 with 32\n\
         requests in flight, 448 per trial, about 50 ms a token, on two cores. The **rig** is the same frontend, workers, load generator and\n\
         runner on loopback, without a cluster. **Silicon** is the rig with vLLM 0.26.0 on real GPUs ([how](#on-real-gpus)). The trials are in\n\
         [tests/fidelity/recorded.jsonl.gz](../../tests/fidelity/recorded.jsonl.gz), with all samples, and judged by today's code. Gates follow the healthy\n\
         trials of the same setting: three quarters of their median throughput, two and a half times their median TTFT p99, 10 % tolerance.\n\
         So the healthy trials of a load that has only a few of them hardly miss the gates that they set themselves.\n\
         Every trial ever recorded is here, or stands in [tests/fidelity/excluded.csv](../../tests/fidelity/excluded.csv) with its reason: {excluded}.\n\n\
         | setting | router | trials | healthy throughput, median | healthy TTFT p99, median | processes that wanted a CPU |\n|---|---|---|---|---|---|\n",
    );
    for group in groups {
        let calibration = group.calibration.map_or(("–".to_owned(), "–".to_owned()), |found| {
            (
                format!("{:.0} tokens/s", found.throughput),
                format!("{:.0} ms", found.ttft_p99_ms),
            )
        });
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} |",
            group.setting,
            group.setting.router().flag(),
            group.trials.len(),
            calibration.0,
            calibration.1,
            group.load()
        );
    }
}

/// What was said of each fault, on trials that thresholds were fixed on and on those recorded afterwards.
pub(super) fn faults(page: &mut String, seen: &[&Seen<'_>]) {
    let (training, held_out): (Vec<&Seen<'_>>, Vec<&Seen<'_>>) = seen.iter().partition(|seen| seen.run.training());
    let day = freeze().format("%Y-%m-%d %H:%M UTC");
    let _ = write!(
        page,
        "\n### Recorded before the freeze\n\nThresholds were fixed on these, up to {day}: that they look well proves little. All routers together. P passed, M missed,\n\
         I invalid; F failed, E nothing to read. *First cause right*: the first cause named is the fault's, and the first worker in its\n\
         evidence is the one that was struck. *A run*: how the default rule ends if its trials are drawn from these.\n",
    );
    table(page, &training);
    let _ = write!(page, "\n### Recorded after the freeze\n\n");
    if held_out.is_empty() {
        page.push_str("None yet.\n");
    } else {
        page.push_str(
            "Five rules were changed after a look at these, on 2026-11-23, so the trials that are named are no evidence for them. All other\n\
             thresholds are as they were at the freeze.\n\n\
             * `ThroughputDecay` asks for two slow minutes: the only trial of five minutes, a healthy one on two H200s, ended with a single one, at\n\
             the same clocks.\n\
             * A rate that is missed by more than the slowest worker explains is a `BalancedDegradation` too: of seven trials on the lab with all\n\
             engines slow one named only the worker that was slower still.\n\
             * `FrontendBound` asks for 20 % of a request's time in the frontend and 0.2 s, no more for 30 % and 0.5 s: one of three throttled\n\
             frontends on the lab took 26 %. In 69 healthy trials it was 4 % and 0.06 s at most.\n\
             * `FrontendBound` is also said of a frontend that is late to everything by its own measure, which no trial before had recorded:\n\
             [Frontends without CPU](#frontends-without-cpu).\n\
             * `TailLatency` is said instead of `BalancedDegradation` where nine of ten requests meet the gate: a healthy trial on two H200s, of\n\
             3,185 requests, had 64 that waited a second in one worker.\n",
        );
        table(page, &held_out);
    }
}

fn table(page: &mut String, seen: &[&Seen<'_>]) {
    page.push_str(
        "\n| place | fault | should | trials | P | M | I | named | first cause right | plain gate P | F | E | plain gate wrong | a run: passed | failed | inconclusive | trials, mean |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let mut rows: BTreeMap<_, Vec<&Seen<'_>>> = BTreeMap::new();
    for trial in seen {
        let key = (
            trial.run.place,
            trial.run.conditions.busy_machine,
            trial.run.fault,
            trial.run.what(),
        );
        rows.entry(key).or_default().push(trial);
    }
    for ((place, busy, fault, what), trials) in rows {
        let count = |outcome| trials.iter().filter(|seen| seen.outcome == outcome).count();
        let plain = |letter| trials.iter().filter(|seen| seen.plain == letter).count();
        let (should, wrong) = match fault.truth() {
            Truth::Healthy => ("pass", Some(trials.len() - plain('P'))),
            Truth::Degraded => ("fail", Some(plain('P'))),
            Truth::Open | Truth::Broken => ("be named", None),
        };
        let wrong = wrong.map_or("–".to_owned(), |wrong| percent(share(wrong, trials.len())));
        let of_all = |count: usize| match fault {
            Fault::Healthy => "–".to_owned(),
            _ => format!("{count} of {}", trials.len()),
        };
        let run = drawn(&trials);
        let _ = writeln!(
            page,
            "| {}{} | {what} | {should} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {wrong} | {} | {} | {} | {:.1} |",
            place.as_str(),
            if busy { ", busy machine" } else { "" },
            trials.len(),
            count(TrialOutcome::Pass),
            count(TrialOutcome::Miss),
            count(TrialOutcome::Invalid),
            of_all(trials.iter().filter(|seen| seen.named()).count()),
            of_all(trials.iter().filter(|seen| seen.first_is_right()).count()),
            plain('P'),
            plain('F'),
            plain('E'),
            percent(run.passed),
            percent(run.failed),
            percent(run.inconclusive),
            run.trials
        );
    }
}

/// Outcomes and causes, router by router.
pub(super) fn by_router(page: &mut String, seen: &[&Seen<'_>]) {
    page.push_str(
        "\n### Router by router\n\nOutcomes of the trials in order, and every cause that was given.\n\n| place | fault |",
    );
    for router in ROUTERS {
        let _ = write!(page, " {} |", router.flag());
    }
    let _ = writeln!(page, "\n|---|---|{}", "---|".repeat(ROUTERS.len()));
    let rows: BTreeSet<(Place, Fault)> = seen.iter().map(|seen| (seen.run.place, seen.run.fault)).collect();
    for (place, fault) in rows {
        let _ = write!(page, "| {} | {} |", place.as_str(), fault.title());
        for router in ROUTERS {
            let of_cell = || {
                seen.iter()
                    .filter(move |seen| (seen.run.place, seen.run.fault, seen.run.router) == (place, fault, router))
            };
            let outcomes: String = of_cell()
                .map(|seen| match seen.outcome {
                    TrialOutcome::Pass => 'P',
                    TrialOutcome::Miss => 'M',
                    TrialOutcome::Invalid => 'I',
                })
                .collect();
            let causes: BTreeSet<&str> = of_cell().flat_map(|seen| &seen.causes).map(String::as_str).collect();
            let causes: Vec<&str> = causes.into_iter().collect();
            let _ = write!(page, " {} |", [outcomes, causes.join(", ")].join(" ").trim());
        }
        page.push('\n');
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

/// A healthy trial that was blamed, and a fault that was not named, or not first.
pub(super) fn wrong(page: &mut String, seen: &[&Seen<'_>]) {
    let wrong = |seen: &&&Seen<'_>| match seen.run.fault {
        Fault::Healthy => !seen.causes.is_empty() || seen.outcome != TrialOutcome::Pass,
        // Its own table has each of them, with what it cost.
        Fault::CrowdedFrontend => false,
        _ => !seen.named(),
    };
    let mut list: BTreeMap<String, usize> = BTreeMap::new();
    for seen in seen.iter().filter(wrong) {
        let causes = if seen.evidence.is_empty() {
            "no cause named".to_owned()
        } else {
            seen.evidence.join("; ")
        };
        let line = format!(
            "* {}, {}, {}: {:?}, {causes}",
            seen.run.place.as_str(),
            seen.run.what(),
            seen.run.router.flag(),
            seen.outcome
        );
        *list.entry(line).or_default() += 1;
    }
    if list.is_empty() {
        return;
    }
    page.push_str("\n### Where it was wrong\n\nA healthy trial that did not pass or was given a cause, and a fault that was not named.\n\n");
    for (line, times) in list {
        let _ = writeln!(
            page,
            "{line}{}",
            if times > 1 {
                format!(" ({times} times)")
            } else {
                String::new()
            }
        );
    }
}
