//! Check that p-values keep their promise on nodes that are taken for healthy.

use crate::numbers::count;
use crate::tail::binomial;

/// p-values below which the share of healthy comparisons is checked.
const LEVELS: [f64; 2] = [0.05, 0.01];
/// Tolerated share beside the promised one. Slow nodes that were not found yet are among these comparisons too.
const TOLERATED: f64 = 2.0;
/// Probability below which a share is not chance.
const CHANCE: f64 = 1e-4;

/// Result of the check.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calibration {
    /// Number of p-values.
    pub values: usize,
    /// Largest share beside the promised one: 1 is as promised, less is cautious.
    pub ratio: f64,
    /// True if more than twice as many are small as promised, and not by chance (reason `CalibrationPoor`). The level that
    /// acts on nodes is then off.
    pub is_poor: bool,
}

impl Calibration {
    /// Check p-values of healthy comparisons, which are uniform if the spread and the tail are right.
    pub fn check(p: &[f64]) -> Self {
        let mut found = Self {
            values: p.len(),
            ..Self::default()
        };
        for level in LEVELS {
            let below = p.iter().filter(|p| **p < level).count();
            found.ratio = found.ratio.max(count(below) / (level * count(p.len().max(1))));
            found.is_poor |= binomial(below, p.len(), TOLERATED * level) < CHANCE;
        }
        found
    }

    /// The worse one of two: a poor one, or the one with the larger ratio. A few values may have any ratio.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        let is_better = (self.is_poor, self.ratio) < (other.is_poor, other.ratio);
        let worst = if is_better { other } else { self };
        Self {
            values: self.values + other.values,
            ..worst
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_values_are_good_and_crowded_ones_poor() {
        let uniform: Vec<f64> = (0..1000).map(|at| (f64::from(at) + 0.5) / 1000.0).collect();
        assert!(!Calibration::check(&uniform).is_poor);
        let crowded: Vec<f64> = uniform.iter().map(|p| p.powi(2)).collect();
        let found = Calibration::check(&crowded);
        assert!(found.is_poor && found.ratio > 9.0, "{found:?}");
        // Three of ten are chance.
        assert!(!Calibration::check(&[0.04, 0.04, 0.04, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]).is_poor);
        assert!(!Calibration::check(&[]).is_poor);
    }
}
