//! Progress of a running trial: lines that the runner prints into its log, and their reader.

use serde::{Deserialize, Serialize};

use crate::aiperf::record::RequestRecord;
use crate::number::bounded;

/// Begins each line. The trial's nonce follows, so that an answer of the model cannot forge a line.
const MARK: &str = "perfval-progress";

/// Progress of the measured phase.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// Requests that are over, failed ones included.
    #[serde(deserialize_with = "bounded")]
    pub requests: i64,
    /// Failed requests.
    #[serde(deserialize_with = "bounded")]
    pub errors: i64,
    /// Time from the start of the first request to the end of the last (s).
    #[serde(deserialize_with = "bounded")]
    pub seconds: i64,
    /// Output tokens per second since the line before.
    #[serde(default, deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub tokens_per_second: Option<i64>,
    /// Time to first token, average since the line before (ms).
    #[serde(default, deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub ttft_ms: Option<i64>,
}

impl Progress {
    /// As a line of the log.
    pub fn line(&self, nonce: &str) -> String {
        // Numbers in a struct have a JSON form.
        let json = serde_json::to_string(self).unwrap_or_default();
        format!("{MARK} {nonce} {json}\n")
    }
}

/// A trial's progress in a log, in order. A line that is cut off or broken is skipped.
pub fn find(log: &str, nonce: &str) -> Vec<Progress> {
    let of_trial = |line: &str| {
        // AIPerf may have printed text before it at the same moment.
        let line = &line[line.rfind(MARK)? + MARK.len()..];
        let json = line.trim().strip_prefix(nonce)?.strip_prefix(' ')?;
        serde_json::from_str(json).ok()
    };
    log.lines().filter_map(of_trial).collect()
}

/// Adds up the lines of AIPerf's `profile_export.jsonl` as they come: it writes them in batches while it measures.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    requests: i64,
    errors: i64,
    began_ns: Option<i64>,
    ended_ns: Option<i64>,
    recent: Recent,
}

/// Sums since the last printed line.
#[derive(Clone, Debug, Default)]
struct Recent {
    tokens: i64,
    /// End of the last request before; absent for the first line.
    since_ns: Option<i64>,
    ttft_ms: f64,
    ttfts: i64,
}

impl Tally {
    /// Adds a line. Warm-up requests and lines of an unknown form are not counted: progress judges nothing.
    pub fn add(&mut self, line: &str) {
        let record = serde_json::from_str::<RequestRecord>(line).ok();
        let Some(record) = record.filter(RequestRecord::is_measured) else {
            return;
        };
        self.requests += 1;
        self.errors += i64::from(record.error.is_some());
        let start = record.metadata.request_start_ns;
        self.began_ns = [self.began_ns, start].into_iter().flatten().min();
        self.ended_ns = self.ended_ns.max(record.metadata.request_end_ns);
        let metrics = record.metrics.unwrap_or_default();
        if let Some(tokens) = metrics.output_sequence_length {
            self.recent.tokens = self.recent.tokens.saturating_add(whole(tokens.value));
        }
        if let Some(ttft) = metrics.time_to_first_token {
            self.recent.ttft_ms += ttft.value;
            self.recent.ttfts += 1;
        }
    }

    /// The work done; the rates are those since the last call.
    pub fn progress(&mut self) -> Progress {
        let recent = std::mem::take(&mut self.recent);
        let until_now = |since_ns: Option<i64>| Some(self.ended_ns?.saturating_sub(since_ns?));
        let span_ns = until_now(recent.since_ns.or(self.began_ns));
        let seconds = until_now(self.began_ns).unwrap_or(0) / 1_000_000_000;
        self.recent.since_ns = self.ended_ns;
        #[expect(clippy::cast_precision_loss, reason = "a displayed rate may be inexact")]
        Progress {
            requests: self.requests,
            errors: self.errors,
            seconds: seconds.max(0),
            tokens_per_second: span_ns
                .filter(|span| *span > 0 && recent.tokens > 0)
                .map(|span| whole(recent.tokens as f64 / (span as f64 / 1e9))),
            ttft_ms: (recent.ttfts > 0).then(|| whole(recent.ttft_ms / recent.ttfts as f64)),
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a cast of a float is never out of bounds"
)]
fn whole(value: f64) -> i64 {
    value.round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record as AIPerf writes it; times in seconds.
    fn record(phase: &str, from: i64, to: i64, tokens: i64) -> String {
        let s = 1_000_000_000;
        format!(
            r#"{{"metadata":{{"benchmark_phase":"{phase}","request_start_ns":{},"request_end_ns":{}}},
            "metrics":{{"output_sequence_length":{{"value":{tokens},"unit":"tokens"}},"time_to_first_token":{{"value":40.4,"unit":"ms"}}}}}}"#,
            from * s,
            to * s
        )
        .replace('\n', " ")
    }

    #[test]
    fn only_the_measured_phase_counts() {
        let mut tally = Tally::default();
        assert_eq!(
            tally.progress(),
            Progress::default(),
            "nothing is known before the first request"
        );
        tally.add(&record("warmup", 1, 2, 900));
        tally.add(&record("profiling", 10, 12, 60));
        tally.add(&record("profiling", 10, 14, 60));
        tally.add(r#"{"metadata":{"benchmark_phase":"profiling","request_end_ns":13000000000},"metrics":{},"error":{"code":503}}"#);
        tally.add("{\"metadata\":{\"benchmark_pha");
        let first = tally.progress();
        let expected = Progress {
            requests: 3,
            errors: 1,
            seconds: 4,
            tokens_per_second: Some(30),
            ttft_ms: Some(40),
        };
        assert_eq!(first, expected);
        tally.add(&record("profiling", 12, 16, 100));
        let second = tally.progress();
        assert_eq!(
            (second.requests, second.seconds, second.tokens_per_second),
            (4, 6, Some(50))
        );
    }

    #[test]
    fn the_first_rate_counts_from_the_earliest_start() {
        let mut tally = Tally::default();
        tally.add(&record("profiling", 14, 15, 60));
        tally.add(&record("profiling", 10, 16, 60));
        let progress = tally.progress();
        assert_eq!((progress.seconds, progress.tokens_per_second), (6, Some(20)));
    }

    #[test]
    fn a_recorded_line_of_aiperf_is_counted() {
        let mut tally = Tally::default();
        include_str!("../tests/fixtures/aiperf-records.jsonl")
            .lines()
            .for_each(|line| tally.add(line));
        let progress = tally.progress();
        assert_eq!((progress.requests, progress.errors), (4, 2));
        assert!(
            progress.tokens_per_second.is_some() && progress.ttft_ms.is_some(),
            "{progress:?}"
        );
    }

    /// Found by fuzzing: times and counts of a broken export are any number.
    #[test]
    fn a_record_that_lies_about_time_and_tokens_counts_as_one() {
        let mut tally = Tally::default();
        let lie = |begin: i64, end: i64| {
            record("profiling", 0, 0, i64::MAX)
                .replace("_start_ns\":0", &format!("_start_ns\":{begin}"))
                .replace("_end_ns\":0", &format!("_end_ns\":{end}"))
        };
        tally.add(&lie(i64::MIN, i64::MAX));
        tally.add(&lie(i64::MAX, i64::MIN));
        let progress = tally.progress();
        assert_eq!(progress.requests, 2);
        assert!(progress.seconds > 0, "{progress:?}");
    }

    #[test]
    fn only_lines_of_this_trial_are_found() {
        let progress = Progress {
            requests: 7,
            ..Progress::default()
        };
        let log = format!(
            "INFO starting{}{}perfval-progress aa {{\"requ\n",
            progress.line("aa"),
            Progress::default().line("bb")
        );
        assert_eq!(find(&log, "aa"), [progress]);
        assert!(find(&log, "a").is_empty());
    }
}
