//! First runs of a node's GPUs: one outlier among them would stay in their means.

use crate::centre::{mean, median, trimmed_mean};

/// Difference (logarithm) from the median of the first runs beyond which a run of a node does not count: a loss of 26 %.
const ANOTHER: f64 = 0.3;

/// Mean of the first runs of one GPU (logarithm), and the sum of the squared residuals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FirstMean {
    pub(crate) mean: f64,
    pub(crate) m2: f64,
}

/// First runs of all GPUs of a node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FirstMeans {
    pub(crate) gpus: Vec<FirstMean>,
    /// Sum of the squared residuals in the part that the GPUs share.
    pub(crate) shared_m2: f64,
}

/// Means of the same runs of all GPUs of a node. A run counts for all of them or for none, because they are compared with each other.
/// In the part that is a GPU's own, a value further than `most` from its median counts as the median. `None` if the numbers of runs
/// differ.
pub(crate) fn first_means(gpus: &[&[f64]], most: f64) -> Option<FirstMeans> {
    let runs = gpus.first()?.len();
    if gpus.iter().any(|gpu| gpu.len() != runs) {
        return None;
    }
    let node = |run: usize| trimmed_mean(&gpus.iter().map(|gpu| gpu[run]).collect::<Vec<f64>>());
    let node: Vec<f64> = (0..runs).map(node).collect::<Option<_>>()?;
    let centre = median(&node)?;
    let usual = (0..runs).filter(|run| (node[*run] - centre).abs() <= ANOTHER);
    let usual: Vec<usize> = usual.collect();
    let shared: Vec<f64> = usual.iter().map(|run| node[*run]).collect();
    let shared_mean = mean(&shared)?;
    let squares = |values: &[f64], middle: f64| values.iter().map(|value| (value - middle).powi(2)).sum::<f64>();
    let shared_m2 = squares(&shared, shared_mean);
    let gpu = |gpu: &&[f64]| {
        let own: Vec<f64> = usual.iter().map(|run| gpu[*run] - node[*run]).collect();
        let centre = median(&own)?;
        let near = own
            .iter()
            .map(|own| if (own - centre).abs() > most { centre } else { *own });
        let near: Vec<f64> = near.collect();
        let own_mean = mean(&near)?;
        // The residuals of several GPUs lack the part that they share.
        let m2 = if gpus.len() == 1 {
            shared_m2
        } else {
            squares(&near, own_mean)
        };
        Some(FirstMean {
            mean: shared_mean + own_mean,
            m2,
        })
    };
    let gpus = gpus.iter().map(gpu).collect::<Option<_>>()?;
    Some(FirstMeans { gpus, shared_m2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Means (percent of 100), rounded.
    fn means(gpus: &[&[f64]]) -> Vec<f64> {
        let gpus: Vec<Vec<f64>> = gpus
            .iter()
            .map(|gpu| gpu.iter().map(|speed| (speed / 100.0).ln()).collect())
            .collect();
        let gpus: Vec<&[f64]> = gpus.iter().map(Vec::as_slice).collect();
        let found = first_means(&gpus, 0.06).expect("the same number of runs");
        let gpus = found.gpus.iter();
        gpus.map(|found| (100.0 * found.mean.exp()).round()).collect()
    }

    #[test]
    fn an_outlier_of_one_gpu_counts_as_its_usual_speed() {
        assert_eq!(
            means(&[&[150.0, 100.0, 100.0], &[100.0; 3], &[100.0; 3], &[100.0; 3]]),
            [100.0; 4]
        );
        assert_eq!(
            means(&[&[90.0; 3], &[100.0; 3], &[100.0; 3]]),
            [90.0, 100.0, 100.0],
            "a slow chip is no outlier"
        );
    }

    #[test]
    fn an_outlier_of_all_gpus_does_not_count() {
        assert_eq!(means(&[&[200.0, 100.0, 100.0], &[220.0, 110.0, 110.0]]), [100.0, 110.0]);
        assert_eq!(means(&[&[200.0, 100.0, 100.0]]), [100.0]);
        assert_eq!(first_means(&[&[0.0], &[0.0, 0.0]], 0.06), None);
    }

    #[test]
    fn the_residuals_of_the_only_gpu_are_its_own() {
        let found = first_means(&[&[0.01, -0.01]], 0.06).expect("runs");
        assert!((found.gpus[0].m2 - 2e-4).abs() < 1e-12, "{found:?}");
        let found = first_means(&[&[0.01, -0.01], &[0.01, -0.01]], 0.06).expect("runs");
        assert!(
            found.gpus[0].m2.abs() < 1e-12 && (found.shared_m2 - 2e-4).abs() < 1e-12,
            "{found:?}"
        );
    }
}
