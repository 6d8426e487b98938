//! Moments on clocks of this machine that are never set.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

/// A machine that slept for less is taken to be awake: the two clocks are read one after the other, and the time of a test goes
/// its own way, which stands still while a slow machine computes.
const NAP: Duration = Duration::from_secs(if cfg!(test) { 30 } else { 1 });

/// A moment. Time between two of them includes time in which the machine slept, which an [`Instant`] leaves out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// `CLOCK_MONOTONIC`, or the time of a test.
    pub(crate) awake: Instant,
    /// `CLOCK_BOOTTIME`: time since the start of the machine.
    pub(crate) since_boot: Duration,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Self {
            awake: Instant::now(),
            since_boot: Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default(),
        }
    }

    /// Time since an earlier moment.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        let awake = self.awake.saturating_duration_since(earlier.awake);
        let all = self.since_boot.saturating_sub(earlier.since_boot);
        if all >= awake.saturating_add(NAP) { all } else { awake }
    }

    /// Time until now.
    pub(crate) fn elapsed(self) -> Duration {
        Self::now().since(self)
    }
}

#[cfg(test)]
impl std::ops::Add<Duration> for Moment {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self {
            awake: self.awake + time,
            since_boot: self.since_boot + time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_which_the_machine_sleeps_counts() {
        let before = Moment::now();
        let minute = Duration::from_mins(1);
        let after = Moment {
            since_boot: before.since_boot + minute,
            ..before
        };
        assert_eq!((after.since(before), before.since(after)), (minute, Duration::ZERO));
    }
}
