//! Many nodes at once: the rate of false discoveries.

use crate::numbers::count;

/// Adjusted p-values by Benjamini and Hochberg, in the order of `p`: naming all that are at most 5 % makes at most 5 % of
/// the names wrong on average. Tests may depend on each other
/// positively, as through a common centre.
pub fn adjust(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*b].total_cmp(&p[*a]).then(b.cmp(a)));
    let mut adjusted = vec![1.0; p.len()];
    let mut least = 1.0_f64;
    for (above, at) in order.into_iter().enumerate() {
        let rank = count(p.len() - above);
        least = least.min(p[at] * count(p.len()) / rank);
        adjusted[at] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjusted_values_match_the_paper() {
        let found = adjust(&[0.01, 1.0, 0.02, 0.04]);
        for (found, expected) in found.iter().zip([0.04, 1.0, 0.04, 0.04 * 4.0 / 3.0]) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        assert!(adjust(&[]).is_empty());
    }
}
