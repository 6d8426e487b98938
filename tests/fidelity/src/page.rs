//! docs/evidence/fidelity.md, written from the recorded runs by the code of today.

use std::fmt::Write as _;

use perfval_verdict::trials::{Odds, Ruling};

use crate::corpus::LabRun;
use crate::published::{Gates, Replayed, WINDOWS, percent, replay, rows, sequences};
use crate::rejudged::{self, Seen};
use crate::{alone, correlation, forced, frontend, goals, recorded, silicon, simulated};

/// The whole page.
///
/// # Panics
/// If the published table in this repository is broken.
pub fn page(runs: &[LabRun]) -> String {
    let rows = rows();
    let windows = |gates| -> Vec<Replayed> {
        let replayed = WINDOWS.into_iter().map(|window| replay(window, &rows, gates));
        replayed.collect()
    };
    let shipped = windows(Gates::Shipped);
    let groups = rejudged::groups(runs);
    let seen: Vec<&Seen<'_>> = groups.iter().flat_map(|group| &group.trials).collect();
    let ended: Vec<&LabRun> = runs.iter().filter(|run| run.trials.is_empty()).collect();

    let mut page = String::from(
        "<!-- Generated from recorded runs: run `just fidelity --replay-only`. -->\n# How often the verdict is right\n\n\
         This page judges all recorded trials by the code of today. These commands write it again:\n\n\
         ```sh\njust fidelity --replay-only   # seconds: judges the recorded runs again, writes this page\n\
         just fidelity-rig             # about two hours: records trials of every router and engine fault, without a cluster\n\
         just fidelity                 # two hours in steps of 40 minutes: records runs of the operator on the lab, as root; type it again to go on\n```\n\n\
         The operator's own code for gates, trials and causes computed every number. The **plain gate** beside it is the verdict of one trial:\n\
         throughput and TTFT p99 against their thresholds with 10 % tolerance, as in NVIDIA/aicr's `inference-perf` check.\n\n\
         Causes have finer names on this page than in a status: several of them share one [word](../reasons.md).\n",
    );
    goals::table(&mut page, &shipped, &seen, &ended, forced::counted(runs));
    published(&mut page, &rows, &windows(Gates::Published), &shipped);
    simulated::table(&mut page);
    correlation::table(
        &mut page,
        &[
            ("published, healthy windows of one deployment", sequences(&rows)),
            ("lab and rig, healthy runs", rejudged::sequences(runs)),
        ],
    );
    recorded::settings(&mut page, &groups);
    recorded::faults(&mut page, &seen);
    recorded::by_router(&mut page, &seen);
    recorded::before_any_trial(&mut page, &ended);
    recorded::missing(&mut page, runs);
    recorded::wrong(&mut page, &seen);
    forced::table(&mut page, runs);
    silicon::section(&mut page, &seen);
    frontend::table(&mut page, &groups);
    alone::table(&mut page, runs);
    page
}

fn published(page: &mut String, rows: &[crate::published::Row], windows: &[Replayed], shipped: &[Replayed]) {
    let measured = rows.iter().filter(|row| row.published != 'E').count();
    let _ = write!(
        page,
        "\n## Published runs\n\n{} runs of NVIDIA/aicr's check in 2026, with source: [tests/fidelity/published.csv](../../tests/fidelity/published.csv) \
         (its report `inference-perf-fluctuation.md`, issues and pull requests). {measured} measured something; the gate code judges each as \
         was published (a test compares them). Errors were not published, so none are assumed.\n\n\
         Where runs followed each other on the same node, they are trials. *Deployments*: whether one was measured again and again, or others\n\
         that were alike; what differs between those adds to what differs by chance. Each row shows how a run of the operator ends if every\n\
         trial is drawn from that window: exact probabilities, or 4,000 simulated runs where trials lie near a gate. *In order* is the answer of\n\
         the rule to the trials as they came.\n",
        rows.len()
    );
    table(page, windows);
    page.push_str(
        "\nThe published gate (50,000 tokens/s less 10 %) is loose: [half of a node may fail beside it](../gates.md#why-not-50000-tokenss). The same runs by\n\
         the gates of `config/samples/gpu-h100-80gb.yaml` (13,500 tokens/s per GPU, TTFT p99 2,000 ms, no tolerance):\n",
    );
    table(page, shipped);
    page.push_str(
        "\nBy these gates the EKS windows of the afternoon miss in every second trial, so healthy nodes fail more often than the goal allows. The\n\
         runs are of round-robin routing on Dynamo 1.0.2, which stalled on good nodes. The sample runs least-loaded routing on a newer Dynamo: its\n\
         only published windows are those of AKS. So the goal is not shown for what the sample deploys, in either direction.\n\n\
         Two trials bound no pass rate: t8–t9 is here for completeness. *Healthy* is what their users found out afterwards: the round-robin\n\
         stall came and went on good nodes, `isolcpus` did not.\n",
    );
}

fn table(page: &mut String, windows: &[Replayed]) {
    page.push_str(
        "\n| window | deployments | healthy | trials | missed | one trial is wrong | passed | failed | inconclusive | trials, mean | in order |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n",
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
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {trials:.1} | {in_order} |",
            replayed.window.name,
            replayed.window.deployments,
            if replayed.window.healthy { "yes" } else { "no" },
            replayed.trials.len(),
            replayed.missed(),
            percent(replayed.one_trial_wrong()),
            percent(passed),
            percent(failed),
            percent(inconclusive),
        );
    }
}
