use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use perfval_verdict::progress::{Progress, Tally};

use crate::ticker::Ticker;

/// Seconds between two lines. A trial of an hour prints 720 of them, 80 KB; kubelet rotates a log at 10 MiB.
const PAUSE: i64 = 5;
/// Lines before they come more rarely, so that a soak of a day prints no more than a trial of hours.
const OFTEN: u32 = 1000;
const RARELY: i64 = 60;

/// Records, read from the end of the last look on.
#[derive(Default)]
pub struct ProgressReporter {
    file: Option<BufReader<File>>,
    /// The beginning of a line whose end is not written yet.
    begun: Vec<u8>,
    tally: Tally,
    /// Requests in the last line, and number of lines.
    shown: Option<i64>,
    lines: u32,
}

impl ProgressReporter {
    /// Prints how far AIPerf is, from the records that it writes while it measures, until the ticker is stopped. The file may come
    /// later.
    pub fn start(records: PathBuf, nonce: String) -> Ticker<Self> {
        Ticker::start(Instant::now(), Self::default(), move |reporter, second| {
            let pause = if reporter.lines < OFTEN { PAUSE } else { RARELY };
            if second == 0 || second % pause != 0 {
                return;
            }
            let progress = reporter.read(&records);
            let Some(progress) = progress.filter(|progress| reporter.shown != Some(progress.requests)) else {
                return;
            };
            reporter.shown = Some(progress.requests);
            reporter.lines += 1;
            // A log that cannot be written is no reason to stop measuring.
            let _ = io::stdout().lock().write_all(progress.line(&nonce).as_bytes());
        })
    }

    fn read(&mut self, records: &Path) -> Option<Progress> {
        if self.file.is_none() {
            self.file = Some(BufReader::new(File::open(records).ok()?));
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
