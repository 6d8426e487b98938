use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::pace::Unit;
use super::{STANDSTILL, Sample, Scrape, Silence, WorkerSeries};

/// The seconds of the measured phase, first and last. Warm-up is not judged: compiling kernels for the first requests
/// stops a healthy worker for many seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredPhase {
    /// The first second.
    pub first: i64,
    /// The last one.
    pub last: i64,
    /// Second in which the last request ended, answered or not.
    pub over: i64,
}

impl MeasuredPhase {
    /// The phase of `seconds`; without a length, everything from the first request to the end of the last.
    ///
    /// AIPerf's length ends with the last answer. Requests in a frozen engine end at their time-out: 285 s later on an H100.
    pub fn new(series: &[WorkerSeries], seconds: Option<Decimal>) -> Self {
        let busy: Vec<i64> = series.iter().flat_map(busy_seconds).collect();
        let (first, over) = (
            busy.iter().min().copied().unwrap_or(0),
            busy.iter().max().copied().unwrap_or(0),
        );
        let Some(length) = seconds.and_then(|seconds| seconds.ceil().to_i64()) else {
            return Self::between(first, over);
        };
        let answered = series.iter().filter_map(last_answer).max();
        let last = answered
            .filter(|answered| over - answered >= STANDSTILL)
            .unwrap_or(over);
        let first = last.saturating_sub(length).max(first);
        Self { first, last, over }
    }

    /// The seconds from one to another.
    pub fn between(first: i64, last: i64) -> Self {
        Self {
            first,
            last,
            over: last,
        }
    }

    /// Time after the phase in which the last requests waited for their time-out (s).
    pub fn waited(self) -> i64 {
        self.over - self.last
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

/// Last second in which a worker added to its answers.
fn last_answer(series: &WorkerSeries) -> Option<i64> {
    series.last_change(|then, now| {
        let unit = Unit::finest(now);
        let counts = unit.count(then).zip(unit.count(now));
        counts.is_some_and(|(then, now)| now > then)
    })
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
