//! Result of a command that ends without being stopped.

use perfval_api::Verdict;

/// Answer of a command: the text for standard output and the exit code.
pub type Answer = (String, u8);

/// The exit code of a verdict: 0 Passed or Skipped, 1 Failed, 3 Inconclusive, 4 Error. 2 is bad input.
pub fn code(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Passed | Verdict::Skipped => 0,
        Verdict::Failed => 1,
        Verdict::Inconclusive => 3,
        Verdict::Error => 4,
    }
}
