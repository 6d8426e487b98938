//! Comparison of a trial's numbers with the gates.

use perfval_api::{
    ExpectedBy, Gate, GateMode, GateOperator, GateResult, GateStatus, MetricNoise, PlacementStatus, PlanDetails,
    Scaling, quantity,
};
use rust_decimal::{Decimal, RoundingStrategy};

/// Margin (percent) of a throughput that is far below its gate.
const FAR: Decimal = Decimal::from_parts(50, 0, 0, true, 0);

/// The share of a node that a run uses; thresholds may scale with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// GPUs in use.
    pub gpus: i64,
    /// GPUs of the node, as far as they count: see [`Share::new`].
    pub node_gpus: i64,
}

impl Share {
    /// Share by which no threshold changes.
    pub const UNSCALED: Self = Self { gpus: 1, node_gpus: 1 };

    /// The share of a plan. A threshold is lowered for GPUs that others use, and not for faulty ones, which have no
    /// user. If the spec gives the expected number, the threshold is meant for that number: the missing GPUs fail the
    /// run separately.
    pub fn new(plan: &PlacementStatus, details: &PlanDetails) -> Self {
        let by_spec = plan
            .expected_gpus
            .filter(|_| details.expected_by == Some(ExpectedBy::Spec));
        let healthy = plan.node_gpus - plan.faulty_gpus;
        Self {
            gpus: plan.gpus,
            node_gpus: by_spec.map_or(healthy, |expected| expected.max(healthy)),
        }
    }
}

/// A threshold after scaling and tolerance, kept as a fraction so that a comparison stays exact.
#[derive(Clone, Copy)]
struct Effective {
    numerator: Decimal,
    denominator: Decimal,
}

impl Effective {
    /// The effective threshold of a gate, or `None` if its quantity cannot be read (admission refuses those).
    fn new(gate: &Gate, share: Share) -> Option<Self> {
        let threshold = quantity::parse(&gate.threshold)?;
        let tolerance = Decimal::from(gate.tolerance_percent);
        let hundred = Decimal::ONE_HUNDRED;
        let percent = match gate.operator {
            GateOperator::AtLeast => hundred - tolerance,
            GateOperator::AtMost => hundred + tolerance,
        };
        let (times, over) = match gate.scaling {
            Scaling::None => (1, 1),
            Scaling::ByGpuShare => (share.gpus, share.node_gpus.max(1)),
            Scaling::PerGpu => (share.gpus, 1),
        };
        Some(Self {
            numerator: threshold.checked_mul(percent)?.checked_mul(Decimal::from(times))?,
            denominator: hundred * Decimal::from(over),
        })
    }

    /// Returns true if `observed` is on the good side; the threshold itself is good.
    fn met_by(self, observed: Decimal, operator: GateOperator) -> bool {
        let Some(scaled) = observed.checked_mul(self.denominator) else {
            return operator == GateOperator::AtLeast; // larger than 28 digits: beyond any threshold
        };
        match operator {
            GateOperator::AtLeast => scaled >= self.numerator,
            GateOperator::AtMost => scaled <= self.numerator,
        }
    }

    /// The threshold as a number, for people.
    fn value(self) -> Decimal {
        (self.numerator / self.denominator).normalize()
    }

    /// Distance of `observed` from the threshold (percent of it), positive on the good side. Rounded away from zero, so
    /// that a miss never shows as 0.
    fn margin(self, observed: Decimal, operator: GateOperator) -> Option<Decimal> {
        let scaled = observed.checked_mul(self.denominator)?;
        let above = quantity::change_percent(self.numerator, scaled)?;
        let good = match operator {
            GateOperator::AtLeast => above,
            GateOperator::AtMost => -above,
        };
        Some(
            good.round_dp_with_strategy(2, RoundingStrategy::AwayFromZero)
                .normalize(),
        )
    }
}

/// Reason why no trial could miss these gates; `None` if one can.
pub fn nothing_to_judge(gates: &[Gate]) -> Option<&'static str> {
    if gates.is_empty() {
        return Some("spec.gates is empty: nothing to judge");
    }
    let enforced = gates.iter().any(|gate| gate.mode == GateMode::Enforce);
    (!enforced)
        .then_some("every gate of spec.gates has mode Warn, so nothing could fail: give at least one gate mode Enforce")
}

/// One gate judged on one trial.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedGate {
    /// The gate as the status shows it.
    pub status: GateStatus,
    /// True if it counts and was not reported, so that the trial proves nothing.
    pub unmeasured: bool,
    /// Operator that gives the good side of the threshold.
    pub operator: GateOperator,
    /// Distance to the effective threshold (percent of it), negative for a miss.
    pub margin: Option<Decimal>,
    /// True if a throughput is at most half of its threshold: no noise of a whole trial explains that. A latency tail
    /// may be any multiple of its threshold in a single trial of a healthy node (4,155 and 12,295 ms against 2,200 in
    /// the published runs, between trials that passed).
    pub far: bool,
}

impl JudgedGate {
    /// Returns true if it makes the trial a miss.
    pub fn is_missed(&self) -> bool {
        self.status.result == GateResult::Missed
    }

    /// The observed value, the threshold and their distance.
    pub fn in_words(&self) -> String {
        let GateStatus {
            name,
            observed,
            effective,
            ..
        } = &self.status;
        let observed = observed.as_deref().unwrap_or("nothing");
        let sign = self.operator.sign();
        let off = self
            .margin
            .map_or(String::new(), |margin| format!(", off by {} %", show(margin.abs())));
        format!("gate {name} observed {observed} ({sign} {effective}{off})")
    }
}

/// Judges one gate by the observed value (`None`: none that can be judged).
pub fn judge(gate: &Gate, observed: Option<Decimal>, share: Share) -> JudgedGate {
    let effective = Effective::new(gate, share);
    let compared = observed.zip(effective);
    let met = compared.map(|(observed, effective)| effective.met_by(observed, gate.operator));
    let result = match (met, gate.mode) {
        (None, _) => GateResult::Unmeasured,
        (Some(true), _) => GateResult::Met,
        (Some(false), GateMode::Enforce) => GateResult::Missed,
        (Some(false), GateMode::Warn) => GateResult::Warned,
    };
    let margin = compared.and_then(|(observed, effective)| effective.margin(observed, gate.operator));
    let is_speed = gate.metric.is_rate() && gate.metric.noise() != MetricNoise::Unknown;
    let far = result == GateResult::Missed && is_speed && margin.is_some_and(|margin| margin <= FAR);
    let (observed, effective) = match (observed, effective.map(Effective::value)) {
        (Some(observed), Some(effective)) => {
            let (observed, effective) = show_both(observed, effective);
            (Some(observed), effective)
        }
        (observed, effective) => (
            observed.map(show),
            effective.map_or_else(|| gate.threshold.clone(), show),
        ),
    };
    JudgedGate {
        status: GateStatus {
            name: gate.name.clone(),
            observed,
            effective,
            result,
            margin_percent: margin.map(show),
        },
        operator: gate.operator,
        margin,
        // Without earlier runs or an approved baseline there is nothing to compare with yet: that voids no trial.
        unmeasured: result == GateResult::Unmeasured
            && gate.mode == GateMode::Enforce
            && !gate.metric.needs_a_reference(),
        far,
    }
}

/// A number as status prints it: four significant digits, but the whole part entire, at most three digits after the point, and no
/// trailing zeros. A value that would round to zero keeps three digits.
pub fn show(value: Decimal) -> String {
    let rounded = value.round_dp(match value.trunc().abs().to_string().len() {
        1 => 3,
        2 => 2,
        3 => 1,
        _ => 0,
    });
    let rounded = if rounded.is_zero() {
        value.round_sf(3).unwrap_or(value)
    } else {
        rounded
    };
    rounded.normalize().to_string()
}

/// Observed value and threshold as status prints them, with as many digits as show on which side of the threshold the value is.
fn show_both(observed: Decimal, effective: Decimal) -> (String, String) {
    let shown = (show(observed), show(effective));
    if shown.0 != shown.1 || observed == effective {
        return shown;
    }
    let to = |digits, value: Decimal| value.round_dp(digits).normalize().to_string();
    let mut finer = (1..=Decimal::MAX_SCALE).map(|digits| (to(digits, observed), to(digits, effective)));
    finer
        .find(|(observed, effective)| observed != effective)
        .unwrap_or(shown)
}

#[cfg(test)]
mod tests {
    use perfval_api::{Metric, Statistic};

    use super::*;

    fn gate(operator: GateOperator, threshold: &str, tolerance: i32, scaling: Scaling) -> Gate {
        Gate {
            name: "g".into(),
            metric: Metric::OutputTokenThroughput,
            statistic: Statistic::Avg,
            operator,
            threshold: threshold.into(),
            tolerance_percent: tolerance,
            scaling,
            mode: GateMode::Enforce,
        }
    }

    #[test]
    fn a_threshold_is_for_the_gpus_in_service_or_for_those_that_the_spec_expects() {
        let rows = [
            (8, 0, None, 8),
            (8, 1, None, 7),
            (7, 0, Some((ExpectedBy::Spec, 8)), 8),
            (8, 1, Some((ExpectedBy::Spec, 8)), 8),
            (8, 1, Some((ExpectedBy::Node, 8)), 7),
            (7, 0, Some((ExpectedBy::Label, 8)), 7),
            (7, 0, Some((ExpectedBy::Peers, 8)), 7),
        ];
        for (node_gpus, faulty_gpus, expected, counted) in rows {
            let plan = PlacementStatus {
                gpus: 7,
                node_gpus,
                faulty_gpus,
                expected_gpus: expected.map(|(_, gpus)| gpus),
                ..PlacementStatus::default()
            };
            let details = PlanDetails {
                expected_by: expected.map(|(by, _)| by),
                ..PlanDetails::default()
            };
            let share = Share::new(&plan, &details);
            assert_eq!((share.gpus, share.node_gpus), (7, counted), "{plan:?}");
        }
    }

    #[test]
    fn thresholds_scale_widen_and_include_their_edge() {
        use GateOperator::{AtLeast, AtMost};
        use GateResult::{Met, Missed};
        use Scaling::{ByGpuShare, PerGpu};
        let half = Share { gpus: 4, node_gpus: 8 };
        let third = Share { gpus: 1, node_gpus: 3 };
        for (operator, threshold, tolerance, scaling, share, observed, effective, result) in [
            (AtLeast, "50000", 10, Scaling::None, half, "45000", "45000", Met),
            (AtLeast, "50000", 10, Scaling::None, half, "44999.999", "45000", Missed),
            (AtLeast, "50k", 0, ByGpuShare, half, "25000", "25000", Met),
            (AtLeast, "50k", 0, ByGpuShare, half, "24999", "25000", Missed),
            (AtLeast, "100", 0, PerGpu, half, "400", "400", Met),
            (AtMost, "2000", 10, Scaling::None, half, "2200", "2200", Met),
            (AtMost, "2000", 10, Scaling::None, half, "2200.001", "2200", Missed),
            // 100/3 has no end as a decimal: the comparison must not round it up.
            (
                AtLeast,
                "100",
                0,
                ByGpuShare,
                third,
                "33.3333333",
                "33.33333333",
                Missed,
            ),
            (AtLeast, "100", 0, ByGpuShare, third, "33.3333334", "33.3333333", Met),
        ] {
            let gate = gate(operator, threshold, tolerance, scaling);
            let judged = judge(&gate, Decimal::from_str_exact(observed).ok(), share);
            assert_eq!(
                (judged.status.effective.as_str(), judged.status.result),
                (effective, result),
                "{gate:?} {observed}"
            );
        }
    }

    #[test]
    fn half_of_a_throughput_is_far_and_no_latency_and_no_goodput_is() {
        use GateOperator::{AtLeast, AtMost};
        for (metric, operator, observed, far) in [
            (Metric::OutputTokenThroughput, AtLeast, 50, true),
            (Metric::OutputTokenThroughput, AtLeast, 51, false),
            (Metric::TimeToFirstToken, AtMost, 1000, false),
            (Metric::Goodput, AtLeast, 40, false),
        ] {
            let gate = Gate {
                metric,
                ..gate(operator, "100", 0, Scaling::None)
            };
            let judged = judge(&gate, Some(Decimal::from(observed)), Share { gpus: 1, node_gpus: 1 });
            assert_eq!(judged.far, far, "{metric:?} {observed}");
        }
    }

    #[test]
    fn a_margin_is_signed_and_a_miss_never_shows_as_none() {
        use GateOperator::{AtLeast, AtMost};
        let share = Share { gpus: 1, node_gpus: 1 };
        for (operator, tolerance, observed, margin) in [
            (AtLeast, 0, "110", "10"),
            (AtLeast, 0, "100", "0"),
            (AtLeast, 0, "99.999999", "-0.01"),
            (AtLeast, 10, "81", "-10"),
            (AtMost, 10, "110", "0"),
            (AtMost, 10, "55", "50"),
            (AtMost, 0, "100.001", "-0.01"),
            (AtMost, 0, "325", "-225"),
        ] {
            let observed = Decimal::from_str_exact(observed).ok();
            let judged = judge(&gate(operator, "100", tolerance, Scaling::None), observed, share);
            assert_eq!(
                judged.status.margin_percent.as_deref(),
                Some(margin),
                "{operator:?} {observed:?}"
            );
        }
    }

    #[test]
    fn a_number_has_four_digits_and_a_miss_never_looks_like_its_threshold() {
        for (value, shown) in [
            ("34763.34", "34763"),
            ("264.681", "264.7"),
            ("99.951", "99.95"),
            ("7.1", "7.1"),
            ("0.1234", "0.123"),
            ("0.00012345", "0.000123"),
            ("-1000000.25", "-1000000"),
            ("0", "0"),
        ] {
            assert_eq!(Decimal::from_str_exact(value).map(show).as_deref(), Ok(shown));
        }
        let observed = Decimal::from_str_exact("26999.6").ok();
        let status = judge(
            &gate(GateOperator::AtLeast, "27000", 0, Scaling::None),
            observed,
            Share::UNSCALED,
        )
        .status;
        assert_eq!(
            (status.observed.as_deref(), status.effective.as_str()),
            (Some("26999.6"), "27000")
        );
    }
}
