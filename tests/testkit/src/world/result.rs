//! What the trial of a pod leaves.

use perfval_verdict::frame::{Outcome, TrialRecord, message};
use perfval_verdict::progress::Progress;
use rust_decimal::Decimal;
use serde_json::Value;

use super::play::Measured;
use crate::trial::{self as recorded, absurd, nonce};

/// What a trial shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trial {
    /// Every gate is met.
    #[default]
    Good,
    /// The throughput is a tenth.
    Slow,
    /// The load generator could not keep up.
    Starved,
    /// AIPerf ended with an error.
    Crash,
    /// It never ends.
    Hang,
    /// It ends without a result.
    Silent,
    /// Its record has numbers that nothing can measure.
    Absurd,
    /// It fails, and its log is one word of 400 KB without a result.
    Endless,
}

/// What a trial left.
pub(super) struct TrialResult {
    pub(super) log: String,
    pub(super) message: String,
    pub(super) exit_code: i32,
}

/// Number of a trial, from its pod's Job.
pub(super) fn number(pod: &Value) -> Option<i64> {
    let job = pod["metadata"]["labels"]["batch.kubernetes.io/job-name"].as_str()?;
    job.rsplit_once("-t")?.1.parse().ok()
}

/// What the trial of a pod leaves; `None` if it never ends.
pub(super) fn of(pod: &Value, trial: Trial, workers: &[String]) -> Option<TrialResult> {
    let silent = |exit_code| TrialResult {
        log: "no result\n".to_owned(),
        message: String::new(),
        exit_code,
    };
    let report = |tenths: i64, starved| {
        let throughput = |was| was * Decimal::from(tenths) / Decimal::from(10);
        Outcome::Report(Box::new(recorded::report(throughput, starved)))
    };
    let outcome = match trial {
        Trial::Hang => return None,
        Trial::Silent => return Some(silent(1)),
        Trial::Endless => {
            return Some(TrialResult {
                log: "[{1,".repeat(100_000),
                message: String::new(),
                exit_code: 1,
            });
        }
        Trial::Good | Trial::Absurd => report(10, false),
        Trial::Slow => report(1, false),
        Trial::Starved => report(10, true),
        Trial::Crash => recorded::crash(),
    };
    let honest = handed_over(recorded::record(nonce(pod)?, outcome, workers.iter().cloned()));
    Some(match trial {
        Trial::Absurd => TrialResult {
            log: absurd(&honest.log),
            message: absurd(&honest.message),
            ..honest
        },
        _ => honest,
    })
}

/// What a played trial leaves.
pub(super) fn played(pod: &Value, measured: Measured) -> Option<TrialResult> {
    let mut record = recorded::record(nonce(pod)?, measured.outcome, []);
    record.workers = measured.workers;
    Some(handed_over(record))
}

/// Line of the runner about a trial that has measured for so long (s).
pub(super) fn progress(pod: &Value, seconds: i64) -> Option<String> {
    let progress = Progress {
        requests: seconds * 10,
        seconds,
        ..Progress::default()
    };
    Some(progress.line(&nonce(pod)?))
}

fn handed_over(record: TrialRecord) -> TrialResult {
    let message = message(&record, &[]);
    TrialResult {
        log: recorded::log(record),
        message,
        exit_code: 0,
    }
}
