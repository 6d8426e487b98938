//! docs/evidence/fidelity.md and trials.csv, written from the recorded runs by the code of today.

use std::fmt::Write as _;

use crate::corpus::LabRun;
use crate::published::{Gates, Replayed, Row, WINDOWS, percent, replay, rows, sequences};
use crate::rejudged::{self, Seen};
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
    let windows = WINDOWS.into_iter();
    let windows: Vec<Replayed> = windows.map(|window| replay(window, &rows, Gates::Shipped)).collect();
    let groups = rejudged::groups(runs);
    let seen: Vec<&Seen<'_>> = groups.iter().flat_map(|group| &group.trials).collect();
    let ended: Vec<&LabRun> = runs.iter().filter(|run| run.trials.is_empty()).collect();

    let mut page = String::from(
        "<!-- Generated from recorded runs: run `just fidelity --replay-only`. -->\n# How often the verdict is right\n\n\
         The operator's code of today judges all recorded trials. Causes have finer names here than in a [status](../reasons.md).\n\n\
         ```sh\njust fidelity --replay-only   # seconds: writes this page\n\
         just fidelity-rig             # two hours: records trials without a cluster\n\
         just fidelity                 # two hours, as root: records runs on the lab; after 40 minutes type it again\n```\n",
    );
    goals::table(&mut page, &windows, &seen, &ended, forced::counted(runs));
    published(&mut page, &rows, &windows);
    correlation::table(
        &mut page,
        &[
            ("healthy published windows", sequences(&rows)),
            ("healthy deployments of lab and rig", rejudged::sequences(runs)),
        ],
    );
    recorded::settings(&mut page, &seen);
    recorded::faults(&mut page, &seen, &frontend::throughput_on_shared_cpu(&groups));
    recorded::before_any_trial(&mut page, &ended);
    recorded::missing(&mut page, runs);
    forced::list(&mut page, runs);
    silicon::section(&mut page, &seen);
    alone::table(&mut page, runs);
    Texts {
        page,
        trials: trials::csv(&groups),
    }
}

fn published(page: &mut String, rows: &[Row], windows: &[Replayed]) {
    let measured = rows.iter().filter(|row| row.published != 'E').count();
    let _ = write!(
        page,
        "\n## Published runs\n\n[published.csv](../../tests/fidelity/published.csv) lists {} runs of NVIDIA/aicr's check in 2026. {measured} measured something. No\n\
         errors were published, so none are assumed. Consecutive runs on one node with eight H100s are the trials of a window. The table shows runs\n\
         whose trials are drawn from it, with the first two gates of `config/samples/gpu-h100-80gb.yaml`: 13,500 tokens/s per GPU and TTFT p99\n\
         2,000 ms. Apart from the platform fault the nodes were healthy, as their users found out afterwards.\n\n\
         | window | trials missed | runs passed | failed | trials, mean |\n|---|---|---|---|---|\n",
        rows.len()
    );
    for replayed in windows {
        let _ = writeln!(
            page,
            "| {} | {} of {} | {} | {} | {:.1} |",
            replayed.window.name,
            replayed.missed(),
            replayed.trials.len(),
            percent(replayed.odds.passed),
            percent(replayed.odds.failed),
            replayed.odds.trials,
        );
    }
    page.push_str(
        "\nAll EKS windows used round-robin on Dynamo 1.0.2, which stalled on good nodes. The sample uses least-loaded on a newer Dynamo. Only the\n\
         AKS windows resemble it, so the goal is not shown for the sample.\n",
    );
}
