use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::WorkerSeries;
use super::measured::MeasuredPhase;
use super::pace::Unit;
use crate::number::bounded;

/// Length of the windows (s).
const MINUTE: i64 = 60;
/// First seconds that belong to none: every slot begins with a prefill at once.
const RAMP: i64 = 10;
/// Shortest span between first and last request in which minutes are compared (s): the last two must not touch the first. An
/// H100 that overheated became slower for 70 s.
const LONG: i64 = 240;
/// Shortest span of answers within a minute (s).
const ENOUGH: i64 = 30;

/// A worker's pace at both ends of a long trial (per second, in the unit of its [`Pace`](super::Pace)).
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    /// In the first minute.
    #[serde(deserialize_with = "bounded")]
    pub first: Decimal,
    /// In the last but one; absent in records of earlier versions.
    #[serde(default, deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub last_but_one: Option<Decimal>,
    /// In the last.
    #[serde(deserialize_with = "bounded")]
    pub last: Decimal,
}

impl Drift {
    /// The better one of the last two minutes: heat stays, and one slow minute is chance. Of a healthy trial of 300 s on two
    /// H200s the last minute was 5.7 % below the first, at the same clocks, and the minute before 1.2 %.
    pub fn settled(&self) -> Decimal {
        self.last_but_one.map_or(self.last, |before| before.max(self.last))
    }
}

/// The first minute of a trial in which requests were sent, the last but one and the last; `None` in a short one. The
/// last requests are answered while no other request follows, so the last minute ends when the last one was sent.
pub(super) fn minutes(series: &[WorkerSeries], phase: MeasuredPhase) -> Option<[MeasuredPhase; 3]> {
    let sent_last = series.iter().filter_map(sent_last).max()?.min(phase.last);
    let first = phase.first + RAMP;
    let window = |first: i64| MeasuredPhase::between(first, first + MINUTE);
    let last = sent_last - MINUTE;
    (sent_last - first >= LONG).then(|| [window(first), window(last - MINUTE), window(last)])
}

/// Last second in which a worker was given a request.
fn sent_last(series: &WorkerSeries) -> Option<i64> {
    series.last_change(|then, now| now.started > then.started)
}

/// The pace of one worker in these windows.
pub(super) fn drift(series: &WorkerSeries, [first, last_but_one, last]: [MeasuredPhase; 3]) -> Option<Drift> {
    Some(Drift {
        first: pace(series, first)?,
        last_but_one: Some(pace(series, last_but_one)?),
        last: pace(series, last)?,
    })
}

fn pace(series: &WorkerSeries, window: MeasuredPhase) -> Option<Decimal> {
    let mut within = series.readings().filter(|(second, _)| window.contains(*second));
    let (since, then) = within.next()?;
    let (until, now) = within.next_back()?;
    let unit = Unit::finest(&now);
    let more = unit.count(&now)? - unit.count(&then)?;
    // A counter that fell belongs to a new process.
    (until - since >= ENOUGH && more >= 0).then(|| (Decimal::from(more) / Decimal::from(until - since)).round_dp(1))
}
