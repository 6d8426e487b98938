//! Lines of a log with the time that the kubelet wrote before them.

use chrono::{DateTime, FixedOffset};

/// The longest line that is shown; the result of a trial is longer, and is no message.
const LONGEST: usize = 2000;

#[derive(Default)]
pub struct LogLine {
    /// Time of the line. Texts with other offsets do not sort by time.
    pub at: Option<DateTime<FixedOffset>>,
    /// The same, as the kubelet writes it.
    pub time: String,
    /// Part of the run.
    pub from: String,
    pub text: String,
}

/// Lines of a log for which `counts` is true: it gets whole lines, before they are cut. A kubelet has dated them; a
/// line without a time in front continues the line before, and has its time.
pub fn lines(log: &str, from: &str, counts: impl Fn(&str) -> bool) -> Vec<LogLine> {
    let mut lines: Vec<LogLine> = Vec::new();
    let mut before = (None, "");
    for line in log.lines() {
        let (time, rest) = line.split_once(' ').unwrap_or((line, ""));
        let text = match DateTime::parse_from_rfc3339(time) {
            Ok(at) => {
                before = (Some(at), time);
                rest
            }
            Err(_) => line,
        };
        if !counts(text) {
            continue;
        }
        lines.push(LogLine {
            at: before.0,
            time: before.1.to_owned(),
            from: from.to_owned(),
            text: perfval_api::text::cut(text, LONGEST),
        });
    }
    lines
}
