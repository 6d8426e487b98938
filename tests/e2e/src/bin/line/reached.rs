//! The end of a wait that has a limit.

use std::fmt;

/// How long something took, or how far it came within the limit.
#[derive(Clone, Copy, Debug)]
pub enum Reached {
    /// All of it, after so many seconds.
    After(f64),
    /// Count that was reached, of all.
    Only(usize, usize),
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::After(seconds) => write!(f, "{seconds:.1} s"),
            Self::Only(done, of) => write!(f, "{done} of {of}"),
        }
    }
}
