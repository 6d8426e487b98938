use rust_decimal::Decimal;

use super::measured::MeasuredPhase;
use super::pace::{Pace, Unit};
use super::{Reading, Silence, WorkerSeries};

/// Longest step between two answers that is no gap: a busy machine oversleeps a second now and then.
const STEP: i64 = 2;

/// A worker with a smaller part of its usual requests, one in this many, does not stand still.
const FEW: Decimal = Decimal::from_parts(4, 0, 0, false, 0);

/// Time during which a worker had requests and did not move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stillness {
    /// Longest span after which it went on (s).
    pub recovered: i64,
    /// Requests it held in that span.
    pub held: i64,
    /// Span without progress or answer after which it did not go on (s).
    pub to_the_end: i64,
    /// Refused samples in that span.
    pub refused: i64,
}

/// Looks for spans without progress, in a worker that usually moves at `pace` with `usual` requests in flight.
pub(super) fn stillness(series: &WorkerSeries, phase: MeasuredPhase, pace: Option<Pace>, usual: Decimal) -> Stillness {
    let mut longest = Stillness::default();
    let (mut span, mut held) = (Decimal::ZERO, 0);
    let mut before: Option<(i64, Reading)> = None;
    for (second, now) in series.readings().filter(|(second, _)| *second <= phase.over) {
        let Some((since, then)) = before.replace((second, now)) else {
            continue;
        };
        if second <= phase.first {
            continue;
        }
        if let Some(still) = stood_still(second - since, &then, &now, pace, usual) {
            span += still;
            held = held.max(then.in_flight);
        } else if !dropped(&then, &now, pace, usual) {
            (span, held) = (Decimal::ZERO, 0);
        }
        if whole(span) > longest.recovered {
            (longest.recovered, longest.held) = (whole(span), held);
        }
    }
    let Some((since, _)) = before else {
        return longest;
    };
    let asked = series.samples.last().map_or(since, |sample| sample.0.min(phase.over));
    longest.to_the_end = (asked - since).max(0);
    longest.refused = series.silences(Silence::Failed, |second| since < second && second <= asked);
    if span > Decimal::ZERO {
        longest.to_the_end += whole(span);
        if longest.recovered == whole(span) {
            (longest.recovered, longest.held) = (0, 0);
        }
    }
    longest
}

/// Returns true if a worker lost its requests without an answer: they timed out while it stood still, and it has not gone on.
fn dropped(then: &Reading, now: &Reading, pace: Option<Pace>, usual: Decimal) -> bool {
    let unit = pace.map_or(Unit::Requests, |pace| pace.unit);
    has_few(then, usual) && unit != Unit::Requests && unit.count(then) == unit.count(now)
}

/// One request of hundreds that never ends is no standstill of the worker.
fn has_few(reading: &Reading, usual: Decimal) -> bool {
    Decimal::from(reading.in_flight) * FEW < usual.max(Decimal::ONE)
}

/// The part of an interval in which the worker did not move; `None` if it moved.
fn stood_still(seconds: i64, then: &Reading, now: &Reading, pace: Option<Pace>, usual: Decimal) -> Option<Decimal> {
    if has_few(then, usual) {
        return None;
    }
    let unit = pace.map_or(Unit::Requests, |pace| pace.unit);
    let moved = Decimal::from(unit.count(now)? - unit.count(then)?);
    let seconds_long = Decimal::from(seconds);
    if seconds <= STEP {
        // Ended requests are too coarse for this: long answers in step end many seconds apart.
        return (unit != Unit::Requests && moved.is_zero()).then_some(seconds_long);
    }
    // A worker that did not answer for a while moved a little at both ends of its silence. A worker without new
    // requests afterwards is slow on average: with these requests it went faster, though never faster than it did at
    // its best.
    let load = Decimal::from(then.in_flight).checked_div(usual).unwrap_or(Decimal::ONE);
    let usual_pace = pace.map_or(Decimal::ZERO, |pace| pace.mean.saturating_mul(load).min(pace.best));
    let moving = moved.checked_div(usual_pace).unwrap_or(Decimal::ZERO);
    let still = seconds_long - moving.clamp(Decimal::ZERO, seconds_long);
    (still * Decimal::TWO > seconds_long).then_some(still)
}

fn whole(seconds: Decimal) -> i64 {
    seconds.round().try_into().unwrap_or(i64::MAX)
}
