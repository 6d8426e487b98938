//! Two runs beside each other, as `-o json` prints them. Fields that a status has too have the same names.

use std::collections::BTreeSet;

use perfval_api::{GateStatus, PlacementStatus, TrialState, Verdict, quantity};
use perfval_verdict::difference::{DifferenceNoise, THROUGHPUT, TTFT_P99, compare_trials};
use perfval_verdict::environment::differences;
use rust_decimal::Decimal;
use rust_decimal::prelude::{FromPrimitive as _, ToPrimitive as _};
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::results::RunOutcome;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunComparison<'a> {
    pub before: Side<'a>,
    pub after: Side<'a>,
    pub metrics: [MetricChange; 2],
    pub gates: Vec<GateChange<'a>>,
    /// Differences of the environments; absent if one of them is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differs: Option<Vec<String>>,
}

/// One of the two.
#[skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Side<'a> {
    /// `NAME/RUN`.
    pub run: &'a str,
    pub verdict: Option<Verdict>,
    pub reason: Option<&'a str>,
    pub trials: usize,
    /// Of these, those that measured.
    pub measured: usize,
    /// Causes of the trials, each once.
    pub causes: BTreeSet<&'a str>,
    pub placement: Option<&'a PlacementStatus>,
}

/// A number of each trial, in both.
#[skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricChange {
    /// The field of a trial's status.
    pub name: &'static str,
    pub before: Option<Spread>,
    pub after: Option<Spread>,
    /// Of the means.
    pub change_percent: Option<Decimal>,
    /// Half of the interval in which the trials of two equal runs differ by chance (percent); absent with one trial of either.
    pub chance_percent: Option<Decimal>,
    /// True if the change lies within that interval.
    pub within_spread: Option<bool>,
}

/// The mean of a number over the trials of a run, and its extremes.
#[derive(Serialize)]
pub struct Spread {
    pub mean: Decimal,
    pub least: Decimal,
    pub most: Decimal,
    pub trials: usize,
}

/// A gate of the later run, and what became of it in the earlier one.
#[skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GateChange<'a> {
    pub name: &'a str,
    pub before: Option<&'a GateStatus>,
    pub after: &'a GateStatus,
    pub change_percent: Option<Decimal>,
}

impl<'a> RunComparison<'a> {
    pub fn new(before: &'a RunOutcome, after: &'a RunOutcome) -> Self {
        let (old, new) = (&before.status, &after.status);
        let gates = new.gates.iter().map(|gate| {
            let earlier = old.gates.iter().find(|earlier| earlier.name == gate.name);
            let observed = |gate: &GateStatus| quantity::parse(gate.observed.as_deref()?);
            GateChange {
                name: &gate.name,
                before: earlier,
                after: gate,
                change_percent: earlier.and_then(observed).zip(observed(gate)).and_then(percent),
            }
        });
        Self {
            before: Side::new(before),
            after: Side::new(after),
            metrics: [
                MetricChange::new("throughput", THROUGHPUT, before, after, |trial| {
                    trial.throughput.as_ref()
                }),
                MetricChange::new("ttftP99Ms", TTFT_P99, before, after, |trial| trial.ttft_p99_ms.as_ref()),
            ],
            gates: gates.collect(),
            differs: (old.state.environment.as_ref().zip(new.state.environment.as_ref()))
                .map(|(before, after)| differences(before, after)),
        }
    }
}

impl<'a> Side<'a> {
    fn new(outcome: &'a RunOutcome) -> Self {
        let status = &outcome.status;
        let trials = &status.state.trials;
        let causes = trials.iter().flat_map(|trial| &trial.causes);
        Self {
            run: &outcome.label,
            verdict: status.verdict,
            reason: status.reason.as_deref(),
            trials: trials.len(),
            measured: outcome.measured().count(),
            causes: causes.map(String::as_str).collect(),
            placement: status.placement.as_ref(),
        }
    }
}

impl MetricChange {
    fn new(
        name: &'static str,
        noise: DifferenceNoise,
        before: &RunOutcome,
        after: &RunOutcome,
        number: fn(&TrialState) -> Option<&String>,
    ) -> Self {
        let (before, after) = (measured(before, number), measured(after, number));
        let floats = |values: &[Decimal]| values.iter().filter_map(Decimal::to_f64).collect::<Vec<_>>();
        let difference = compare_trials(&floats(&before), &floats(&after), noise);
        let (before, after) = (Spread::new(&before), Spread::new(&after));
        let both = before.as_ref().zip(after.as_ref());
        Self {
            name,
            change_percent: both.and_then(|(one, other)| percent((one.mean, other.mean))),
            chance_percent: difference.and_then(|difference| Decimal::from_f64(difference.within.ceil())),
            within_spread: difference.map(|difference| !difference.is_outside()),
            before,
            after,
        }
    }
}

/// A number of each trial that decides: a soak lasts ten times as long and is another measurement.
fn measured(outcome: &RunOutcome, number: fn(&TrialState) -> Option<&String>) -> Vec<Decimal> {
    let deciding = outcome.measured().filter(|trial| !trial.soak);
    deciding.filter_map(|trial| quantity::parse(number(trial)?)).collect()
}

impl Spread {
    /// `None` without a number, or if 28 digits cannot represent their sum.
    fn new(values: &[Decimal]) -> Option<Self> {
        let (least, most) = (*values.iter().min()?, *values.iter().max()?);
        let sum = (values.iter()).try_fold(Decimal::ZERO, |sum, value| sum.checked_add(*value))?;
        Some(Self {
            mean: (sum / Decimal::from(values.len())).round_dp(3).normalize(),
            least,
            most,
            trials: values.len(),
        })
    }
}

fn percent((from, to): (Decimal, Decimal)) -> Option<Decimal> {
    quantity::change_percent(from, to).map(|percent| percent.round_dp(1).normalize())
}
