//! Exit codes of a verdict. 2 is bad input.

use perfval_api::Verdict;

/// The run is not over yet.
pub const NOT_OVER: u8 = 3;
/// The cluster, or a part of it, cannot be read.
pub const UNREADABLE: u8 = 4;
/// Code of shells for an end by Ctrl-C.
pub const ENDED: u8 = 130;

/// Exit code of a verdict: 0 Passed or Skipped, 1 Failed, 3 Inconclusive, 4 Error.
pub fn code(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Passed | Verdict::Skipped => 0,
        Verdict::Failed => 1,
        Verdict::Inconclusive => 3,
        Verdict::Error => 4,
    }
}
