//! `history`: the runs of a validation, the newest first.

use chrono::{DateTime, Utc};
use perfval_api::{PerfValidationStatus, Verdict};
use perfval_verdict::{environment, history};

use crate::args::NameArgs;
use crate::draw::{Ink, span};
use crate::error::Error;
use crate::screen::Screen;
use crate::session::Session;
use crate::table::Table;

/// Runs in a line of throughputs.
const SHOWN: usize = 11;

/// Lists the runs.
pub async fn run(screen: &mut Screen, session: &Session, args: &NameArgs) -> Result<u8, Error> {
    let object = session.pick(args.name.as_deref()).await?;
    let status = object.status.unwrap_or_default();
    let table = table(&status, screen.now());
    if table.is_empty() {
        screen.note("No run yet.");
        return Ok(0);
    }
    screen.say(&table.to_string())?;
    let throughputs = throughputs(&status);
    if throughputs.len() > 1 {
        let ink = Ink {
            unicode: screen.unicode,
        };
        let line = ink.line(&throughputs, SHOWN);
        screen.say(&format!("\ntok/s, the newest last: {line}\n"))?;
    }
    Ok(0)
}

fn table(status: &PerfValidationStatus, now: DateTime<Utc>) -> Table {
    let mut table = Table::new([
        "RUN",
        "VERDICT",
        "REASON",
        "TOK/S",
        "TTFT-P99",
        "TOOK",
        "ENDED",
        "ENVIRONMENT",
    ]);
    let word = |verdict: Option<Verdict>| verdict.map_or("-", Verdict::as_str).to_owned();
    let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    if let Some(run) = &status.run {
        let metrics = status.metrics.clone().unwrap_or_default();
        let took = run.completed_at.unwrap_or(now) - run.started_at;
        table.row([
            run.number.to_string(),
            word(status.verdict),
            status.reason.clone().unwrap_or_default(),
            dash(&metrics.output_token_throughput),
            dash(&metrics.ttft_p99_ms),
            span(took.num_seconds()),
            run.completed_at.map_or_else(|| "running".to_owned(), moment),
            dash(&status.environment.as_ref().map(environment::digest)),
        ]);
    }
    for entry in &status.history {
        let took: i64 = entry.phases.iter().map(|phase| phase.seconds).sum();
        table.row([
            entry.run.to_string(),
            word(entry.verdict),
            entry.reason.clone(),
            dash(&entry.throughput),
            dash(&entry.ttft_p99_ms),
            if entry.phases.is_empty() {
                "-".to_owned()
            } else {
                span(took)
            },
            moment(entry.completed_at),
            dash(&entry.environment),
        ]);
    }
    table
}

fn moment(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%d %H:%M").to_string()
}

/// Of all runs that measured, the oldest first.
fn throughputs(status: &PerfValidationStatus) -> Vec<i64> {
    // The same list that the next run will begin with.
    let entries = history::with_last(status, DateTime::UNIX_EPOCH);
    let whole = |text: &String| text.split('.').next().and_then(|whole| whole.parse().ok());
    entries
        .iter()
        .rev()
        .filter_map(|entry| entry.throughput.as_ref().and_then(whole))
        .collect()
}
