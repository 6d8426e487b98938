//! Correlation of a trial with the one before it: the trial rule reckons with a correlation of up to 0.4.

use std::fmt::Write as _;

/// Trials of one deployment in order, as logarithms of their throughput.
pub type Sequence = Vec<f64>;

/// Correlation of each trial with the next one, pooled over deployments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correlation {
    /// Deployments with three trials or more.
    pub deployments: usize,
    /// Their pairs of trials that follow each other.
    pub pairs: usize,
    /// The estimate; each deployment is compared with its own mean.
    pub found: f64,
    /// Estimate for independent trials: few trials lie on both sides of their own mean, so it is below zero.
    pub expected: f64,
    /// Standard error of the estimate for independent trials.
    pub error: f64,
    /// Standard deviation of a trial within its deployment (percent).
    pub spread: f64,
}

/// The correlation of these sequences; `None` if none is long enough or nothing varies.
pub fn lag_one(sequences: &[Sequence]) -> Option<Correlation> {
    let long = || sequences.iter().filter(|sequence| sequence.len() >= 3);
    let (mut together, mut squares, mut expected, mut freedom) = (0.0, 0.0, 0.0, 0.0);
    let mut pairs = 0;
    for sequence in long() {
        let count = number(sequence.len());
        let mean = sequence.iter().sum::<f64>() / count;
        together += sequence
            .windows(2)
            .map(|pair| (pair[0] - mean) * (pair[1] - mean))
            .sum::<f64>();
        squares += sequence.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        expected -= (count - 1.0) / count;
        freedom += count - 1.0;
        pairs += sequence.len() - 1;
    }
    (squares > 0.0).then(|| Correlation {
        deployments: long().count(),
        pairs,
        found: together / squares,
        expected: expected / freedom,
        error: 1.0 / number(pairs).sqrt(),
        spread: 100.0 * (squares / freedom).sqrt(),
    })
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// The part of the page.
pub(super) fn table(page: &mut String, groups: &[(&str, Vec<Sequence>)]) {
    page.push_str(
        "\n## How much a trial resembles the one before\n\n\
         The table shows the correlation of a trial's throughput (logarithm, against the mean of its deployment) with the next one's. With so few\n\
         trials the estimate is biased below zero.\n\n\
         | trials of | pairs | standard deviation | correlation | if independent |\n|---|---|---|---|---|\n",
    );
    for (name, sequences) in groups {
        let Some(found) = lag_one(sequences) else {
            let _ = writeln!(page, "| {name} | 0 | – | – | – |");
            continue;
        };
        let _ = writeln!(
            page,
            "| {} {name} | {} | {:.1} % | {:+.2} | {:+.2} ± {:.2} |",
            found.deployments, found.pairs, found.spread, found.found, found.expected, found.error
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_that_alternate_or_drift_are_seen() {
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
        let alternating = lag_one(&[vec![1.0, -1.0, 1.0, -1.0]]).unwrap();
        assert!(
            near(alternating.found, -0.75) && near(alternating.expected, -0.25),
            "{alternating:?}"
        );
        let drifting = lag_one(&[vec![-1.5, -0.5, 0.5, 1.5], vec![3.0]]).unwrap();
        assert!(
            near(drifting.found, 0.25) && drifting.deployments == 1 && drifting.pairs == 3,
            "{drifting:?}"
        );
        assert_eq!(lag_one(&[vec![1.0, 1.0, 1.0]]), None);
    }
}
