//! Robust centre and spread of values that are mostly healthy.

use crate::numbers::count;
use crate::tail::{normal_beyond, normal_density};

/// Part that is cut off each end for a spread.
const TRIM: f64 = 0.1;
/// Halvings of the range in which the centre lies: below 2^-50 of the range it is exact for all purposes.
const HALVINGS: usize = 50;

/// Hodges–Lehmann centre: median of the averages of all pairs, each value with itself included. 29 % of the values may be
/// wrong, and it has 96 % of the mean's efficiency. `None` without values. All pairs are counted for a guess in one sweep
/// over the sorted values, so 5,000 values take 50 sweeps and not 12.5 million averages.
pub fn hodges_lehmann(values: &[f64]) -> Option<f64> {
    let sorted = sort(values);
    let (first, last) = (*sorted.first()?, *sorted.last()?);
    let pairs = sorted.len() * (sorted.len() + 1) / 2;
    let lower = select_pair(&sorted, first, last, pairs.div_ceil(2));
    let upper = if pairs % 2 == 1 {
        lower
    } else {
        select_pair(&sorted, first, last, pairs / 2 + 1)
    };
    Some(f64::midpoint(lower, upper))
}

/// Average with the given rank (from 1) among those of all pairs.
fn select_pair(sorted: &[f64], mut low: f64, mut high: f64, rank: usize) -> f64 {
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if count_pairs(sorted, middle) >= rank {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// Number of pairs (i <= j) whose average is at most `limit`.
fn count_pairs(sorted: &[f64], limit: f64) -> usize {
    let mut pairs = 0;
    let mut end = sorted.len();
    for (at, value) in sorted.iter().enumerate() {
        while end > at && f64::midpoint(*value, sorted[end - 1]) > limit {
            end -= 1;
        }
        if end <= at {
            break;
        }
        pairs += end - at;
    }
    pairs
}

/// Median: half of the values may be wrong. `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sort(values);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// Mean without the lowest and the highest sixth, at least one each from four values on. `None` without values.
pub fn trimmed_mean(values: &[f64]) -> Option<f64> {
    let sorted = sort(values);
    let cut = if sorted.len() >= 4 {
        (sorted.len() / 6).max(1)
    } else {
        0
    };
    mean(&sorted[cut..sorted.len() - cut])
}

/// Plain mean. `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / count(values.len()))
}

/// Standard deviation without the lowest and the highest tenth (at least one each from six values on), times the factor
/// that makes it that of a normal distribution. `None` below two values.
pub fn trimmed_deviation(values: &[f64]) -> Option<f64> {
    let sorted = sort(values);
    let length = sorted.len();
    let cut = if length >= 6 { tenth(length).max(1) } else { 0 };
    let kept = &sorted[cut..length - cut];
    let centre = mean(kept)?;
    let squares: f64 = kept.iter().map(|value| (value - centre).powi(2)).sum();
    // Few values: 6,000 draws of 6 to 80 normal values each give the right variance within 2 % so.
    let degrees = match cut {
        0 => count(length) - 1.0,
        _ => count(kept.len()) * (1.0 + 0.8 / count(length)),
    };
    (length >= 2).then(|| (squares / degrees / truncated_variance(cut, length)).sqrt())
}

fn tenth(length: usize) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a tenth of a count"
    )]
    let part = (TRIM * count(length)) as usize;
    part
}

/// Variance of a standard normal variable from which `cut` of `length` are cut off each end.
fn truncated_variance(cut: usize, length: usize) -> f64 {
    if cut == 0 {
        return 1.0;
    }
    let part = count(cut) / count(length);
    let limit = normal_beyond(part);
    1.0 - 2.0 * limit * normal_density(limit) / (1.0 - 2.0 * part)
}

fn sort(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn near(found: Option<f64>, expected: f64) {
        let found = found.expect("a value");
        assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
    }

    #[test]
    fn the_centre_is_the_median_of_all_averages_of_pairs() {
        let mut random = fastrand::Rng::with_seed(3);
        assert_eq!(hodges_lehmann(&[]), None);
        near(hodges_lehmann(&[4.0]), 4.0);
        near(hodges_lehmann(&[0.0, 0.0, -10.0]), -2.5);
        for length in 2..40 {
            let values: Vec<f64> = (0..length).map(|_| random.f64()).collect();
            let mut averages = Vec::new();
            for (at, value) in values.iter().enumerate() {
                averages.extend(values[at..].iter().map(|other| f64::midpoint(*value, *other)));
            }
            near(hodges_lehmann(&values), median(&averages).expect("a median"));
        }
    }

    #[test]
    fn a_slow_member_hardly_moves_a_trimmed_mean() {
        near(trimmed_mean(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -9.0]), 1.0);
        near(trimmed_mean(&[1.0, 2.0]), 1.5);
        assert_eq!(trimmed_mean(&[]), None);
    }

    #[test]
    fn the_trimmed_deviation_matches_a_normal_distribution() {
        let mut random = fastrand::Rng::with_seed(5);
        for length in [3_usize, 6, 8, 20, 200] {
            let rounds = 4000 / length.max(8);
            let squares: Vec<f64> = (0..rounds * 4)
                .map(|_| {
                    let values: Vec<f64> = (0..length).map(|_| gauss(&mut random)).collect();
                    trimmed_deviation(&values).expect("a spread").powi(2)
                })
                .collect();
            let found = mean(&squares).expect("a mean");
            assert!((found - 1.0).abs() < 0.12, "{length} values: {found}");
        }
    }

    #[test]
    fn two_of_twenty_wrong_values_hardly_widen_the_spread() {
        let mut values: Vec<f64> = (-9..9).map(f64::from).collect();
        let healthy = trimmed_deviation(&values).expect("a spread");
        values.extend([-500.0, -500.0]);
        let found = trimmed_deviation(&values).expect("a spread");
        assert!(found < 1.4 * healthy, "{found} {healthy}");
    }

    pub(crate) fn gauss(random: &mut fastrand::Rng) -> f64 {
        (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (std::f64::consts::TAU * random.f64()).cos()
    }
}
