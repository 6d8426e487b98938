//! Decoding speed of each worker, next to its peers. The router makes queues; the engine's own time from one token to
//! the next is the speed of its GPU.

use perfval_api::RelativeSpeed;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::measured::MeasuredPhase;
use super::{Reading, WorkerSeries};
use crate::gate::show;
use crate::quantile::student;
use crate::stats::{count, mean, median, rounded, squares};

/// Length of the windows in which workers are compared (s): whole waves of requests on a busy H200 take 1 to 2 s.
const WINDOW: i64 = 2;
/// Longest step between two samples that windows may span (s): healthy busy workers took up to 1.8 s to answer.
const GAP: i64 = 4;
/// Fewest tokens that show the speed of a window.
const TOKENS: f64 = 50.0;
/// Windows with a smaller part of the worker's largest batch are the ends of waves.
const FULL: f64 = 0.25;
/// Fewest windows that give an interval.
const WINDOWS: usize = 4;
/// Growth of the time per token with the batch, as a power of it, until a trial shows its own: 0 while memory is the
/// limit, 1 once arithmetic is. 16 trials on H200s at about 210 requests: 0.1 to 0.6.
pub(crate) const ELASTICITY: (f64, f64) = (0.4, 0.3);
/// Weight of that guess: the variance of a window's logarithm (0.05²) over its own.
const GUESS: f64 = 0.05 * 0.05 / (ELASTICITY.1 * ELASTICITY.1);

/// A worker's decode speed.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct WorkerSpeed {
    /// Time from one token of a request to its next (ms).
    #[serde(deserialize_with = "crate::number::bounded")]
    pub token_ms: Decimal,
    /// Requests that were decoded together.
    #[serde(deserialize_with = "crate::number::bounded")]
    pub batch: Decimal,
    /// Next to its peers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peers: Option<AgainstPeers>,
}

/// A worker's speed next to the median of its peers in the same seconds, at the same batch.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgainstPeers {
    /// Percent of theirs.
    #[serde(deserialize_with = "crate::number::bounded")]
    pub percent: Decimal,
    /// Half of its 95 % interval, from the worker's own windows (percentage points).
    #[serde(deserialize_with = "crate::number::bounded")]
    pub within: Decimal,
}

impl AgainstPeers {
    /// The mean of this many trials as status shows it.
    pub(crate) fn shown(self, trials: i64) -> RelativeSpeed {
        RelativeSpeed {
            percent: show(self.percent),
            within: show(self.within),
            of: trials,
        }
    }
}

/// The speed of every worker, in the order of the series; `None` where the engine does not count the time between tokens.
pub(super) fn speeds(series: &[WorkerSeries], phase: MeasuredPhase) -> Vec<Option<WorkerSpeed>> {
    let windows: Vec<Vec<Option<Window>>> = series.iter().map(|series| windows(series, phase)).collect();
    let elasticity = Elasticity::estimate(&windows);
    let speed = |worker: usize| {
        let (token_ms, batch) = time_and_batch(&windows[worker])?;
        Some(WorkerSpeed {
            token_ms: rounded(token_ms, 3)?,
            batch: rounded(batch, 1)?,
            peers: against_peers(worker, &windows, elasticity),
        })
    };
    (0..series.len()).map(speed).collect()
}

/// Work of an engine in one window.
#[derive(Clone, Copy, Debug)]
struct Window {
    tokens: f64,
    /// Time from one token to the next (ms).
    token_ms: f64,
    batch: f64,
}

impl Window {
    /// Logarithm of the time per token as it would be with a batch of one.
    fn corrected(self, elasticity: f64) -> f64 {
        self.token_ms.ln() - elasticity * self.batch.ln()
    }
}

/// The windows of a worker on the clock that all share; `None` where it was not seen at work.
fn windows(series: &WorkerSeries, phase: MeasuredPhase) -> Vec<Option<Window>> {
    let readings: Vec<(i64, Reading)> = series.readings().collect();
    let mut found: Vec<Option<Window>> = (phase.first..phase.last)
        .step_by(usize::try_from(WINDOW).unwrap_or(1))
        .map(|start| window(&readings, start, start + WINDOW))
        .collect();
    let full = found.iter().flatten().map(|window| window.batch).fold(0.0, f64::max) * FULL;
    for window in &mut found {
        *window = window.filter(|window| window.batch >= full);
    }
    found
}

fn window(readings: &[(i64, Reading)], start: i64, end: i64) -> Option<Window> {
    let (then, now) = (counted(readings, start)?, counted(readings, end)?);
    let (tokens, ms) = (now.tokens - then.tokens, now.ms - then.ms);
    let steps = now.steps.zip(then.steps).map(|(now, then)| now - then);
    let batch = match steps {
        Some(steps) if steps >= 1.0 => tokens / steps,
        Some(_) => return None,
        // Dynamo's mocker does not count its steps.
        None => f64::midpoint(then.in_flight, now.in_flight),
    };
    // More time than fits into the window began before it.
    let requests = batch.max(then.in_flight).max(now.in_flight);
    let began_before = ms > requests * number(end - start) * 1000.0;
    let after_a_stop = began_before && had_a_stop(readings, start, end);
    (tokens >= TOKENS && ms > 0.0 && batch >= 1.0 && !after_a_stop).then(|| Window {
        tokens,
        token_ms: ms / tokens,
        batch,
    })
}

/// Returns true if the engine had requests and gave no token in a step of this window, or in the step before it. The tokens
/// after a stop of 10 s on an H100 took 16 times as long as usual: no speed of its GPU.
fn had_a_stop(readings: &[(i64, Reading)], start: i64, end: i64) -> bool {
    readings.windows(2).any(|pair| {
        let [(since, then), (until, now)] = [pair[0], pair[1]];
        let beside = since < end && until >= start;
        beside && then.in_flight > 0 && now.in_flight > 0 && then.engine.gaps == now.engine.gaps
    })
}

/// Counters at a moment between two samples.
struct CountersBetween {
    tokens: f64,
    ms: f64,
    steps: Option<f64>,
    in_flight: f64,
}

fn counted(readings: &[(i64, Reading)], second: i64) -> Option<CountersBetween> {
    let at = readings.partition_point(|reading| reading.0 < second);
    let after = *readings.get(at)?;
    let before = at.checked_sub(1).map(|before| readings[before]);
    let before = before.filter(|_| after.0 > second).unwrap_or(after);
    if before.0 > second {
        return None;
    }
    let restarted = after.1.finished < before.1.finished;
    if restarted || after.0 - before.0 > GAP {
        return None;
    }
    let part = if after.0 == before.0 {
        0.0
    } else {
        number(second - before.0) / number(after.0 - before.0)
    };
    let between = |of: fn(&Reading) -> Option<i64>| {
        let (then, now) = (number(of(&before.1)?), number(of(&after.1)?));
        (now >= then).then_some(then + part * (now - then))
    };
    Some(CountersBetween {
        tokens: between(|reading| reading.engine.gaps)?,
        ms: between(|reading| reading.engine.gap_us)? / 1000.0,
        steps: between(|reading| reading.engine.steps),
        in_flight: number(before.1.in_flight) + part * (number(after.1.in_flight) - number(before.1.in_flight)),
    })
}

/// Exponent with which the time per token follows the batch, and its uncertainty.
#[derive(Clone, Copy)]
struct Elasticity {
    value: f64,
    deviation: f64,
}

impl Elasticity {
    /// Least squares within each worker, held to the guess where batches hardly vary.
    fn estimate(windows: &[Vec<Option<Window>>]) -> Self {
        let (mut square, mut cross) = (GUESS, GUESS * ELASTICITY.0);
        for worker in windows {
            let (batches, times): (Vec<f64>, Vec<f64>) = worker
                .iter()
                .flatten()
                .map(|window| (window.batch.ln(), window.token_ms.ln()))
                .unzip();
            let (x, y) = (mean(&batches), mean(&times));
            for (batch, token_ms) in batches.into_iter().zip(times) {
                square += (batch - x).powi(2);
                cross += (batch - x) * (token_ms - y);
            }
        }
        Self {
            value: (cross / square).clamp(0.0, 1.0),
            deviation: ELASTICITY.1 * (GUESS / square).sqrt(),
        }
    }
}

/// The mean ratio over the windows that the worker shares with peers, with its interval (Student's t).
fn against_peers(worker: usize, windows: &[Vec<Option<Window>>], elasticity: Elasticity) -> Option<AgainstPeers> {
    let mut ratios = Vec::new();
    let mut batches = Vec::new();
    for (at, own) in windows[worker].iter().enumerate() {
        let peers = windows.iter().enumerate().filter(|(other, _)| *other != worker);
        let peers: Vec<Window> = peers.filter_map(|(_, peer)| peer.get(at).copied().flatten()).collect();
        let theirs = median(peers.iter().map(|peer| peer.corrected(elasticity.value)));
        let batch = median(peers.iter().map(|peer| peer.batch.ln()));
        if let (Some(own), Some(theirs), Some(batch)) = (own, theirs, batch) {
            ratios.push(theirs - own.corrected(elasticity.value));
            batches.push(own.batch.ln() - batch);
        }
    }
    if ratios.len() < WINDOWS {
        return None;
    }
    let count = count(ratios.len());
    let variance = squares(&ratios) / (count - 1.0);
    let unequal = mean(&batches).abs();
    let within = student(ratios.len() - 1) * (variance / count).sqrt() + 2.0 * elasticity.deviation * unequal;
    let percent = 100.0 * mean(&ratios).exp();
    Some(AgainstPeers {
        percent: rounded(percent, 1)?,
        within: rounded(percent * within.exp_m1(), 1)?,
    })
}

/// Time per token over all windows, and the batch.
fn time_and_batch(windows: &[Option<Window>]) -> Option<(f64, f64)> {
    let tokens: f64 = windows.iter().flatten().map(|window| window.tokens).sum();
    let weighted = |of: fn(&Window) -> f64| {
        let weighted = windows.iter().flatten().map(|window| window.tokens * of(window));
        weighted.sum::<f64>() / tokens
    };
    (tokens > 0.0).then(|| (weighted(|window| window.token_ms), weighted(|window| window.batch)))
}

#[expect(clippy::cast_precision_loss, reason = "counters of one trial are far below 2^53")]
fn number(counter: i64) -> f64 {
    counter as f64
}
