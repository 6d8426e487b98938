//! Quantiles of the distributions that intervals are made of.

use statrs::distribution::{ContinuousCDF as _, Normal, StudentsT};

/// Quantile of Student's distribution that a value exceeds in 2.5 of 100 cases. Above 30 degrees it is 2.0, within 2 %.
pub(crate) fn student(degrees: usize) -> f64 {
    if degrees > 30 {
        2.0
    } else {
        student_beyond(0.025, degrees)
    }
}

/// Quantile of Student's distribution that a value exceeds with a probability of `tail`.
pub(crate) fn student_beyond(tail: f64, degrees: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a count of samples")]
    let degrees = degrees.max(1) as f64;
    StudentsT::new(0.0, 1.0, degrees).map_or(f64::INFINITY, |student| -student.inverse_cdf(tail))
}

/// Quantile of the normal distribution that a value exceeds with a probability of `tail`.
pub(crate) fn normal_beyond(tail: f64) -> f64 {
    -Normal::standard().inverse_cdf(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (tail, degrees, expected) in [
            (0.025, 1, 12.706),
            (0.025, 2, 4.303),
            (0.025, 3, 3.182),
            (0.025, 10, 2.228),
            (0.025, 29, 2.045),
            (0.0125, 2, 6.205),
            (0.0125, 4, 3.495),
            (0.0125, 5, 3.163),
        ] {
            let found = student_beyond(tail, degrees);
            assert!((found - expected).abs() < 0.001, "{tail} {degrees}: {found}");
        }
        assert!((student(31) - 2.0).abs() < 1e-9);
        for (tail, expected) in [(0.025, 1.95996), (0.01, 2.32635), (0.00125, 3.02334), (0.0001, 3.71902)] {
            let found = normal_beyond(tail);
            assert!((found - expected).abs() < 0.001, "{tail}: {found}");
        }
    }
}
