use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use perfval_verdict::progress::{Progress, Tally};

/// Between two lines. A trial of an hour prints 720 of them, 80 KB; kubelet rotates a log at 10 MiB.
const PAUSE: Duration = Duration::from_secs(5);
/// Lines before they come more rarely, so that a soak of a day prints no more than a trial of hours.
const OFTEN: u32 = 1000;
const RARELY: Duration = Duration::from_mins(1);

/// Prints how far AIPerf is, from the records that it writes while it measures.
pub struct ProgressReporter {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl ProgressReporter {
    /// Starts reading; the file may come later.
    pub fn start(records: PathBuf, nonce: String) -> Self {
        let (stop, stopped) = channel();
        let thread = thread::spawn(move || {
            let mut reader = Records {
                path: &records,
                file: None,
                begun: Vec::new(),
                tally: Tally::default(),
            };
            let mut shown = None;
            let mut lines = 0;
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(if lines < OFTEN { PAUSE } else { RARELY })
            {
                let Some(progress) = reader
                    .read()
                    .filter(|progress| shown.as_ref() != Some(&progress.requests))
                else {
                    continue;
                };
                shown = Some(progress.requests);
                lines += 1;
                // A log that cannot be written is no reason to stop measuring.
                let _ = io::stdout().lock().write_all(progress.line(&nonce).as_bytes());
            }
        });
        Self { stop, thread }
    }

    /// Stops; nothing is printed afterwards.
    pub fn stop(self) {
        drop(self.stop);
        let _ = self.thread.join(); // one that panicked prints no more
    }
}

/// The records, read from the end of the last look on.
struct Records<'a> {
    path: &'a Path,
    file: Option<BufReader<File>>,
    /// The beginning of a line whose end is not written yet.
    begun: Vec<u8>,
    tally: Tally,
}

impl Records<'_> {
    fn read(&mut self) -> Option<Progress> {
        if self.file.is_none() {
            self.file = Some(BufReader::new(File::open(self.path).ok()?));
        }
        let file = self.file.as_mut()?;
        while let Ok(1..) = file.read_until(b'\n', &mut self.begun) {
            if self.begun.last() != Some(&b'\n') {
                break;
            }
            self.tally.add(&String::from_utf8_lossy(&self.begun));
            self.begun.clear();
        }
        Some(self.tally.progress())
    }
}
