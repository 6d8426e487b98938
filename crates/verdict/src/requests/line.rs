//! One line of AIPerf's record.

use std::io::{self, BufRead, Read as _};

use crate::aiperf::record::{RequestMetrics, RequestRecord};

/// Longest line that is read (bytes): a real one has 2 KB, and some bytes more for each token where these are recorded.
const LINE_BYTES: u64 = 1 << 20;

/// Result of reading a line.
pub enum ReadLine {
    /// Start (ns since 1970) and times of a measured request that ended well.
    Measured(i64, RequestMetrics),
    /// Of the warm-up, failed, or empty.
    PassedOver,
    NotUnderstood,
    End,
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
        Ok(record) => measured(&record).unwrap_or(ReadLine::PassedOver),
        Err(_) => ReadLine::NotUnderstood,
    })
}

/// A request of the measured phase that ended well; failed ones have no times.
fn measured(record: &RequestRecord) -> Option<ReadLine> {
    if !record.is_measured() || record.error.is_some() {
        return None;
    }
    Some(ReadLine::Measured(record.metadata.request_start_ns?, record.metrics?))
}
