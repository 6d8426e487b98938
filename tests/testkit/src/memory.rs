//! How much memory a test takes, in a process of its own.

use std::fs;

/// The resident memory that a process had when this began.
pub struct Growth(u64);

impl Growth {
    /// Begins to watch.
    ///
    /// # Panics
    /// Where `/proc` does not say: elsewhere than on Linux.
    pub fn begin() -> Self {
        fs::write("/proc/self/clear_refs", "5").expect("the peak is reset");
        Self(peak())
    }

    /// The most (bytes) that came on top of it since.
    ///
    /// # Panics
    /// Where `/proc` does not say.
    pub fn most(&self) -> u64 {
        peak() - self.0
    }
}

/// Peak of resident memory (bytes) since the last reset.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.expect("a peak").trim().trim_end_matches(" kB").parse::<u64>();
    kib.expect("a number") << 10
}
