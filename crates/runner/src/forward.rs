use std::collections::VecDeque;
use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anstream::adapter::strip_str;

/// Bytes of the last lines that a failure record quotes, per stream.
const QUOTED: usize = 600;

/// Time that a pipe may stay open after every known process is gone.
const PATIENCE: Duration = Duration::from_secs(2);

/// A stream of AIPerf on its way into the log: its beginning at once, its end when it is finished. A failed request
/// costs 0.35 KB of log, and kubelet rotates a log at 10 MiB, which would lose the result.
pub struct Forwarded {
    capped: Arc<Mutex<Capped>>,
    closed: Receiver<()>,
}

struct Capped {
    to: Box<dyn Write + Send>,
    limit: usize,
    /// Bytes that came in.
    total: usize,
    /// Bytes that went out.
    sent: usize,
    /// The last `limit` bytes that came in.
    last: VecDeque<u8>,
}

/// Forwards a stream on a thread of its own.
pub fn forward(from: Option<impl Read + Send + 'static>, to: Box<dyn Write + Send>, limit: usize) -> Forwarded {
    let capped = Arc::new(Mutex::new(Capped {
        to,
        limit: limit.max(QUOTED),
        total: 0,
        sent: 0,
        last: VecDeque::new(),
    }));
    let (close, closed) = channel();
    let shared = capped.clone();
    thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        let Some(mut from) = from else { return };
        // An error is the end too: nothing more will come.
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            shared
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(&buffer[..read]);
        }
        let _ = close.send(()); // the runner may have gone on without
    });
    Forwarded { capped, closed }
}

impl Forwarded {
    /// Sends the text held back and returns the last lines.
    pub fn finish(self) -> String {
        let _ = self.closed.recv_timeout(PATIENCE); // closed or not, what came is sent
        self.capped.lock().unwrap_or_else(PoisonError::into_inner).finish()
    }
}

impl Capped {
    fn take(&mut self, bytes: &[u8]) {
        self.total += bytes.len();
        self.last.extend(bytes);
        let surplus = self.last.len().saturating_sub(self.limit);
        self.last.drain(..surplus);

        let room = self.limit.saturating_sub(self.sent).min(bytes.len());
        self.send(&bytes[..room]);
        self.sent += room;
    }

    fn finish(&mut self) -> String {
        let held: Vec<u8> = self.last.iter().copied().collect();
        let unsent = self.total - self.sent;
        let left_out = unsent.saturating_sub(held.len());
        if left_out > 0 {
            self.send(format!("\nperfval-runner: {left_out} bytes of AIPerf's output are left out here\n").as_bytes());
        }
        self.send(&held[held.len() - unsent.min(held.len())..]);
        self.sent = self.total;
        // The result must begin on a line of its own.
        if held.last().is_some_and(|byte| *byte != b'\n') {
            self.send(b"\n");
        }
        last_lines(&strip_str(&String::from_utf8_lossy(&held)).to_string())
    }

    fn send(&mut self, bytes: &[u8]) {
        // A log that cannot be written is no reason to stop measuring; the termination message still arrives.
        let _ = self.to.write_all(bytes);
    }
}

/// The last lines with content, without the frames that AIPerf draws around them.
fn last_lines(text: &str) -> String {
    let mut quoted = String::new();
    let plain = |line: &str| {
        line.trim_matches(|c: char| c.is_whitespace() || ('─'..='╿').contains(&c))
            .to_owned()
    };
    for line in text.lines().rev().map(plain).filter(|line| !line.is_empty()) {
        if quoted.len() + line.len() > QUOTED {
            if quoted.is_empty() {
                quoted = format!("{}…", &line[..line.floor_char_boundary(QUOTED - '…'.len_utf8())]);
            }
            break;
        }
        quoted = if quoted.is_empty() {
            line
        } else {
            format!("{line} / {quoted}")
        };
    }
    quoted
}
