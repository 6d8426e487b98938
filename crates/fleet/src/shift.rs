//! Changes that many nodes share: of a whole stratum, which is its environment's, and of a group, such as a rack.

use std::collections::BTreeMap;

use crate::centre::{median, trimmed_deviation};
use crate::discovery::adjust;
use crate::metric::{FleetMetric, count, loss, percent};
use crate::prior::DEGREES;
use crate::tail::student;

/// Change of a stratum (percent) below which it is not reported.
const ENVIRONMENT: f64 = 2.0;
/// Effect of a group (percent) below which it is not named.
const GROUP: f64 = 2.0;
/// Fewest nodes with a past that show a common shift: of two, either may be the faulty one.
const NODES: usize = 3;
/// Probability of a chance finding beyond which a shift is not attributed to the environment.
const CHANCE: f64 = 0.01;
/// Rate of false discoveries among groups.
const RATE: f64 = 0.05;
/// Standard deviation of a median beside that of a mean.
const MEDIAN: f64 = 1.253;

/// Common shift of a stratum in one metric.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CommonShift {
    /// Change (logarithm) against the nodes' own pasts; below 0 is slower.
    pub value: f64,
    /// Number of nodes that show it.
    pub nodes: usize,
    /// True if it moved by more than 2 % since the known one, and not by chance.
    pub is_environment: bool,
}

/// Median of the nodes' differences from their own pasts (logarithms): half of the nodes have to move. `deviation` is the
/// prior's standard deviation of one difference, `known` the shift that was accepted before (0 at first).
pub fn common_shift(residuals: &[f64], deviation: f64, known: f64) -> CommonShift {
    let Some(value) = median(residuals).filter(|_| residuals.len() >= NODES) else {
        return CommonShift {
            value: known,
            ..CommonShift::default()
        };
    };
    let centred: Vec<f64> = residuals.iter().map(|residual| residual - value).collect();
    let error = MEDIAN * shrunk(&centred, deviation) / count(residuals.len()).sqrt();
    let moved = (value - known).abs();
    let by_chance = student((moved - loss(ENVIRONMENT)) / error, DEGREES);
    CommonShift {
        value,
        nodes: residuals.len(),
        is_environment: by_chance < CHANCE,
    }
}

/// Common shift against a centre whose own variance is `centre` (squared logarithm). `residuals` are the nodes' differences from
/// it (logarithms), `deviation` is the standard deviation of a healthy one.
pub(crate) fn shift_against(residuals: &[f64], deviation: f64, centre: f64) -> CommonShift {
    let Some(value) = median(residuals).filter(|_| residuals.len() >= NODES) else {
        return CommonShift::default();
    };
    let error = (MEDIAN * deviation).powi(2) / count(residuals.len()) + centre;
    CommonShift {
        value,
        nodes: residuals.len(),
        is_environment: student((value.abs() - loss(ENVIRONMENT)) / error.sqrt(), DEGREES) < CHANCE,
    }
}

/// Group of nodes that is slower as a whole: the cause is likely shared.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupEffect {
    /// Value of the label.
    pub group: String,
    /// Metric in which it is slowest.
    pub metric: FleetMetric,
    /// Median change of its nodes against the other groups (percent).
    pub percent: f64,
    /// Number of its nodes.
    pub nodes: usize,
    /// p-value, adjusted for the number of groups.
    pub q: f64,
}

/// Groups of three nodes or more that are slower than the others by more than 2 %, at a rate of false discoveries of 5 %.
/// `nodes`: group and difference (logarithm) of each node from its past or its peers; `deviation`: the prior's standard
/// deviation of such a difference.
pub fn slow_groups(metric: FleetMetric, nodes: &[(Option<&str>, f64)], deviation: f64) -> Vec<GroupEffect> {
    let mut groups: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (group, value) in nodes {
        if let Some(group) = group {
            groups.entry(group).or_default().push(*value);
        }
    }
    if groups.len() < 2 {
        return Vec::new();
    }
    let medians: BTreeMap<&str, f64> = groups
        .iter()
        .filter_map(|(group, values)| Some((*group, median(values)?)))
        .collect();
    let within: Vec<f64> = groups
        .iter()
        .flat_map(|(group, values)| values.iter().map(|value| value - medians[group]))
        .collect();
    let spread = shrunk(&within, deviation);
    // Half of the groups are normal: a large slow one does not move this centre.
    let centre = median(&medians.values().copied().collect::<Vec<f64>>()).unwrap_or_default();
    let tested: Vec<(&str, f64, usize)> = groups
        .iter()
        .filter(|(_, values)| values.len() >= NODES)
        .map(|(group, values)| (*group, medians[group] - centre, values.len()))
        .collect();
    let p: Vec<f64> = tested
        .iter()
        .map(|(_, value, size)| {
            student(
                (-value - loss(GROUP)) / (MEDIAN * spread / count(*size).sqrt()),
                DEGREES,
            )
        })
        .collect();
    let found = tested.into_iter().zip(adjust(&p));
    found
        .filter(|(_, q)| *q <= RATE)
        .map(|((group, value, nodes), q)| GroupEffect {
            group: group.to_owned(),
            metric,
            percent: percent(value),
            nodes,
            q,
        })
        .collect()
}

/// Trimmed standard deviation, shrunk to the prior's.
fn shrunk(values: &[f64], deviation: f64) -> f64 {
    let own = trimmed_deviation(values).unwrap_or(deviation);
    let degrees = count(values.len().saturating_sub(1));
    ((DEGREES * deviation * deviation + degrees * own * own) / (DEGREES + degrees)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_of_all_nodes_is_the_environment_and_one_slow_node_is_not() {
        let all: Vec<f64> = (0..20).map(|at| -0.05 + 0.001 * f64::from(at % 5)).collect();
        let found = common_shift(&all, 0.02, 0.0);
        assert!(found.is_environment && (found.value + 0.048).abs() < 1e-9, "{found:?}");
        assert!(!common_shift(&all, 0.02, -0.05).is_environment);
        assert!(!common_shift(&[0.0, 0.001, -0.11], 0.02, 0.0).is_environment);
        let few = common_shift(&[-0.2, -0.2], 0.02, -0.01);
        assert!(!few.is_environment && (few.value + 0.01).abs() < 1e-9, "{few:?}");
    }

    #[test]
    fn a_slow_rack_is_found_and_a_rack_with_one_slow_node_is_not() {
        let racks = ["a", "b", "c", "d"];
        let node = |at: usize, effect: &dyn Fn(usize) -> f64| {
            let noise = 0.01 * (count(at * 7 % 11) / 5.0 - 1.0);
            (Some(racks[at % 4]), noise + effect(at))
        };
        let rack: Vec<_> = (0..32)
            .map(|at| node(at, &|at| if at % 4 == 2 { -0.08 } else { 0.0 }))
            .collect();
        let found = slow_groups(FleetMetric::DecodeSpeed, &rack, 0.02);
        assert_eq!(
            found.iter().map(|group| group.group.as_str()).collect::<Vec<_>>(),
            ["c"]
        );
        let lone: Vec<_> = (0..32)
            .map(|at| node(at, &|at| if at == 2 { -0.2 } else { 0.0 }))
            .collect();
        assert_eq!(slow_groups(FleetMetric::DecodeSpeed, &lone, 0.02), []);
    }
}
