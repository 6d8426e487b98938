//! The tables of the page.

use kube::ResourceExt as _;
use perfval_api::{PerfValidation, PerfValidationStatus, Phase, Verdict, WorkerLoad};

use super::layout::{INDENT, PageLayout};
use crate::draw::{flow, span};
use crate::table::{Table, dash};

pub fn trials(page: &PageLayout, status: &PerfValidationStatus) -> String {
    if status.state.trials.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        "TRIAL", "OUTCOME", "TOK/S", "TTFT-P99", "REQUESTS", "ERRORS", "TOOK", "CAUSES",
    ]);
    for trial in &status.state.trials {
        let outcome = trial
            .outcome
            .map_or_else(|| "running".to_owned(), |outcome| format!("{outcome:?}"));
        table.row([
            if trial.soak {
                format!("{} (soak)", trial.number)
            } else {
                trial.number.to_string()
            },
            outcome,
            dash(trial.throughput.as_ref()),
            dash(trial.ttft_p99_ms.as_ref()),
            dash(trial.requests),
            dash(trial.errors),
            dash(
                trial
                    .completed_at
                    .map(|end| span((end - trial.started_at).num_seconds())),
            ),
            trial.causes.join(", "),
        ]);
    }
    page.title("Trials") + &table.within(page.columns, INDENT)
}

/// Next to its peers; of the only worker, next to earlier runs.
fn speed(worker: &WorkerLoad) -> String {
    match (&worker.percent_of_peers, &worker.percent_of_earlier_runs) {
        (Some(speed), _) => format!("{speed} %"),
        (None, Some(speed)) => format!("{speed} of {} earlier runs", speed.of),
        (None, None) => "-".to_owned(),
    }
}

pub fn workers(page: &PageLayout, status: &PerfValidationStatus) -> String {
    if status.state.workers.is_empty() {
        return String::new();
    }
    let gpu = |pod: &str| {
        let worker = status.state.worker_pods.iter().find(|worker| worker.pod == pod);
        let devices = worker.map(|worker| worker.devices.join(", "));
        dash(devices.filter(|devices| !devices.is_empty()))
    };
    let mut table = Table::new([
        "WORKER",
        "GPU",
        "OF ITS PEERS",
        "TOK/S",
        "MS/TOKEN",
        "SERVED",
        "STOOD STILL",
    ]);
    for worker in &status.state.workers {
        table.row([
            worker.name.clone(),
            gpu(&worker.name),
            speed(worker),
            dash(worker.tokens_per_second.as_ref()),
            dash(worker.token_ms.as_ref()),
            dash(worker.served),
            dash(worker.still_seconds.map(|seconds| format!("{seconds}s"))),
        ]);
    }
    page.title("Workers in the last valid trial, the slowest first") + &table.within(page.columns, INDENT)
}

/// Places of all measurements.
pub fn evidence(page: &PageLayout, object: &PerfValidation, status: &PerfValidationStatus) -> String {
    let Some(results) = &status.results_ref else {
        return String::new();
    };
    let namespace = object.namespace().unwrap_or_default();
    let digest = results.sha256.get(..12).unwrap_or_default();
    let what = format!("ConfigMap {} (sha256 {digest}):", results.name);
    let command = format!("kubectl get configmap -n {namespace} {}{}", results.name, page.flags);
    page.title("Evidence") + &flow([&*what, &*command], " ", page.columns, INDENT)
}

/// Commands to type next.
pub fn next(page: &PageLayout, object: &PerfValidation, status: &PerfValidationStatus) -> String {
    let name = object.name_any();
    let over = status.phase == Some(Phase::Completed);
    let lines: &[(&str, &str)] = match (over, status.verdict) {
        _ if object.spec.suspend => &[("let it run", "resume")],
        (false, _) => &[("follow it", "watch"), ("stop it and free the GPUs", "suspend")],
        (true, Some(Verdict::Passed | Verdict::Skipped)) => &[("run again", "rerun"), ("earlier runs", "history")],
        (true, _) => &[
            ("the logs", "logs"),
            ("run again", "rerun"),
            ("everything for a bug report", "bundle"),
        ],
    };
    let mut table = Table::default();
    for (what, verb) in lines {
        let namespace = object.namespace().unwrap_or_default();
        table.row([
            (*what).to_owned(),
            format!("kubectl perfval {verb} {name} -n {namespace}{}", page.flags),
        ]);
    }
    // A command that is broken cannot be copied.
    let table = if table.fits(page.columns, INDENT) {
        table.within(page.columns, INDENT)
    } else {
        table.paragraphs(page.columns, INDENT)
    };
    page.title("Next") + &table
}
