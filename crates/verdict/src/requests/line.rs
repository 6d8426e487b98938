//! One line of AIPerf's record.

use std::io::{self, BufRead, Read as _};

use serde::Deserialize;

/// Longest line that is read (bytes): a real one has 2 KB, and some bytes more for each token where these are recorded.
const LINE_BYTES: u64 = 1 << 20;

/// A measured request that ended well.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredRequest {
    /// When it began (ns since 1970).
    pub began_ns: i64,
    /// Times of the request.
    pub times: Times,
}

/// Times of a request.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Times {
    pub time_to_first_token: Option<Milliseconds>,
    pub inter_token_latency: Option<Milliseconds>,
    pub request_latency: Option<Milliseconds>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Milliseconds {
    pub value: f64,
}

/// Result of reading a line.
pub enum ReadLine {
    Measured(MeasuredRequest),
    /// Of the warm-up, failed, or empty.
    PassedOver,
    NotUnderstood,
    End,
}

#[derive(Deserialize)]
struct RequestLine {
    metadata: RequestMetadata,
    metrics: Option<Times>,
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct RequestMetadata {
    benchmark_phase: String,
    request_start_ns: Option<i64>,
}

/// Reads the next line into `line`, which is used again and again.
pub fn next(lines: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<ReadLine> {
    line.clear();
    lines.by_ref().take(LINE_BYTES).read_until(b'\n', line)?;
    if line.is_empty() {
        return Ok(ReadLine::End);
    }
    if line.len() as u64 == LINE_BYTES && line.last() != Some(&b'\n') {
        lines.skip_until(b'\n')?;
        return Ok(ReadLine::NotUnderstood);
    }
    if line.trim_ascii().is_empty() {
        return Ok(ReadLine::PassedOver);
    }
    Ok(match serde_json::from_slice(line) {
        Ok(line) => measured(&line).map_or(ReadLine::PassedOver, ReadLine::Measured),
        Err(_) => ReadLine::NotUnderstood,
    })
}

/// A request of the measured phase that ended well; failed ones have no times.
fn measured(line: &RequestLine) -> Option<MeasuredRequest> {
    if line.metadata.benchmark_phase != "profiling" || line.error.is_some() {
        return None;
    }
    Some(MeasuredRequest {
        began_ns: line.metadata.request_start_ns?,
        times: line.metrics?,
    })
}
