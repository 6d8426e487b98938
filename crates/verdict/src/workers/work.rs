use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::measured::MeasuredPhase;
use super::{Engine, WorkerSeries};

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
    pub(super) fn new(series: &WorkerSeries, phase: MeasuredPhase) -> Option<Self> {
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
