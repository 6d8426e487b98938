//! Requests by the seconds in which they began.

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use super::line::{ReadLine, next};
use super::sketch::Sketch;
use super::times::{CdfPoint, Distribution, Quantiles, RequestTimes};
use crate::aiperf::record::{Number, RequestMetrics};
use crate::number::WEEK;

/// Most points over time: a trial of two minutes has one for each second, a longer one for each 2 s, 4 s and so on.
const MOST: i64 = 120;
const SECOND: i64 = 1_000_000_000;
/// Points of the distribution (per mille), dense in the tail, which matters most.
const SHARES: [i64; 27] = [
    0, 10, 50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 550, 600, 650, 700, 750, 800, 850, 900, 925, 950, 975, 990,
    995, 999, 1000,
];

/// Times of the requests of some seconds: to the first token, between tokens, and of the whole request.
type Bin = [Sketch; 3];

/// Bins of equal length on the wall clock: which request is read first makes no difference.
#[derive(Clone, Debug)]
struct Bins {
    /// Length of one (s).
    every: i64,
    by_number: BTreeMap<i64, Bin>,
    count: i64,
    first_ns: i64,
    last_ns: i64,
}

impl Default for Bins {
    fn default() -> Self {
        Self {
            every: 1,
            by_number: BTreeMap::new(),
            count: 0,
            first_ns: i64::MAX,
            last_ns: i64::MIN,
        }
    }
}

impl RequestTimes {
    /// Reads a record of requests line by line: of hundreds of thousands it has gigabytes.
    pub fn read(mut lines: impl BufRead) -> io::Result<Self> {
        let (mut bins, mut unread, mut line) = (Bins::default(), 0, Vec::new());
        loop {
            match next(&mut lines, &mut line)? {
                ReadLine::Measured(began_ns, times) => bins.add(began_ns, &times),
                ReadLine::PassedOver => {}
                ReadLine::NotUnderstood => unread += 1,
                ReadLine::End => {
                    let all = bins.finish();
                    return Ok(Self { unread, ..all });
                }
            }
        }
    }
}

impl Bins {
    fn add(&mut self, began_ns: i64, times: &RequestMetrics) {
        let times = [
            times.time_to_first_token,
            times.inter_token_latency,
            times.request_latency,
        ]
        .map(microseconds);
        if times == [None; 3] {
            return;
        }
        self.count += 1;
        self.first_ns = self.first_ns.min(began_ns);
        self.last_ns = self.last_ns.max(began_ns);
        while self.number(self.last_ns) - self.number(self.first_ns) >= MOST {
            self.widen();
        }
        let bin = self.by_number.entry(self.number(began_ns)).or_default();
        for (sketch, time) in bin.iter_mut().zip(times) {
            if let Some(us) = time {
                sketch.add(us);
            }
        }
    }

    fn finish(mut self) -> RequestTimes {
        let none = RequestTimes {
            every: 1,
            ..RequestTimes::default()
        };
        if self.count == 0 {
            return none;
        }
        let zero = self.first_ns.div_euclid(SECOND);
        let seconds = self.last_ns.div_euclid(SECOND) - zero;
        let [first, between, whole] = [0, 1, 2].map(|which| self.distribution(zero, which));
        let drawn = RequestTimes {
            count: self.count,
            seconds,
            every: self.every,
            time_to_first_token: first,
            inter_token_latency: between,
            request_latency: whole,
            ..none
        };
        if seconds <= WEEK { drawn } else { timeless(drawn) }
    }

    fn number(&self, began_ns: i64) -> i64 {
        began_ns.div_euclid(self.every * SECOND)
    }

    /// Makes one bin of each two.
    fn widen(&mut self) {
        self.every *= 2;
        for (number, bin) in std::mem::take(&mut self.by_number) {
            let wider = self.by_number.entry(number.div_euclid(2)).or_default();
            for (sketch, other) in wider.iter_mut().zip(bin) {
                sketch.merge(other);
            }
        }
    }

    fn distribution(&mut self, zero: i64, which: usize) -> Distribution {
        let mut all = Sketch::default();
        let mut over_time = Vec::new();
        for (number, bin) in &mut self.by_number {
            let sketch = std::mem::take(&mut bin[which]);
            let [median, p90, p99] = [500, 900, 990].map(|share| sketch.at_most(share));
            if let (Some(median), Some(p90), Some(p99)) = (median, p90, p99) {
                // The first bin may begin before the first request.
                let from = (number * self.every - zero).max(0);
                over_time.push(Quantiles { from, median, p90, p99 });
            }
            all.merge(sketch);
        }
        let share = |share| Some(CdfPoint(share, all.at_most(share)?));
        Distribution {
            over_time,
            cdf: SHARES.into_iter().filter_map(share).collect(),
        }
    }
}

/// Drops the times of day, because a clock that jumped by years made them useless.
fn timeless(mut times: RequestTimes) -> RequestTimes {
    (times.seconds, times.every) = (0, 1);
    for distribution in [
        &mut times.time_to_first_token,
        &mut times.inter_token_latency,
        &mut times.request_latency,
    ] {
        distribution.over_time.clear();
    }
    times
}

/// A time that a request can take.
fn microseconds(time: Option<Number>) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a week in µs is far below 2^53")]
    let longest = (WEEK * 1_000_000) as f64;
    Some(time?.value * 1000.0).filter(|us| (0.0..=longest).contains(us))
}
