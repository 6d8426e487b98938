use rust_decimal::Decimal;
use rust_decimal::prelude::Zero;
use serde::{Deserialize, Serialize};

use super::drift::{Drift, drift, minutes};
use super::measured::MeasuredPhase;
use super::pace::{Pace, Unit};
use super::speed::{WorkerSpeed, speeds};
use super::stillness::stillness;
use super::{Engine, Reading, Silence, WorkerSeries};

/// Work of one worker in the measured phase of one trial.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkerSummary {
    /// IP address, the pod's.
    pub address: String,
    /// Length of the phase (s), the same for all workers.
    #[serde(deserialize_with = "crate::number::bounded")]
    pub seconds: i64,
    /// Samples with counters, warm-up included, as for the next three. With none, the numbers below are not zero but
    /// unknown.
    #[serde(deserialize_with = "crate::number::bounded")]
    pub samples: i64,
    /// Samples without an answer in time.
    #[serde(deserialize_with = "crate::number::bounded", skip_serializing_if = "Zero::is_zero")]
    pub timeouts: i64,
    /// Samples refused or not understood.
    #[serde(deserialize_with = "crate::number::bounded", skip_serializing_if = "Zero::is_zero")]
    pub failures: i64,
    /// Times its counters were reset: its process restarted.
    #[serde(deserialize_with = "crate::number::bounded", skip_serializing_if = "Zero::is_zero")]
    pub resets: i64,
    /// Requests it finished.
    #[serde(deserialize_with = "crate::number::bounded")]
    pub served: i64,
    /// Most requests it had in flight in any sample.
    #[serde(deserialize_with = "crate::number::bounded")]
    pub peak_in_flight: i64,
    /// Requests it had in flight on average.
    #[serde(deserialize_with = "crate::number::bounded")]
    pub mean_in_flight: Decimal,
    /// Requests it finished per second; the same span for all workers, so that rates compare.
    #[serde(deserialize_with = "crate::number::bounded")]
    pub rate_per_second: Decimal,
    /// Time that a finished request spent in it, on average (s): from counters, so no request is missed between samples.
    #[serde(deserialize_with = "crate::number::bounded", skip_serializing_if = "Option::is_none")]
    pub seconds_per_request: Option<Decimal>,
    /// Pace of its answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// Decoding speed, if its engine reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<WorkerSpeed>,
    /// Further counters of its engine in the phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineWork>,
    /// Pace at both ends of a long trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drift>,
    /// Longest span in which it had requests and did not move, after which it went on (s).
    #[serde(deserialize_with = "crate::number::bounded", skip_serializing_if = "Zero::is_zero")]
    pub still_seconds: i64,
    /// Requests it held in that span.
    #[serde(deserialize_with = "crate::number::bounded", skip_serializing_if = "Zero::is_zero")]
    pub still_in_flight: i64,
    /// Span without progress or answer after which it did not go on (s).
    #[serde(deserialize_with = "crate::number::bounded", skip_serializing_if = "Zero::is_zero")]
    pub frozen_seconds: i64,
    /// Samples of that span that were refused; absent without such a span, and in records of earlier versions.
    #[serde(deserialize_with = "crate::number::bounded", skip_serializing_if = "Option::is_none")]
    pub refused_at_end: Option<i64>,
    /// Most requests that waited for its engine in any sample, where that is exported.
    #[serde(deserialize_with = "crate::number::bounded", skip_serializing_if = "Option::is_none")]
    pub peak_waiting: Option<i64>,
}

impl WorkerSummary {
    /// Generated tokens per second, where the engine counts them.
    pub fn tokens_per_second(&self) -> Option<Decimal> {
        self.pace.filter(|pace| pace.unit == Unit::Tokens).map(|pace| pace.mean)
    }
}

/// Sums up what the workers did, in order of their address. `measured` is the length of AIPerf's measured phase (s), which
/// ends with the last answer; without it the warm-up counts too.
pub fn summarize(series: &[WorkerSeries], measured: Option<Decimal>) -> Vec<WorkerSummary> {
    let phase = MeasuredPhase::new(series, measured);
    let minutes = minutes(series, phase);
    let summed = |series: &WorkerSeries| WorkerSummary {
        drift: minutes.and_then(|minutes| drift(series, minutes)),
        ..summary(series, phase)
    };
    let mut summaries: Vec<_> = series.iter().map(summed).collect();
    for (summary, speed) in summaries.iter_mut().zip(speeds(series, phase)) {
        summary.speed = speed;
    }
    summaries.sort_by(|a, b| a.address.cmp(&b.address));
    summaries
}

fn summary(series: &WorkerSeries, phase: MeasuredPhase) -> WorkerSummary {
    let mut summary = WorkerSummary {
        address: series.address.clone(),
        timeouts: series.silences(Silence::TimedOut, |_| true),
        failures: series.silences(Silence::Failed, |_| true),
        seconds: phase.seconds(),
        ..WorkerSummary::default()
    };
    let seconds = Decimal::from(phase.seconds());
    let (mut in_flight, mut samples, mut busy_ms) = (0, 0, Some(0));
    let mut growth: Option<Growth> = None;
    let mut before: Option<(i64, Reading)> = None;

    for (second, now) in series.readings() {
        summary.samples += 1;
        if phase.contains(second) {
            samples += 1;
            in_flight = now.in_flight.saturating_add(in_flight);
            summary.peak_in_flight = summary.peak_in_flight.max(now.in_flight);
            summary.peak_waiting = summary.peak_waiting.max(now.waiting);
        }
        if let Some((since, then)) = before.replace((second, now)) {
            // A counter that fell belongs to a new process, which counted from zero.
            let restarted = now.finished < then.finished || now.started < then.started;
            summary.resets += i64::from(restarted);
            let then = if restarted { zero_of(&then) } else { then };
            if second > phase.first && second <= phase.last {
                summary.served = summary.served.saturating_add(now.finished - then.finished);
                busy_ms = busy_ms
                    .zip(now.busy_ms.zip(then.busy_ms))
                    .map(|(sum, (now, then)): (i64, _)| sum.saturating_add((now - then).max(0)));
                let growth = growth.get_or_insert(Growth {
                    unit: Unit::finest(&now),
                    sum: 0,
                    best: Decimal::ZERO,
                });
                growth.add(second - since, &then, &now);
            }
        }
    }
    let served = Decimal::from(summary.served);
    summary.mean_in_flight = (Decimal::from(in_flight) / Decimal::from(samples.max(1))).round_dp(2);
    summary.rate_per_second = (served / seconds).round_dp(3);
    summary.seconds_per_request = busy_ms
        .and_then(|busy_ms| (Decimal::from(busy_ms) / Decimal::ONE_THOUSAND).checked_div(served))
        .map(|seconds| seconds.round_dp(3));
    summary.pace = growth.map(|growth| growth.pace(seconds));
    summary.engine = EngineWork::new(series, phase);
    let stillness = stillness(series, phase, summary.pace, summary.mean_in_flight);
    summary.still_seconds = stillness.recovered;
    summary.still_in_flight = stillness.held;
    summary.frozen_seconds = stillness.to_the_end;
    summary.refused_at_end = (stillness.to_the_end > 0).then_some(stillness.refused);
    summary
}

/// The counters of the same process at its start.
fn zero_of(reading: &Reading) -> Reading {
    Reading {
        tokens: reading.tokens.map(|_| 0),
        bytes: reading.bytes.map(|_| 0),
        busy_ms: reading.busy_ms.map(|_| 0),
        ..Reading::default()
    }
}

/// Growth of a worker's answers until now.
struct Growth {
    unit: Unit,
    sum: i64,
    best: Decimal,
}

impl Growth {
    fn add(&mut self, seconds: i64, then: &Reading, now: &Reading) {
        let Some((then, now)) = self.unit.count(then).zip(self.unit.count(now)) else {
            return;
        };
        let more = (now - then).max(0);
        self.sum = self.sum.saturating_add(more);
        self.best = self.best.max(Decimal::from(more) / Decimal::from(seconds.max(1)));
    }

    fn pace(&self, seconds: Decimal) -> Pace {
        Pace {
            unit: self.unit,
            mean: (Decimal::from(self.sum) / seconds).round_dp(1),
            best: self.best.round_dp(1),
        }
    }
}

/// Work of an engine in the measured phase, by its own counters. Uncounted work is absent.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct EngineWork {
    /// Arithmetic (10¹² operations per second), by the engine's own estimate.
    #[serde(deserialize_with = "crate::number::bounded", skip_serializing_if = "Option::is_none")]
    pub tflops: Option<Decimal>,
    /// Memory traffic (GB/s), by the engine's own estimate.
    #[serde(deserialize_with = "crate::number::bounded", skip_serializing_if = "Option::is_none")]
    pub gb_per_second: Option<Decimal>,
}

impl EngineWork {
    /// The work between the first and the last sample of the phase; `None` where the engine counts none of it.
    fn new(series: &WorkerSeries, phase: MeasuredPhase) -> Option<Self> {
        let mut inside = series.readings().filter(|(second, _)| phase.contains(*second));
        let (since, then) = inside.next()?;
        let (second, now) = inside.next_back()?;
        let seconds = Decimal::from(second - since);
        // vLLM has the counter always and moves it only with `--enable-mfu-metrics`: 0 is no measurement.
        let thousands_per_second = |of: fn(&Engine) -> Option<i64>| {
            let more = of(&now.engine)? - of(&then.engine)?;
            let per_second = Decimal::from(more).checked_div(seconds)?;
            let rate = per_second.checked_div(Decimal::ONE_THOUSAND)?;
            (more > 0).then(|| rate.round_dp(1))
        };
        let work = Self {
            tflops: thousands_per_second(|engine| engine.gflop),
            gb_per_second: thousands_per_second(|engine| engine.moved_mb),
        };
        (work != Self::default()).then_some(work)
    }
}
