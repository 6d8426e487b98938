use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use perfval_verdict::aiperf::{EXPORT_BYTES, FailedRequests, frontend_times, parse};
use perfval_verdict::frame::{Failure, Outcome};
use perfval_verdict::requests::RequestTimes;

use crate::aiperf::{How, ProcessEnd};

/// AIPerf's export in its artifact directory.
pub const EXPORT: &str = "profile_export_aiperf.json";

/// Export of AIPerf's scrapes of the frontend; absent with `--no-server-metrics`.
pub const SERVER_METRICS: &str = "server_metrics_export.json";

/// One line per request, while it measures; the only account of a run in which all failed.
pub const RECORDS: &str = "profile_export.jsonl";

/// Outcome of a run.
pub struct JudgedRun {
    pub exit_code: i32,
    pub outcome: Outcome,
    /// Only with a report.
    pub export: Option<String>,
}

/// Judges how AIPerf ended and what it left.
pub fn judge(ended: &ProcessEnd, artifact_dir: &Path) -> JudgedRun {
    let code = match ended.how {
        How::Exited(code) => code,
        How::Killed(signal) => return failure(128 + signal, Failure::Killed { signal }),
        How::Cancelled(signal) => return failure(128 + signal, Failure::Cancelled { signal }),
        How::TimedOut(seconds) => return failure(124, Failure::TimedOut { seconds }),
    };
    let tail = || ended.tail.clone();
    match read(&artifact_dir.join(EXPORT)) {
        Ok(export) if code == 0 => report(export, &artifact_dir.join(SERVER_METRICS)),
        Ok(_) => failure(code, Failure::Exited { tail: tail() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let nothing = if code == 0 {
                Failure::NoExport { tail: tail() }
            } else {
                Failure::Exited { tail: tail() }
            };
            failure(code.max(1), all_failed(&artifact_dir.join(RECORDS)).unwrap_or(nothing))
        }
        Err(error) => malformed(code, format!("{EXPORT}: {error}")),
    }
}

fn report(export: String, server_metrics: &Path) -> JudgedRun {
    match parse(export.as_bytes()) {
        Ok(mut report) => {
            // Additional evidence: where it cannot be read there is none.
            report.frontend = read(server_metrics)
                .ok()
                .and_then(|metrics| frontend_times(metrics.as_bytes()).ok())
                .unwrap_or_default();
            JudgedRun {
                exit_code: 0,
                outcome: Outcome::Report(Box::new(report)),
                export: Some(export),
            }
        }
        Err(error) => malformed(0, error.to_string()),
    }
}

fn malformed(code: i32, message: String) -> JudgedRun {
    failure(code.max(1), Failure::Malformed { message })
}

fn failure(exit_code: i32, failure: Failure) -> JudgedRun {
    JudgedRun {
        exit_code,
        outcome: Outcome::Failure(failure),
        export: None,
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut export = Vec::new();
    File::open(path)?.take(EXPORT_BYTES + 1).read_to_end(&mut export)?;
    if export.len() as u64 > EXPORT_BYTES {
        return Err(io::Error::other(format!("larger than {EXPORT_BYTES} bytes")));
    }
    String::from_utf8(export).map_err(io::Error::other)
}

/// Times of single requests, if any ended well and AIPerf recorded them. They are only drawn, so an unreadable file
/// counts as absent.
pub fn requests(artifact_dir: &Path) -> Option<RequestTimes> {
    let records = File::open(artifact_dir.join(RECORDS)).ok()?;
    let times = RequestTimes::read(BufReader::with_capacity(1 << 18, records)).ok()?;
    (times.count > 0).then_some(times)
}

/// Failure if requests were measured, every one failed, and every record can be read.
fn all_failed(records: &Path) -> Option<Failure> {
    let mut requests = FailedRequests::default();
    for line in BufReader::new(File::open(records).ok()?).lines() {
        requests.add(&line.ok()?).ok()?;
    }
    (requests.failed > 0 && requests.succeeded == 0).then(|| Failure::AllFailed {
        failed: requests.failed,
        errors: requests.errors(),
    })
}
