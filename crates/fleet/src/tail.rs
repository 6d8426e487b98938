//! Tails of Student's, the normal and the binomial distribution.

use statrs::distribution::{Continuous as _, ContinuousCDF as _, Normal, StudentsT};
use statrs::function::beta::beta_reg;
use statrs::function::gamma::ln_gamma;

/// Probability that Student's t with `degrees` of freedom (> 0, may be fractional) exceeds `t`.
pub fn student(t: f64, degrees: f64) -> f64 {
    let half = 0.5 * beta_reg(degrees / 2.0, 0.5, degrees / (degrees + t * t));
    if t >= 0.0 { half } else { 1.0 - half }
}

/// Value that Student's t exceeds with probability `tail` (0 to 0.5).
pub fn student_beyond(tail: f64, degrees: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees).map_or(f64::INFINITY, |student| -student.inverse_cdf(tail))
}

/// Density of the standard normal distribution.
pub fn normal_density(z: f64) -> f64 {
    Normal::standard().pdf(z)
}

/// Value that a standard normal variable exceeds with probability `tail` (0 to 0.5).
pub fn normal_beyond(tail: f64) -> f64 {
    -Normal::standard().inverse_cdf(tail)
}

/// Part of the logarithm of Student's density that does not depend on the value.
pub(crate) fn student_constant(degrees: f64) -> f64 {
    ln_gamma(0.5 * (degrees + 1.0)) - ln_gamma(degrees / 2.0) - 0.5 * (degrees * std::f64::consts::PI).ln()
}

/// Probability of `hits` or more of `of` independent cases with probability `rate` each.
pub fn binomial(hits: usize, of: usize, rate: f64) -> f64 {
    use crate::numbers::count;
    match hits {
        0 => 1.0,
        _ if hits > of => 0.0,
        _ => beta_reg(count(hits), count(of - hits) + 1.0, rate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_match_published_tables() {
        for (t, degrees, expected) in [
            (12.706, 1.0, 0.025),
            (2.228, 10.0, 0.025),
            (4.541, 3.0, 0.01),
            (2.947, 15.0, 0.005),
            (1.960, 1e6, 0.025),
        ] {
            assert!(
                (student(t, degrees) - expected).abs() < 2e-5,
                "{t} {degrees}: {}",
                student(t, degrees)
            );
            assert!(
                (student_beyond(expected, degrees) - t).abs() < 2e-3,
                "{expected} {degrees}"
            );
            assert!((student(-t, degrees) - 1.0 + expected).abs() < 2e-5);
        }
        // Far out the probability keeps its digits: 4.3e-7 with 20 degrees.
        let far = student(7.0, 20.0);
        assert!((far / 4.3e-7 - 1.0).abs() < 0.1, "{far}");
        assert!((normal_beyond(0.001) - 3.0902).abs() < 1e-3);
    }

    #[test]
    fn binomial_tails_are_sums_of_their_terms() {
        // 1 - 0.9^10, and 0.1^2.
        assert!((binomial(1, 10, 0.1) - 0.651_321_6).abs() < 1e-6);
        assert!((binomial(2, 2, 0.1) - 0.01).abs() < 1e-9);
        assert!((binomial(0, 3, 0.1) - 1.0).abs() < 1e-12);
    }
}
