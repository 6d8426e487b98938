use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::measured::MeasuredPhase;
use super::{Engine, WorkerSeries};
use crate::number::Bounded as _;

/// Work of an engine in the measured phase, by its own counters. Uncounted work is absent.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct EngineWork {
    /// Time that a request spent in prefill, on average (ms).
    #[serde(deserialize_with = "crate::number::bounded", skip_serializing_if = "Option::is_none")]
    pub prefill_ms: Option<Decimal>,
    /// Time that a request waited in the engine's queue, on average (ms).
    #[serde(deserialize_with = "crate::number::bounded", skip_serializing_if = "Option::is_none")]
    pub queue_ms: Option<Decimal>,
    /// Part of the prompts that the prefix cache held (percent): of that nothing was computed.
    #[serde(deserialize_with = "crate::number::bounded", skip_serializing_if = "Option::is_none")]
    pub cached_percent: Option<Decimal>,
    /// Requests that were thrown out of the batch for lack of KV cache.
    #[serde(deserialize_with = "crate::number::bounded", skip_serializing_if = "Option::is_none")]
    pub preemptions: Option<i64>,
    /// Arithmetic (10¹² operations per second), by the engine's own estimate.
    #[serde(deserialize_with = "crate::number::bounded", skip_serializing_if = "Option::is_none")]
    pub tflops: Option<Decimal>,
    /// Memory traffic (GB/s), by the engine's own estimate.
    #[serde(deserialize_with = "crate::number::bounded", skip_serializing_if = "Option::is_none")]
    pub gb_per_second: Option<Decimal>,
}

impl EngineWork {
    /// The work between the first and the last sample of the phase; `None` where the engine counts none of it.
    pub(super) fn new(series: &WorkerSeries, phase: MeasuredPhase) -> Option<Self> {
        let mut inside = series.readings().filter(|(second, _)| phase.contains(*second));
        let (since, then) = inside.next()?;
        let (second, now) = inside.next_back()?;
        let grown = |of: fn(&Engine) -> Option<i64>| {
            let more = of(&now.engine)? - of(&then.engine)?;
            (more >= 0).then(|| Decimal::from(more))
        };
        let finished = Decimal::from(now.finished - then.finished);
        let seconds = Decimal::from(second - since);
        let each = |of| {
            grown(of)
                .and_then(|sum| sum.checked_div(finished))
                .map(|ms| ms.round_dp(1))
        };
        // vLLM has the counter always and moves it only with `--enable-mfu-metrics`: 0 is no measurement.
        let rate = |of, per: Decimal| {
            let work = grown(of).filter(|work| !work.is_zero())?;
            Some(work.checked_div(seconds)?.checked_div(per)?.round_dp(1))
        };
        let cached = grown(|engine| engine.cached_tokens).zip(grown(|engine| engine.prompt_tokens));
        let work = Self {
            prefill_ms: each(|engine| engine.prefill_ms),
            queue_ms: each(|engine| engine.queue_ms),
            cached_percent: cached
                .and_then(|(cached, all)| (cached * Decimal::ONE_HUNDRED).checked_div(all))
                .filter(Decimal::is_bounded)
                .map(|percent| percent.round_dp(1)),
            preemptions: grown(|engine| engine.preemptions).and_then(|count| count.try_into().ok()),
            tflops: rate(|engine| engine.gflop, Decimal::ONE_THOUSAND),
            gb_per_second: rate(|engine| engine.moved_mb, Decimal::ONE_THOUSAND),
        };
        (work != Self::default()).then_some(work)
    }
}
