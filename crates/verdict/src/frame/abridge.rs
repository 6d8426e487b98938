use perfval_api::text::cut;
use perfval_api::{Metric, Statistic};
use serde_json::error::Category;

use super::{Failure, Framed, Outcome, Part, TrialRecord};
use crate::aiperf::{ErrorKind, Measure};
use crate::diagnosis::trial::BEYOND_P90;

/// Kubernetes cuts a termination message after this many bytes.
pub const MESSAGE_BYTES: usize = 4096;

/// Numbers that the status shows of every trial, gated or not, and numbers that show where the time of a request
/// goes.
const HEADLINE: [(Metric, Statistic); 9] = [
    (Metric::OutputTokenThroughput, Statistic::Avg),
    (Metric::RequestThroughput, Statistic::Avg),
    (Metric::TimeToFirstToken, Statistic::P50),
    (Metric::TimeToFirstToken, Statistic::P90),
    (Metric::TimeToFirstToken, Statistic::P99),
    (Metric::TimeToFirstToken, Statistic::Max),
    (Metric::InterTokenLatency, Statistic::P99),
    (Metric::RequestLatency, Statistic::Avg),
    (Metric::RequestLatency, Statistic::P50),
];

/// The termination message: the record as JSON, without parts in the order of [`Part`] until it fits. Gated numbers
/// stay.
pub fn message(record: &TrialRecord, gated: &[Measure]) -> String {
    let mut record = record.clone();
    for part in [
        Part::Statistics,
        Part::Gpus,
        Part::ErrorTexts,
        Part::Workers,
        Part::Everything,
    ] {
        let json = json(&record);
        if json.len() <= MESSAGE_BYTES {
            return json;
        }
        if part == Part::Gpus && record.gpus.is_none() {
            continue;
        }
        leave_out(&mut record, part, gated);
        record.abridged.insert(part);
    }
    json(&record)
}

/// Reads a termination message of this trial.
pub fn find_message(message: &str, nonce: &str) -> Framed<TrialRecord> {
    if message.trim().is_empty() {
        return Framed::Missing;
    }
    match serde_json::from_str::<TrialRecord>(message) {
        Ok(record) if record.nonce == nonce => Framed::Complete(record),
        Ok(_) => Framed::Missing,
        Err(e) if e.classify() == Category::Eof => Framed::Truncated,
        Err(e) => Framed::Malformed(e.to_string()),
    }
}

fn leave_out(record: &mut TrialRecord, part: Part, gated: &[Measure]) {
    match part {
        Part::Statistics => leave_out_statistics(record, gated),
        Part::Gpus => record.gpus = None,
        Part::ErrorTexts => leave_out_texts(record),
        Part::Workers => record.workers.clear(),
        Part::Everything => {
            let end = record.nonce.floor_char_boundary(200);
            record.nonce.truncate(end);
            record.outcome = Outcome::Failure(Failure::Malformed {
                message: "the record does not fit into a termination message".to_owned(),
            });
        }
    }
}

fn leave_out_statistics(record: &mut TrialRecord, gated: &[Measure]) {
    let Outcome::Report(report) = &mut record.outcome else {
        return;
    };
    for (&metric, statistics) in &mut report.metrics {
        // The 90th percentile shows whether a gate on a tail is missed by a few requests only.
        let of_tail = BEYOND_P90
            .iter()
            .any(|&statistic| gated.contains(&Measure { metric, statistic }));
        statistics.retain(|&statistic, _| {
            HEADLINE.contains(&(metric, statistic))
                || gated.contains(&Measure { metric, statistic })
                || (of_tail && statistic == Statistic::P90)
        });
    }
    report.metrics.retain(|_, statistics| !statistics.is_empty());
}

fn leave_out_texts(record: &mut TrialRecord) {
    record.scrape_errors.clear();
    match &mut record.outcome {
        Outcome::Report(report) => {
            report.incomplete_reason = None;
            shorten(&mut report.errors);
        }
        Outcome::Failure(Failure::AllFailed { errors, .. }) => shorten(errors),
        failure @ Outcome::Failure(_) => {
            for text in failure.texts_mut() {
                *text = cut(text, 200);
            }
        }
    }
}

/// The most frequent error's code and kind are enough to name the cause.
fn shorten(errors: &mut Vec<ErrorKind>) {
    errors.truncate(1);
    for error in errors {
        error.message.clear();
    }
}

fn json(record: &TrialRecord) -> String {
    // Only a map with keys that are not text could fail, and there is none.
    serde_json::to_string(record).unwrap_or_default()
}
