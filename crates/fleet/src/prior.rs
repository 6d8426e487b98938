//! Spread of healthy nodes that is assumed until a stratum shows its own.

use serde::{Deserialize, Serialize};

/// Degrees of freedom that a prior counts as: 12 make three nodes enough for 65 % power at -10 %, where their own spread
/// alone gives 3 %.
pub const DEGREES: f64 = 12.0;

/// Standard deviations of logarithms: the parts that make up the variance of one measurement.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
pub struct PriorSpread {
    /// Common to the GPUs of a node, from trial to trial of one deployment.
    pub trial: f64,
    /// Common to the GPUs of a node, from one deployment to the next.
    pub pass: f64,
    /// One GPU beside its peers, from trial to trial.
    pub noise: f64,
    /// Healthy GPUs of a node.
    pub gpu: f64,
    /// Healthy nodes of a stratum.
    pub node: f64,
}

/// Spread of a GPU product, by its name as in the label `nvidia.com/gpu.product`.
pub fn prior(product: &str) -> PriorSpread {
    let mut words = product.split(|character: char| !character.is_ascii_alphanumeric());
    if words.any(|word| ["H200", "H100"].contains(&word)) {
        // 31 recorded trials on pairs of H200s in 4 deployments vary by 2.5 % in common and 1.6 % per GPU, with changes of the test
        // set-up, which is why less is assumed. Three deployments of one H100 differ by 1.3 %. Healthy nodes: assumed. A stratum
        // that varies more widens its own scale.
        PriorSpread {
            trial: 0.015,
            pass: 0.010,
            noise: 0.014,
            gpu: 0.010,
            node: 0.010,
        }
    } else {
        // Assumed from H100 and H200, a third wider, so that it blames later.
        PriorSpread {
            trial: 0.020,
            pass: 0.014,
            noise: 0.015,
            gpu: 0.015,
            node: 0.015,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_products_have_a_wider_spread() {
        assert_eq!(prior("NVIDIA-H100-80GB-HBM3"), prior("NVIDIA H200"));
        for other in ["AMD-MI300X", "NVIDIA GH200 480GB"] {
            assert!(prior(other).gpu > prior("NVIDIA H200").gpu, "{other}");
        }
    }
}
