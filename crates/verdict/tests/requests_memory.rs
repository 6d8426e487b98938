//! Memory of the reading of many requests, in a process of its own: the container of the benchmark is AIPerf's.

use std::io::{self, BufReader, Read};

use perfval_testkit::memory::Growth;
use perfval_verdict::requests::RequestTimes;

const REQUESTS: u32 = 300_000;
/// Holding every request would take 17 MB of numbers, or 600 MB of text.
const MOST: u64 = 12 << 20;
/// Bytes that a trial of that many adds to the log, and to the ConfigMap.
const MOST_BYTES: usize = 16 << 10;

/// AIPerf's record of that many requests, made as it is read.
struct Record {
    request: u32,
    line: Vec<u8>,
}

impl Read for Record {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.line.is_empty() && self.request < REQUESTS {
            self.request += 1;
            self.line = line(self.request).into_bytes();
        }
        let count = self.line.as_slice().read(to)?;
        self.line.drain(..count);
        Ok(count)
    }
}

/// Five hundred a second, each of its own length.
fn line(request: u32) -> String {
    let random = |salt: u32| f64::from(request.wrapping_mul(2_654_435_761).rotate_left(salt) % 100_003) / 100_003.0;
    let (began, rest) = (u64::from(request) * 2_000_000, "x".repeat(1900));
    format!(
        r#"{{"metadata": {{"x_request_id": "{rest}", "benchmark_phase": "profiling", "request_start_ns": {began}}}, "metrics": {{"time_to_first_token": {{"value": {}}}, "inter_token_latency": {{"value": {}}}, "request_latency": {{"value": {}}}}}}}"#,
        20.0 * 30_f64.powf(random(3)),
        5.0 + 20.0 * random(7),
        400.0 * 10_f64.powf(random(11)),
    ) + "\n"
}

#[test]
fn many_requests_take_little_memory_and_few_bytes() {
    let growth = Growth::begin();
    let record = Record {
        request: 0,
        line: Vec::new(),
    };
    let times = RequestTimes::read(BufReader::new(record)).expect("read");
    let endless = RequestTimes::read(BufReader::new(io::repeat(b'x').take(64 << 20))).expect("read");
    let taken = growth.most();
    assert_eq!((times.count, times.unread, times.seconds), (300_000, 0, 600));
    assert_eq!((endless.count, endless.unread), (0, 1), "a line without an end");
    let bytes = serde_json::to_string(&times).expect("JSON").len();
    println!("{} KiB of memory, {bytes} bytes", taken >> 10);
    assert!(taken < MOST, "{taken} bytes");
    assert!(bytes < MOST_BYTES, "{bytes} bytes");
}
