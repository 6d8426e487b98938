//! docs/evidence/fidelity.md and trials.csv, written from the recorded runs by the code of today.

use std::fmt::Write as _;

use crate::corpus::LabRun;
use crate::published::{Gates, Replayed, WINDOWS, replay, rows, sequences};
use crate::rejudged::{self, Seen};
use crate::simulated::in_short;
use crate::{alone, correlation, forced, frontend, goals, recorded, silicon, trials};

/// The page, and the file beside it.
pub struct Texts {
    /// fidelity.md.
    pub page: String,
    /// trials.csv: one row for each recorded trial.
    pub trials: String,
}

/// Both texts.
///
/// # Panics
/// If the published table in this repository is broken.
pub fn texts(runs: &[LabRun]) -> Texts {
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
         The operator's own code computed every number. The **plain gate** is the verdict of one trial: throughput and\n\
         TTFT p99 against their thresholds with 10 % tolerance, as in NVIDIA/aicr's `inference-perf` check. Causes have finer names here than in a\n\
         status: several share one [word](../reasons.md).\n",
    );
    goals::table(&mut page, &shipped, &seen, &ended, forced::counted(runs));
    published(&mut page, &rows, &windows(Gates::Published), &shipped);
    correlation::table(
        &mut page,
        &[
            ("published, healthy windows of one deployment", sequences(&rows)),
            ("lab and rig, healthy runs", rejudged::sequences(runs)),
        ],
    );
    recorded::settings(&mut page, &seen);
    recorded::faults(&mut page, &seen);
    recorded::before_any_trial(&mut page, &ended);
    recorded::missing(&mut page, runs);
    forced::list(&mut page, runs);
    silicon::section(&mut page, &seen);
    frontend::table(&mut page, &groups);
    alone::table(&mut page, runs);
    Texts {
        page,
        trials: trials::csv(&groups),
    }
}

fn published(page: &mut String, rows: &[crate::published::Row], windows: &[Replayed], shipped: &[Replayed]) {
    let measured = rows.iter().filter(|row| row.published != 'E').count();
    let _ = write!(
        page,
        "\n## Published runs\n\n[published.csv](../../tests/fidelity/published.csv) lists {} runs of NVIDIA/aicr's check in 2026 with their source (its report\n\
         `inference-perf-fluctuation.md`, issues and pull requests). {measured} of them measured something. The gate code judges each as published; a test\n\
         compares them. Errors were not published, so none are assumed.\n\n\
         Runs that followed each other on the same node are trials of one window. The cells show *passed / failed / trials, mean* of runs whose\n\
         trials are drawn from that window: exact, or 4,000 simulated runs if trials lie near a gate. The published gate is 50,000 tokens/s less\n\
         10 %, which is [loose](../gates.md#why-not-50000-tokenss). The shipped gates are the first two of `config/samples/gpu-h100-80gb.yaml`:\n\
         13,500 tokens/s per GPU and TTFT p99 2,000 ms, without tolerance. *Healthy* is what the users found out afterwards.\n\n\
         | window | healthy | trials | published gate: missed | runs | shipped gates: missed | runs |\n|---|---|---|---|---|---|---|\n",
        rows.len()
    );
    for (replayed, shipped) in windows.iter().zip(shipped) {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} | {} |",
            replayed.window.name,
            if replayed.window.healthy { "yes" } else { "no" },
            replayed.trials.len(),
            replayed.missed(),
            in_short(replayed.odds),
            shipped.missed(),
            in_short(shipped.odds),
        );
    }
    page.push_str(
        "\nBy the shipped gates the EKS windows of the afternoon miss every second trial, so healthy nodes fail more often than the goal allows. These\n\
         runs used round-robin routing on Dynamo 1.0.2, which stalled on good nodes. The sample uses least-loaded routing on a newer Dynamo, and its\n\
         only published windows are those of AKS. So the goal is not shown for what the sample deploys.\n",
    );
}
