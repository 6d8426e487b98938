//! Response of a run to an obstacle.

/// Response of a run to an obstacle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// Time does not heal it: end the run.
    GiveUp,
    /// The GPUs that sizing saw are gone: size again, a few times.
    SizeAgain,
    /// Sizing may find another node, or a better description of the obstacle: size again, a single time.
    SizeOnceMore,
    /// It may pass: wait until the phase's time limit.
    Wait,
}

impl Response {
    /// The response as the documentation describes it.
    pub fn explanation(self) -> &'static str {
        match self {
            Self::GiveUp => "Error",
            Self::SizeAgain => "sizing, at most three times, then Error",
            Self::SizeOnceMore => "sizing, once, then Error",
            Self::Wait => "Error after the time-out",
        }
    }

    /// Number of times that a run sizes again for it.
    pub fn resizes(self) -> i64 {
        match self {
            // After three lost races a node is too contested to measure on.
            Self::SizeAgain => 3,
            Self::SizeOnceMore => 1,
            Self::GiveUp | Self::Wait => 0,
        }
    }
}
