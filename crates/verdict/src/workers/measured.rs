use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::pace::Unit;
use super::{Reading, Sample, Scrape, Silence, WorkerSeries};

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
    /// The phase of `seconds`, and what waited for a worker that stood still after it; without a length, everything since the
    /// first request.
    ///
    /// AIPerf's length ends with the last answer. Requests that a frozen engine holds end at their time-out: 285 s later on
    /// an H100, while the other worker had none.
    pub fn new(series: &[WorkerSeries], seconds: Option<Decimal>) -> Self {
        let busy: Vec<i64> = series.iter().flat_map(busy_seconds).collect();
        let (first, last) = (
            busy.iter().min().copied().unwrap_or(0),
            busy.iter().max().copied().unwrap_or(0),
        );
        let answered = series.iter().filter_map(last_answer).max().unwrap_or(last);
        let length = seconds.and_then(|seconds| seconds.ceil().to_i64());
        Self {
            first: length.map_or(first, |length| answered.saturating_sub(length).max(first)),
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

/// Last second in which a worker got on with its answers.
fn last_answer(series: &WorkerSeries) -> Option<i64> {
    let readings: Vec<(i64, Reading)> = series.readings().collect();
    let moved = |pair: &&[(i64, Reading)]| {
        let unit = Unit::finest(&pair[1].1);
        unit.count(&pair[1].1) != unit.count(&pair[0].1)
    };
    readings.windows(2).filter(moved).map(|pair| pair[1].0).next_back()
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
