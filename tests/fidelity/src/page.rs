//! docs/fidelity.md, written from the recorded runs by the code of today.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use perfval_api::TrialOutcome;
use perfval_verdict::trials::{Odds, Ruling};

use crate::corpus::LabRun;
use crate::fault::{Fault, Truth};
use crate::matrix::{ROUTERS, cases};
use crate::published::{Replayed, WINDOWS, percent, replay, rows, sequences, share};
use crate::rejudged::{self, Place, Seen, drawn};
use crate::{correlation, goals, simulated};

/// The whole page.
///
/// # Panics
/// If the published table in this repository is broken.
pub fn page(runs: &[LabRun]) -> String {
    let rows = rows();
    let windows: Vec<Replayed> = WINDOWS.into_iter().map(|window| replay(window, &rows)).collect();
    let (lab, rig): (Vec<&LabRun>, Vec<&LabRun>) = runs.iter().partition(|run| run.live.is_some());
    let places: Vec<Place<'_>> = [("lab", lab), ("rig", rig)]
        .into_iter()
        .flat_map(|(name, runs)| ROUTERS.map(|router| Place::of(name, router, &runs)))
        .collect();
    let seen: Vec<&Seen<'_>> = places.iter().flat_map(|place| &place.trials).collect();
    let ended: Vec<&LabRun> = runs.iter().filter(|run| run.trials.is_empty()).collect();

    let mut page = String::from(
        "<!-- Generated from recorded runs: run `just fidelity --replay-only`. -->\n# How often the verdict is right\n\n\
         You want to know what a `Passed` or a `Failed` is worth. Type\n\n\
         ```sh\njust fidelity --replay-only   # seconds: judges the recorded runs again, writes this page\n\
         just fidelity-rig             # about an hour: records trials of every router and engine fault, without a cluster\n\
         just fidelity                 # two hours in steps of 40 minutes: records runs of the operator on the lab, as root; type it again to go on\n```\n\n\
         Every figure below comes from the operator's own gate, trial and cause code. Beside it stands what **one trial with a plain\n\
         gate** says of the same data: throughput and TTFT p99 against their thresholds with 10 % tolerance, nothing else, as\n\
         NVIDIA/aicr's `inference-perf` check does.\n",
    );
    goals::table(&mut page, &windows, &seen, &ended);
    published(&mut page, &rows, &windows);
    simulated::table(&mut page);
    correlation::table(
        &mut page,
        &[
            ("published, healthy windows of one deployment", sequences(&rows)),
            ("lab and rig, healthy runs", rejudged::sequences(runs)),
        ],
    );
    recorded(&mut page, &places, &seen);
    before_any_trial(&mut page, &ended);
    not_recorded(&mut page, runs);
    not_named(&mut page, &seen);
    page
}

fn published(page: &mut String, rows: &[crate::published::Row], windows: &[Replayed]) {
    let measured = rows.iter().filter(|row| row.published != 'E').count();
    let _ = write!(
        page,
        "\n## Published runs\n\n{} runs of NVIDIA/aicr's check in 2026, with source: [tests/fidelity/published.csv](../tests/fidelity/published.csv) \
         (its report `inference-perf-fluctuation.md`, issues and pull requests). {measured} measured something; the gate code judges each as \
         was published (a test compares them). Errors were not published, so none are assumed.\n\n\
         Where the same deployment was measured repeatedly, its runs are trials. Each row says how a run of the operator ends if every\n\
         trial is drawn from that window: exact probabilities, no simulation. *In order*: what the rule says of the trials as they came.\n\n\
         | window | healthy | trials | missed | one trial is wrong | passed | failed | inconclusive | trials, mean | in order |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
        rows.len()
    );
    for replayed in windows {
        let Odds {
            passed,
            failed,
            inconclusive,
            trials,
        } = replayed.odds;
        let in_order = match replayed.in_order {
            (Ruling::Continue, length) => format!("undecided after {length}"),
            (ruling, length) => format!("{} after {length}", format!("{ruling:?}").to_lowercase()),
        };
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {trials:.1} | {in_order} |",
            replayed.window.name,
            if replayed.window.healthy { "yes" } else { "no" },
            replayed.trials.len(),
            replayed.missed(),
            percent(replayed.one_trial_wrong()),
            percent(passed),
            percent(failed),
            percent(inconclusive),
        );
    }
    page.push_str(
        "\nTwo trials bound no pass rate: t8–t9 is here for completeness. *Healthy* is what their users found out afterwards: the round-robin\n\
         stall came and went on good nodes, `isolcpus` did not.\n",
    );
}

fn recorded(page: &mut String, places: &[Place<'_>], seen: &[&Seen<'_>]) {
    page.push_str(
        "\n## Recorded trials\n\n\
         Four workers with simulated engines (Dynamo 1.4.2), AIPerf 0.13.0, 32 requests in flight, 448 per trial, about 50 ms a token, on two\n\
         cores. The **lab** is real Kubernetes with NVIDIA's DRA driver and the operator; the **rig** is the same frontend, workers, load\n\
         generator and runner on loopback, without a cluster ([tests/fidelity/rig.py](../tests/fidelity/rig.py)). The trials are in\n\
         [tests/fidelity/recorded.jsonl.gz](../tests/fidelity/recorded.jsonl.gz), with all samples, and judged by today's code. Gates follow the healthy\n\
         trials of the same router: three quarters of their median throughput, two and a half times their median TTFT p99, 10 % tolerance.\n\n\
         | place | router | trials | healthy throughput, median | healthy TTFT p99, median | processes that wanted a CPU |\n|---|---|---|---|---|---|\n",
    );
    for place in places.iter().filter(|place| !place.trials.is_empty()) {
        let calibration = place.calibration.map_or(("–".to_owned(), "–".to_owned()), |found| {
            (
                format!("{:.0} tokens/s", found.throughput),
                format!("{:.0} ms", found.ttft_p99_ms),
            )
        });
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} |",
            place.name,
            place.router.flag(),
            place.trials.len(),
            calibration.0,
            calibration.1,
            place.load()
        );
    }
    pooled(page, seen);
    by_router(page, seen);
}

fn pooled(page: &mut String, seen: &[&Seen<'_>]) {
    page.push_str(
        "\n### All routers together\n\nP passed, M missed, I invalid; F failed, E nothing to read. *A run*: how the default rule ends if its trials are drawn from these.\n\n\
         | fault | should | trials | P | M | I | named | plain gate P | F | E | plain gate wrong | a run: passed | failed | inconclusive | trials, mean |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let mut by_fault: BTreeMap<Fault, Vec<&Seen<'_>>> = BTreeMap::new();
    for trial in seen {
        by_fault.entry(trial.run.fault).or_default().push(trial);
    }
    for (fault, trials) in by_fault {
        let count = |outcome| trials.iter().filter(|seen| seen.outcome == outcome).count();
        let plain = |letter| trials.iter().filter(|seen| seen.plain == letter).count();
        let (should, wrong) = match fault.truth() {
            Truth::Healthy => ("pass", Some(trials.len() - plain('P'))),
            Truth::Degraded => ("fail", Some(plain('P'))),
            Truth::Open | Truth::Broken => ("be told", None),
        };
        let wrong = wrong.map_or("–".to_owned(), |wrong| percent(share(wrong, trials.len())));
        let named = trials.iter().filter(|seen| seen.named()).count();
        let named = if fault == Fault::Healthy {
            "–".to_owned()
        } else {
            format!("{named} of {}", trials.len())
        };
        let run = drawn(&trials);
        let _ = writeln!(
            page,
            "| {} | {should} | {} | {} | {} | {} | {named} | {} | {} | {} | {wrong} | {} | {} | {} | {:.1} |",
            fault.title(),
            trials.len(),
            count(TrialOutcome::Pass),
            count(TrialOutcome::Miss),
            count(TrialOutcome::Invalid),
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

fn by_router(page: &mut String, seen: &[&Seen<'_>]) {
    page.push_str(
        "\n### Router by router\n\nOutcomes of the trials in order, and every cause that was given.\n\n| fault |",
    );
    for router in ROUTERS {
        let _ = write!(page, " {} |", router.flag());
    }
    let _ = writeln!(page, "\n|---|{}", "---|".repeat(ROUTERS.len()));
    let faults: BTreeSet<Fault> = seen.iter().map(|seen| seen.run.fault).collect();
    for fault in faults {
        let _ = write!(page, "| {} |", fault.title());
        for router in ROUTERS {
            let of_cell = || {
                seen.iter()
                    .filter(move |seen| (seen.run.fault, seen.run.router) == (fault, router))
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

fn before_any_trial(page: &mut String, ended: &[&LabRun]) {
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

/// What no recording shows, so that nobody takes silence for success.
fn not_recorded(page: &mut String, runs: &[LabRun]) {
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

fn not_named(page: &mut String, seen: &[&Seen<'_>]) {
    let wrong = |seen: &&&Seen<'_>| match seen.run.fault {
        Fault::Healthy => !seen.causes.is_empty() || seen.outcome != TrialOutcome::Pass,
        _ => !seen.named(),
    };
    let mut list: Vec<String> = Vec::new();
    for seen in seen.iter().filter(wrong) {
        let causes = if seen.evidence.is_empty() {
            "no cause named".to_owned()
        } else {
            seen.evidence.join("; ")
        };
        list.push(format!(
            "* {}, {}: {:?}, {causes}\n",
            seen.run.fault.title(),
            seen.run.router.flag(),
            seen.outcome
        ));
    }
    if !list.is_empty() {
        let _ = write!(
            page,
            "\n### Where it was wrong\n\nA healthy trial that did not pass or was given a cause, and a fault that was not named.\n\n{}",
            list.concat()
        );
    }
}
