use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::{Sample, Scrape, Silence, WorkerSeries};

/// The seconds of the measured phase, first and last. Warm-up is not judged: compiling kernels for the first requests
/// stops a healthy worker for many seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// The first second.
    pub first: i64,
    /// The last one.
    pub last: i64,
}

impl Phase {
    /// The phase of `seconds` that ended when the last request of any worker did; without a length, everything since the
    /// first request.
    pub fn new(series: &[WorkerSeries], seconds: Option<Decimal>) -> Self {
        let busy: Vec<i64> = series.iter().flat_map(busy_seconds).collect();
        let (first, last) = (
            busy.iter().min().copied().unwrap_or(0),
            busy.iter().max().copied().unwrap_or(0),
        );
        let length = seconds.and_then(|seconds| seconds.ceil().to_i64());
        Self {
            first: length.map_or(first, |length| last.saturating_sub(length).max(first)),
            last,
        }
    }

    /// Its length (s); a burst within one sample still took up to a second.
    pub fn seconds(self) -> i64 {
        (self.last - self.first).max(1)
    }

    /// Returns true if a second lies in the measured phase.
    pub fn contains(self, second: i64) -> bool {
        (self.first..=self.last).contains(&second)
    }
}

/// Seconds in which a worker had requests or finished some. A worker that does not answer still has its last
/// requests.
fn busy_seconds(series: &WorkerSeries) -> Vec<i64> {
    let (mut in_flight, mut finished) = (0, None);
    let busy = |Sample(second, scrape): &Sample| {
        let moved = match scrape {
            Scrape::Reading(reading) => {
                in_flight = reading.in_flight;
                finished
                    .replace(reading.finished)
                    .is_some_and(|before| before != reading.finished)
            }
            Scrape::Nothing(Silence::TimedOut) => false,
            Scrape::Nothing(Silence::Failed) => return None,
        };
        (in_flight > 0 || moved).then_some(*second)
    };
    series.samples.iter().filter_map(busy).collect()
}
