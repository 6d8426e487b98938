//! Spread and tails of a stratum as they are, beside the prior's.

use crate::centre::trimmed_deviation;
use crate::numbers::count;
use crate::prior::DEGREES;
use crate::tail::{normal_beyond, student_beyond, student_constant};

/// Fewest deviations that show a spread although some of them are of slow nodes.
const MANY: usize = 8;
/// Part of the deviations that a trimmed spread of them is worth.
const WORTH: f64 = 0.7;
/// Degrees of freedom of tails, tried from heavy to normal.
const TAILS: [f64; 11] = [3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 16.0, 24.0, 40.0, 100.0];
/// Degrees that are assumed first.
const TAIL: f64 = 12.0;
/// Standard deviation of that guess (logarithm).
const GUESS: f64 = 1.2;
/// Fewest values that show a light tail.
const SHOWN: usize = 50;
/// Degrees from which on the tail is that of a normal distribution for practical purposes.
const NORMAL: f64 = 16.0;

/// Distribution of the deviations of healthy subjects, beside the variance that the prior gives them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Factor on the prior's variance.
    pub variance: f64,
    /// Degrees of freedom of Student's t that fits the tail.
    pub degrees: f64,
}

/// Squares of few deviations in standard deviations of the prior.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Squares {
    /// Their sum.
    pub sum: f64,
    /// Degrees of freedom of it.
    pub degrees: f64,
}

impl Squares {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            sum: self.sum + other.sum,
            degrees: self.degrees + other.degrees,
        }
    }

    /// The same for deviations that noise is only a part of: it may be larger than the prior's, and not smaller. It counts as the prior
    /// at most.
    #[must_use]
    pub fn widening(self) -> Self {
        if self.degrees <= 0.0 {
            return self;
        }
        let degrees = self.degrees.min(DEGREES);
        Self {
            sum: degrees * (self.sum / self.degrees).max(1.0),
            degrees,
        }
    }

    /// Scale of deviations that are so few that the tail stays a guess.
    pub fn scale(self) -> Scale {
        Scale {
            variance: (DEGREES + self.sum) / (DEGREES + self.degrees),
            ..Scale::default()
        }
    }
}

impl Default for Scale {
    fn default() -> Self {
        Self {
            variance: 1.0,
            degrees: TAIL,
        }
    }
}

impl Scale {
    /// Fit to deviations in standard deviations of the prior, most of them of healthy subjects. The spread is trimmed and
    /// shrunk to the prior's. The tail is that of the *faster* half, where no fault is.
    pub fn fit(deviations: &[f64]) -> Self {
        Self::default().refit(deviations)
    }

    /// Fit to deviations whose tail is guessed to be as heavy as this one's.
    #[must_use]
    pub fn refit(self, deviations: &[f64]) -> Self {
        let Some(own) = trimmed_deviation(deviations).filter(|_| deviations.len() >= MANY) else {
            return Self::default();
        };
        let variance = shrink(own * own, WORTH * count(deviations.len()));
        Self {
            variance,
            degrees: tail_degrees(deviations, variance.sqrt(), self.degrees),
        }
    }

    /// True if outliers are to be expected.
    pub fn is_heavy(self) -> bool {
        self.degrees < NORMAL
    }

    /// Scale of a median of three or more trials, where two have to be outliers.
    #[must_use]
    pub fn halve_outliers(self) -> Self {
        Self {
            degrees: 2.0 * self.degrees,
            ..self
        }
    }

    /// True if these deviations are too few for [`Scale::fit`].
    pub fn is_few(deviations: usize) -> bool {
        deviations < MANY
    }
}

fn shrink(variance: f64, degrees: f64) -> f64 {
    (DEGREES + degrees * variance) / (DEGREES + degrees)
}

/// Likeliest degrees of Student's t for the deviations above 0, beside the guess.
fn tail_degrees(deviations: &[f64], deviation: f64, guess: f64) -> f64 {
    let faster: Vec<f64> = deviations.iter().copied().filter(|z| *z > 0.0).collect();
    let likelihood = |degrees: f64| {
        // Student's t is as wide as the fitted spread between its fifths.
        let width = student_beyond(0.2, degrees) / normal_beyond(0.2);
        let constant = student_constant(degrees) + width.ln();
        let factor = (width / deviation).powi(2) / degrees;
        let sum: f64 = faster.iter().map(|z| (z * z * factor).ln_1p()).sum();
        let guess = ((degrees / guess).ln() / GUESS).powi(2) / 2.0;
        constant * count(faster.len()) - 0.5 * (degrees + 1.0) * sum - guess
    };
    let best = TAILS.into_iter().map(|degrees| (degrees, likelihood(degrees))).fold(
        (guess, f64::NEG_INFINITY),
        |best, next| if next.1 > best.1 { next } else { best },
    );
    // Few values cannot show that a tail is lighter than usual.
    if faster.len() < SHOWN {
        best.0.min(guess)
    } else {
        best.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::centre::tests::gauss;

    #[test]
    fn tails_are_recognised_and_slow_nodes_do_not_hide_them() {
        let mut random = fastrand::Rng::with_seed(2);
        let normal: Vec<f64> = (0..4000).map(|_| gauss(&mut random)).collect();
        let heavy: Vec<f64> = (0..4000)
            .map(|_| {
                let squares: f64 = (0..3).map(|_| gauss(&mut random).powi(2)).sum();
                gauss(&mut random) / (squares / 3.0).sqrt()
            })
            .collect();
        let mut faulty = normal.clone();
        faulty.iter_mut().take(200).for_each(|z| *z -= 8.0);
        assert!(Scale::fit(&normal).degrees >= 24.0, "{:?}", Scale::fit(&normal));
        assert!(Scale::fit(&faulty).degrees >= 16.0, "{:?}", Scale::fit(&faulty));
        assert!(Scale::fit(&heavy).degrees <= 5.0, "{:?}", Scale::fit(&heavy));
        assert!(
            (Scale::fit(&faulty).variance - 1.0).abs() < 0.3,
            "{:?}",
            Scale::fit(&faulty)
        );
    }

    #[test]
    fn few_deviations_hardly_move_the_prior() {
        assert_eq!(Scale::fit(&[9.0, -9.0]), Scale::default());
        // 12 degrees of the prior and two of the others.
        let found = Squares { sum: 8.0, degrees: 2.0 }.scale();
        assert!((found.variance - 20.0 / 14.0).abs() < 1e-9, "{found:?}");
    }
}
