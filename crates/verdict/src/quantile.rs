//! Quantiles of the distributions that intervals are made of.

use statrs::distribution::{ContinuousCDF as _, Normal, StudentsT};

use crate::stats::count;

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
    StudentsT::new(0.0, 1.0, count(degrees.max(1))).map_or(f64::INFINITY, |student| -student.inverse_cdf(tail))
}

/// Quantile of the normal distribution that a value exceeds with a probability of `tail`.
pub(crate) fn normal_beyond(tail: f64) -> f64 {
    -Normal::standard().inverse_cdf(tail)
}
