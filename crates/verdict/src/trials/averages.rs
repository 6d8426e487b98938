//! Near a gate on an average, passes and misses say little: a deployment 1 % below it passes every third trial. Here the
//! distances themselves are weighed, by Wald's test between a mean just above the gate and one just below.

use perfval_api::{Gate, GateMode, GateOperator, GateStatus, Metric, Statistic, TrialRule, TrialsSpec};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use super::wald::{DEGRADED_PASS_RATE, HEALTHY_PASS_RATE, Ruling, healthy_above};
use crate::gate::Judged;

/// Half the width of the range around a gate in which neither answer is wrong (percent): the test is between a mean this
/// much above and a mean this much below.
pub const INDIFFERENT: f64 = 2.0;
/// Usual standard deviation between trials of one deployment (percent): 2.1 and 2.6 on two H200. A few trials that are more
/// alike are so by chance.
pub const USUAL: f64 = 2.5;
/// Trials that follow each other are alike: with correlation 0.4 from one to the next, the variance of a mean is
/// (1 + 0.4) / (1 - 0.4) times that of independent ones.
pub const ALIKE: f64 = 1.4 / 0.6;
/// Distance (percent) beyond which an average is not near: further above counts as this much, further below is a stall or
/// a fault and no noise of an average, and is a plain miss.
pub const NEAR: f64 = 10.0;
/// This many standard deviations below a gate 96.4 % of the trials miss it: passes and misses then fail a deployment with 95 %,
/// also with trials that are alike.
const MOST_MISS: f64 = 1.8;
/// 95 % of a normal distribution lie below its mean plus this many standard deviations.
const NINETY_FIVE: f64 = 1.645;

/// Distance of the worst enforced average from its gate (percent), if no other gate makes the trial a miss.
pub(crate) fn margin(gates: &[Gate], judged: &[Judged]) -> Option<Decimal> {
    let enforced = || {
        gates
            .iter()
            .zip(judged)
            .filter(|(gate, _)| gate.mode == GateMode::Enforce)
    };
    let missed_elsewhere = enforced().any(|(gate, judged)| !is_average(gate) && judged.counts_as_miss);
    let averages = enforced().filter(|(gate, _)| is_average(gate) && !missed_elsewhere);
    averages.filter_map(|(_, judged)| judged.margin).min()
}

/// Whether noise moves it a little in every trial, rather than much in some.
fn is_average(gate: &Gate) -> bool {
    use Metric::{
        InterTokenLatency, OutputTokenThroughput, OutputTokenThroughputPerUser, RequestLatency, RequestThroughput,
        TimeToFirstToken, TimeToSecondToken,
    };
    let of_the_trial = [OutputTokenThroughput, OutputTokenThroughputPerUser, RequestThroughput];
    let of_requests = [TimeToFirstToken, TimeToSecondToken, InterTokenLatency, RequestLatency];
    of_the_trial.contains(&gate.metric) || (gate.statistic == Statistic::Avg && of_requests.contains(&gate.metric))
}

/// What these distances (percent) say of the mean.
pub(super) fn weigh(margins: &[f64], error_percent: i32) -> Ruling {
    let evidence = evidence(margins);
    let enough = healthy_above(error_percent);
    // Stalls that end near the gate look like a low mean: it takes as many trials as straight misses would.
    let by_misses = number(margins.len()) * ((1.0 - DEGRADED_PASS_RATE) / (1.0 - HEALTHY_PASS_RATE)).ln();
    if evidence >= enough {
        Ruling::Pass
    } else if evidence <= -enough && by_misses >= enough {
        Ruling::Fail
    } else {
        Ruling::Continue
    }
}

/// The logarithm of how much likelier these distances are around +INDIFFERENT than around -INDIFFERENT.
pub(super) fn evidence(margins: &[f64]) -> f64 {
    let capped: Vec<f64> = margins.iter().map(|margin| margin.min(NEAR)).collect();
    2.0 * INDIFFERENT * capped.iter().sum::<f64>() / variance(&capped)
}

/// Variance of one trial: its own, or the usual one if that is larger, for trials that are alike.
fn variance(margins: &[f64]) -> f64 {
    let mean = mean(margins);
    let squares: f64 = margins.iter().map(|margin| (margin - mean).powi(2)).sum();
    let others = number(margins.len().saturating_sub(1)).max(1.0);
    ALIKE * (squares / others).max(USUAL * USUAL)
}

/// Loss against what these trials measured (percent) that the rule fails with a probability of 95 %, given how much they
/// vary; `gates` are those of the last of them, and say which side of the worst average is good.
pub(super) fn detectable_loss(
    rule: &TrialsSpec,
    gates: &[Gate],
    judged: &[GateStatus],
    margins: &[f64],
) -> Option<f64> {
    if margins.is_empty() {
        return None;
    }
    let mean = mean(margins);
    // Around the gate the same noise is the same part of what is measured there.
    let relative: Vec<f64> = margins
        .iter()
        .map(|margin| 100.0 * (margin - mean) / (100.0 + mean))
        .collect();
    let below = fails_below(rule, variance(&relative)) / 100.0;
    let measured = mean / 100.0;
    let loss = match worst(gates, judged)?.operator {
        GateOperator::AtLeast => 1.0 - (1.0 - below) / (1.0 + measured),
        GateOperator::AtMost => (1.0 + below) / (1.0 - measured) - 1.0,
    };
    (loss > 0.0).then_some(100.0 * loss)
}

/// How far below a gate (percent) the mean must be to be failed with a probability of 95 %, for trials of this standard
/// deviation (percent).
pub fn surely_fails_below(rule: &TrialsSpec, spread: f64) -> f64 {
    fails_below(rule, ALIKE * spread.max(USUAL).powi(2))
}

fn fails_below(rule: &TrialsSpec, variance: f64) -> f64 {
    match rule.rule {
        TrialRule::Sequential => {
            let trials = f64::from(rule.max.max(1));
            let boundary = variance * healthy_above(rule.error_percent) / (2.0 * INDIFFERENT * trials);
            let by_distances = boundary + NINETY_FIVE * (variance / trials).sqrt();
            by_distances.min(MOST_MISS * (variance / ALIKE).sqrt())
        }
        // One trial below the gate fails.
        TrialRule::Single | TrialRule::All => NINETY_FIVE * (variance / ALIKE).sqrt(),
    }
}

/// The gate on an average that is nearest to being missed, or missed by most.
pub(crate) fn worst<'a>(gates: &'a [Gate], judged: &[GateStatus]) -> Option<&'a Gate> {
    let margin = |gate: &&Gate| {
        let status = judged.iter().find(|judged| judged.name == gate.name)?;
        status.margin_percent.as_ref()?.parse::<Decimal>().ok()
    };
    let averages = gates
        .iter()
        .filter(|gate| gate.mode == GateMode::Enforce && is_average(gate));
    averages.filter(|gate| margin(gate).is_some()).min_by_key(margin)
}

/// A recorded distance; what cannot be read is none.
pub(super) fn read(margin: &str) -> Option<f64> {
    margin.parse::<Decimal>().ok()?.to_f64()
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / number(values.len())
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn distances_are_weighed_by_how_much_they_vary() {
        for (margins, ruling) in [
            (&[10.0][..], Ruling::Continue),
            (&[10.0, 10.0], Ruling::Pass),
            // More than clearly above says no more than that.
            (&[40.0, -5.0], Ruling::Continue),
            (&[3.0, 3.0, 3.0], Ruling::Continue),
            (&[3.0, 3.0, 3.0, 3.0], Ruling::Pass),
            (&[9.0, -3.0, 9.0, -3.0], Ruling::Continue),
            (&[-9.0, -9.0, -9.0], Ruling::Continue),
            (&[-3.0, -3.0, -3.0, -3.0], Ruling::Fail),
            (&[0.5, -0.5, 0.5, -0.5, 0.5, -0.5, 0.5, -0.5], Ruling::Continue),
        ] {
            assert_eq!(weigh(margins, 5), ruling, "{margins:?}");
        }
    }

    #[test]
    fn a_loss_that_a_run_would_have_failed_follows_from_its_gate_and_its_noise() {
        let gates = |metric: &str, operator: &str| -> Vec<Gate> {
            let gate = json!({"name": "g", "metric": metric, "operator": operator, "threshold": "100"});
            serde_json::from_value(json!([gate])).unwrap()
        };
        let judged = |margin: &str| -> Vec<GateStatus> {
            let judged =
                json!({"name": "g", "threshold": "100", "effective": "100", "result": "Met", "marginPercent": margin});
            serde_json::from_value(json!([judged])).unwrap()
        };
        let loss = |rule: TrialRule, gates: &[Gate], margins: &[f64]| {
            let spec = TrialsSpec {
                rule,
                ..TrialsSpec::default()
            };
            let loss = detectable_loss(&spec, gates, &judged("1"), margins);
            loss.map(|loss| (loss * 10.0).round() / 10.0)
        };
        let throughput = gates("OutputTokenThroughput", ">=");
        // A gate at 75 % of what was measured, and one at 95 %.
        assert_eq!(loss(TrialRule::Sequential, &throughput, &[33.3, 33.3]), Some(27.7));
        assert_eq!(loss(TrialRule::Sequential, &throughput, &[5.3, 5.2]), Some(8.4));
        assert_eq!(loss(TrialRule::Single, &throughput, &[33.3]), Some(28.1));
        // Noisy trials see less.
        assert!(loss(TrialRule::Sequential, &throughput, &[25.0, 45.0, 25.0, 38.0]) > Some(29.0));
        let latency = gates("RequestLatency", "<=");
        assert_eq!(loss(TrialRule::Sequential, &latency, &[20.0, 20.0]), Some(29.5));
        assert_eq!(
            loss(TrialRule::Sequential, &throughput, &[-20.0]),
            None,
            "it fails as it is"
        );
        let percentile: Vec<Gate> = {
            let mut gates = latency.clone();
            gates[0].statistic = Statistic::P99;
            gates
        };
        assert_eq!(loss(TrialRule::Sequential, &percentile, &[20.0]), None);
    }
}
