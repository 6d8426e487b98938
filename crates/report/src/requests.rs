//! Times of single requests, where AIPerf's own record of them is at hand: `profile_export.jsonl`.

use std::io::{self, BufRead};

use serde::Deserialize;

/// The measured requests of one trial that ended well.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requests {
    all: Vec<Request>,
    /// Lines that this version does not understand.
    unread: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Request {
    began_ns: i64,
    times: Times,
}

/// What a request took (ms).
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(crate) struct Times {
    pub time_to_first_token: Option<Milliseconds>,
    /// Absent for an answer of one token.
    pub inter_token_latency: Option<Milliseconds>,
    pub request_latency: Option<Milliseconds>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(crate) struct Milliseconds {
    value: f64,
}

/// What of a request is drawn.
pub(crate) type Time = fn(&Times) -> Option<Milliseconds>;

/// Requests that began within some seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quantiles {
    /// The middle of these seconds, from the first request on.
    pub at: f64,
    pub median: f64,
    pub p90: f64,
    pub p99: f64,
}

#[derive(Deserialize)]
struct Line {
    metadata: Metadata,
    metrics: Option<Times>,
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Metadata {
    benchmark_phase: String,
    request_start_ns: Option<i64>,
}

impl Requests {
    /// Reads `profile_export.jsonl`, line by line: of hundreds of thousands of requests it has gigabytes.
    pub fn read(lines: impl BufRead) -> io::Result<Self> {
        let mut requests = Self::default();
        for line in lines.split(b'\n') {
            let line = line?;
            if line.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice(&line) {
                Ok(line) => requests.all.extend(measured(&line)),
                Err(_) => requests.unread += 1,
            }
        }
        requests.all.sort_by_key(|request| request.began_ns);
        Ok(requests)
    }

    /// Lines that were not understood.
    pub fn unread(&self) -> usize {
        self.unread
    }

    /// From the start of the first to that of the last (s).
    pub(crate) fn seconds(&self) -> i64 {
        let first = self.all.first().map_or(0, |request| request.began_ns);
        let last = self.all.last().map_or(0, |request| request.began_ns);
        last.saturating_sub(first) / SECOND
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// A time of all requests together.
    pub(crate) fn together(&self, time: Time) -> Option<Quantiles> {
        quantiles(0.0, &self.all, time)
    }

    /// A time of the requests that began in each so many seconds; in parts, where none did in between.
    pub(crate) fn over_time(&self, every: i64, time: Time) -> Vec<Vec<Quantiles>> {
        let first = self.all.first().map_or(0, |request| request.began_ns);
        let step = |request: &Request| request.began_ns.saturating_sub(first) / (every * SECOND);
        let mut parts: Vec<Vec<Quantiles>> = Vec::new();
        let mut before = None;
        for together in self.all.chunk_by(|one, next| step(one) == step(next)) {
            let Some(step) = together.first().map(step) else {
                continue;
            };
            #[expect(clippy::cast_precision_loss, reason = "seconds of one trial")]
            let at = (step as f64 + 0.5) * every as f64;
            let Some(found) = quantiles(at, together, time) else {
                continue;
            };
            match parts.last_mut().filter(|_| before == Some(step - 1)) {
                Some(part) => part.push(found),
                None => parts.push(vec![found]),
            }
            before = Some(step);
        }
        parts
    }
}

const SECOND: i64 = 1_000_000_000;

/// A request of the measured phase that ended well; failed ones have no times.
fn measured(line: &Line) -> Option<Request> {
    if line.metadata.benchmark_phase != "profiling" || line.error.is_some() {
        return None;
    }
    Some(Request {
        began_ns: line.metadata.request_start_ns?,
        times: line.metrics?,
    })
}

/// The values at these ranks.
fn quantiles(at: f64, requests: &[Request], time: Time) -> Option<Quantiles> {
    let known = requests.iter().filter_map(|request| Some(time(&request.times)?.value));
    let mut values: Vec<f64> = known.filter(|value| value.is_finite() && *value >= 0.0).collect();
    values.sort_by(f64::total_cmp);
    let rank = |percent: usize| values.get((values.len() * percent).div_ceil(100).max(1) - 1).copied();
    Some(Quantiles {
        at,
        median: rank(50)?,
        p90: rank(90)?,
        p99: rank(99)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(phase: &str, began: i64, latency: f64) -> String {
        format!(
            r#"{{"metadata": {{"benchmark_phase": "{phase}", "request_start_ns": {}}}, "metrics": {{"request_latency": {{"value": {latency}, "unit": "ms"}}}}}}"#,
            7 * SECOND + began
        ) + "\n"
    }

    fn latency(times: &Times) -> Option<Milliseconds> {
        times.request_latency
    }

    #[test]
    fn a_stall_of_one_second_is_its_own_point_and_a_second_without_requests_is_a_gap() {
        let mut text = line("warmup", -SECOND, 9000.0);
        for second in [0, 1, 3] {
            for request in 1..=100_i64 {
                let slow = if second == 1 { 1000.0 } else { 0.0 };
                #[expect(clippy::cast_precision_loss, reason = "a hundred")]
                let took = request as f64 + slow;
                text += &line("profiling", second * SECOND + request, took);
            }
        }
        let requests = Requests::read(text.as_bytes()).expect("read");
        assert_eq!((requests.len(), requests.seconds()), (300, 3));
        let of = |at, more| Quantiles {
            at,
            median: 50.0 + more,
            p90: 90.0 + more,
            p99: 99.0 + more,
        };
        assert_eq!(
            requests.over_time(1, latency),
            [vec![of(0.5, 0.0), of(1.5, 1000.0)], vec![of(3.5, 0.0)]]
        );
        assert_eq!(requests.over_time(10, latency).concat().len(), 1);
        let together = requests.together(latency).expect("some");
        assert_eq!((together.median, together.p99), (75.0, 1097.0));
        assert_eq!(requests.together(|times| times.time_to_first_token), None);
    }

    #[test]
    fn what_aiperf_wrote_is_read_and_what_is_cut_off_is_counted() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../verdict/tests/fixtures/aiperf-records.jsonl"
        );
        let mut text = std::fs::read_to_string(path).expect("a recording");
        text += "{\"metadata\": {\n\n{\"metadata\": {\"benchmark_phase\": 7}}\n";
        let requests = Requests::read(text.as_bytes()).expect("read");
        assert_eq!((requests.len(), requests.unread()), (2, 2), "two of four failed");
        let first = requests.together(|times| times.time_to_first_token).expect("both");
        assert_eq!((first.median, first.p99), (36.290_549, 66.876_303_999_999_99));
        let between = requests.together(|times| times.inter_token_latency).expect("one");
        let of_one = (between.median, between.p99);
        assert_eq!(of_one, (6.698_609_142_857_142, 6.698_609_142_857_142));
    }

    #[test]
    fn wild_times_are_drawn_nowhere() {
        let text = line("profiling", i64::MIN + 8 * SECOND, -3.0) + &line("profiling", SECOND, 1e300);
        let requests = Requests::read(text.as_bytes()).expect("read");
        assert_eq!(requests.over_time(1, latency).concat().len(), 1);
        assert!(Requests::default().over_time(1, latency).is_empty());
    }
}
