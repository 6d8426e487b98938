//! `history`: the runs of a validation, the newest first.

use chrono::{DateTime, Utc};
use kube::ResourceExt as _;
use perfval_api::{PerfValidationStatus, Verdict, quantity};
use perfval_verdict::{environment, history};
use rust_decimal::prelude::ToPrimitive as _;
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::args::HistoryArgs;
use crate::draw::{Ink, span, wrap_on};
use crate::error::Error;
use crate::output;
use crate::screen::Screen;
use crate::session::Session;
use crate::table::{Table, dash};

/// Runs in a line of throughputs.
const SHOWN: usize = 11;

/// Every run in the history, the newest first. Fields that a status has too have the same names.
#[derive(Serialize)]
struct History {
    namespace: String,
    name: String,
    runs: Vec<HistoryRow>,
}

#[skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HistoryRow {
    run: i64,
    verdict: Option<Verdict>,
    reason: String,
    output_tokens_per_second: Option<i64>,
    ttft_p99_milliseconds: Option<i64>,
    /// Its duration, or that so far.
    seconds: Option<i64>,
    /// Absent while it continues.
    completed_at: Option<DateTime<Utc>>,
    environment: Option<String>,
}

/// Lists the runs.
pub async fn run(screen: &mut Screen, session: &Session, args: &HistoryArgs) -> Result<u8, Error> {
    let object = session.pick(args.name.as_deref()).await?;
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    let status = object.status.unwrap_or_default();
    let runs = runs(&status, screen.now());
    let history = History { namespace, name, runs };
    if let Some(text) = output::in_format(&history, args.output)? {
        screen.print(&text)?;
        return Ok(0);
    }
    if history.runs.is_empty() {
        screen.note(&format!(
            "{} has not run yet; {} shows the reason.",
            history.name,
            session.command("describe", &history.name)
        ));
        return Ok(0);
    }
    screen.print(&table(&history.runs).on(screen.columns()))?;
    let throughputs = throughputs(&status);
    if throughputs.len() > 1 {
        let ink = Ink {
            unicode: screen.unicode,
        };
        let line = ink.line(&throughputs, SHOWN);
        let line = wrap_on(&format!("tok/s, the newest last: {line}"), screen.columns(), "");
        screen.print(&format!("\n{line}"))?;
    }
    Ok(0)
}

fn runs(status: &PerfValidationStatus, now: DateTime<Utc>) -> Vec<HistoryRow> {
    let last = status.run.as_ref().map(|run| {
        // The means over its trials, as its row has them once the next run began.
        let measured = history::with_last(status, now).into_iter().next().unwrap_or_default();
        let completed_at = history::run_end(status);
        HistoryRow {
            run: run.number,
            verdict: status.verdict,
            reason: status.reason.clone().unwrap_or_default(),
            output_tokens_per_second: whole(measured.throughput.as_ref()),
            ttft_p99_milliseconds: whole(measured.ttft_p99_ms.as_ref()),
            seconds: Some((completed_at.unwrap_or(now) - run.started_at).num_seconds()),
            completed_at,
            environment: status.state.environment.as_ref().map(environment::digest),
        }
    });
    let details = |run: i64| status.state.history.iter().find(|entry| entry.run == run);
    let earlier = status.history.iter().map(|entry| HistoryRow {
        run: entry.run,
        verdict: entry.verdict,
        reason: entry.reason.clone(),
        output_tokens_per_second: entry.output_tokens_per_second,
        ttft_p99_milliseconds: entry.ttft_p99_milliseconds,
        seconds: details(entry.run)
            .filter(|details| !details.phases.is_empty())
            .map(|details| details.phases.iter().map(|phase| phase.seconds).sum()),
        completed_at: Some(entry.completed_at),
        environment: details(entry.run).and_then(|details| details.environment.clone()),
    });
    last.into_iter().chain(earlier).collect()
}

fn table(runs: &[HistoryRow]) -> Table {
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
    for line in runs {
        table.row([
            line.run.to_string(),
            dash(line.verdict.map(Verdict::as_str)),
            line.reason.clone(),
            dash(line.output_tokens_per_second),
            dash(line.ttft_p99_milliseconds),
            dash(line.seconds.map(span)),
            line.completed_at.map_or_else(|| "running".to_owned(), moment),
            dash(line.environment.as_ref()),
        ]);
    }
    table
}

fn moment(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%d %H:%M").to_string()
}

/// The nearest whole number, as the status has it.
fn whole(text: Option<&String>) -> Option<i64> {
    quantity::parse(text?)?.round().to_i64()
}

/// Of all runs that measured, the oldest first.
fn throughputs(status: &PerfValidationStatus) -> Vec<i64> {
    // The same list that the next run will begin with.
    let entries = history::with_last(status, DateTime::UNIX_EPOCH);
    let newest_last = entries.iter().rev();
    newest_last
        .filter_map(|entry| whole(entry.throughput.as_ref()))
        .collect()
}
