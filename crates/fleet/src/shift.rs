//! Change that all nodes of a stratum share: it is the environment's.

use crate::centre::{median, trimmed_deviation};
use crate::numbers::{count, loss};
use crate::prior::DEGREES;
use crate::tail::student;

/// Change of a stratum (percent) below which it is not reported.
const ENVIRONMENT: f64 = 2.0;
/// Fewest nodes with a past that show a common shift: of two, either may be the faulty one.
const NODES: usize = 3;
/// Probability of a chance finding beyond which a shift is not attributed to the environment.
const CHANCE: f64 = 0.01;
/// Standard deviation of a median beside that of a mean.
const MEDIAN: f64 = 1.253;

/// Common shift of a stratum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CommonShift {
    /// Change (logarithm) against the nodes' own pasts; below 0 is slower.
    pub value: f64,
    /// Number of nodes that show it.
    pub nodes: usize,
    /// True if it is more than 2 %, and not by chance.
    pub is_environment: bool,
}

/// Median of the nodes' differences from their own pasts (logarithms): half of the nodes have to move. `deviation` is the
/// prior's standard deviation of one difference.
pub(crate) fn common_shift(residuals: &[f64], deviation: f64) -> CommonShift {
    shift(residuals, |value| {
        let centred: Vec<f64> = residuals.iter().map(|residual| residual - value).collect();
        MEDIAN * shrunk(&centred, deviation) / count(residuals.len()).sqrt()
    })
}

/// Common shift against a centre whose own variance is `centre` (squared logarithm). `residuals` are the nodes' differences from
/// it (logarithms), `deviation` is the standard deviation of a healthy one.
pub(crate) fn shift_against(residuals: &[f64], deviation: f64, centre: f64) -> CommonShift {
    shift(residuals, |_| {
        ((MEDIAN * deviation).powi(2) / count(residuals.len()) + centre).sqrt()
    })
}

/// Median of residuals as a shift. `error` returns the standard error of a median.
fn shift(residuals: &[f64], error: impl FnOnce(f64) -> f64) -> CommonShift {
    let Some(value) = median(residuals).filter(|_| residuals.len() >= NODES) else {
        return CommonShift::default();
    };
    let by_chance = student((value.abs() - loss(ENVIRONMENT)) / error(value), DEGREES);
    CommonShift {
        value,
        nodes: residuals.len(),
        is_environment: by_chance < CHANCE,
    }
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
        let found = common_shift(&all, 0.02);
        assert!(found.is_environment && (found.value + 0.048).abs() < 1e-9, "{found:?}");
        assert!(!common_shift(&[0.0, 0.001, -0.11], 0.02).is_environment);
        assert_eq!(common_shift(&[-0.2, -0.2], 0.02), CommonShift::default());
    }
}
