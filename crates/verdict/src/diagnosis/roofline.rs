//! Peak performance of a GPU as its maker publishes it: a reference that needs no second node.

use rust_decimal::Decimal;

use crate::gate::show;
use crate::stats::decimal_median;
use crate::workers::WorkerSummary;

/// NVIDIA's data sheets: H100 and H200 (2024), A100 (2021), L4 and L40S (2023), HGX B200 and GB200 (2024). Figures with
/// sparsity are halved. A product that is not here is not guessed. Each row: name as NVML reports it, dense bf16 arithmetic
/// (10¹² operations per second), memory bandwidth (GB/s).
const PEAKS: [(&str, i64, i64); 13] = [
    ("NVIDIA H100 80GB HBM3", 989, 3350),
    ("NVIDIA H100 PCIe", 756, 2000),
    ("NVIDIA H100 NVL", 835, 3900),
    ("NVIDIA H200", 989, 4800),
    ("NVIDIA H200 NVL", 835, 4800),
    ("NVIDIA B200", 2250, 8000),
    ("NVIDIA GB200", 2500, 8000),
    ("NVIDIA A100-SXM4-80GB", 312, 2039),
    ("NVIDIA A100 80GB PCIe", 312, 1935),
    ("NVIDIA A100-SXM4-40GB", 312, 1555),
    ("NVIDIA A100-PCIE-40GB", 312, 1555),
    ("NVIDIA L40S", 362, 864),
    ("NVIDIA L4", 121, 300),
];

/// Performance that the engines reached, by their own estimate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Memory traffic of the median worker (percent of the GPU's published bandwidth).
    pub bandwidth_percent: Decimal,
    /// Arithmetic of the median worker (percent of the published dense bf16 peak), where it is estimated.
    pub arithmetic_percent: Option<Decimal>,
    peaks: (i64, i64),
}

impl Reached {
    /// Sums up the engines' estimates. `None` for an unknown product, or engines that do not estimate their work.
    pub fn new(product: Option<&str>, loads: &[WorkerSummary]) -> Option<Self> {
        // Node labels write spaces as dashes.
        let plain = |name: &str| name.replace('-', " ");
        let product = plain(product?);
        let (_, tflops, gb_per_second) = *PEAKS.iter().find(|(name, ..)| plain(name) == product)?;
        let work = || loads.iter().filter_map(|load| load.engine.as_ref());
        let percent = |values: Vec<Decimal>, peak: i64| {
            let middle = decimal_median(values)?;
            Some((middle * Decimal::ONE_HUNDRED / Decimal::from(peak)).round_dp(1))
        };
        Some(Self {
            bandwidth_percent: percent(work().filter_map(|work| work.gb_per_second).collect(), gb_per_second)?,
            arithmetic_percent: percent(work().filter_map(|work| work.tflops).collect(), tflops),
            peaks: (tflops, gb_per_second),
        })
    }

    /// For evidence.
    pub fn in_words(&self) -> String {
        let (tflops, gb_per_second) = self.peaks;
        let arithmetic = self.arithmetic_percent.map_or(String::new(), |percent| {
            format!(" and {} % of its {tflops} TFLOP/s", show(percent))
        });
        format!(
            "the engines moved {} % of the GPU's {gb_per_second} GB/s{arithmetic}, by their own estimate",
            show(self.bandwidth_percent)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workers::EngineWork;

    fn load(gb_per_second: i64, tflops: Option<i64>) -> WorkerSummary {
        WorkerSummary {
            engine: Some(EngineWork {
                gb_per_second: Some(gb_per_second.into()),
                tflops: tflops.map(Decimal::from),
            }),
            ..WorkerSummary::default()
        }
    }

    #[test]
    fn only_a_known_product_has_a_roofline() {
        let loads = [load(1900, Some(270)), load(1850, Some(265)), load(2400, Some(300))];
        let reached = Reached::new(Some("NVIDIA-H200"), &loads).expect("a known product");
        assert_eq!(reached.bandwidth_percent, Decimal::from_str_exact("39.6").unwrap());
        assert_eq!(
            reached.in_words(),
            "the engines moved 39.6 % of the GPU's 4800 GB/s and 27.3 % of its 989 TFLOP/s, by their own estimate"
        );
        let two = Reached::new(Some("NVIDIA-H200"), &[load(1440, None), load(2160, None)]).expect("a known product");
        assert_eq!(
            two.bandwidth_percent,
            Decimal::from_str_exact("37.5").unwrap(),
            "of 30 and 45"
        );
        assert_eq!(Reached::new(Some("NVIDIA H300"), &loads), None);
        assert_eq!(Reached::new(None, &loads), None);
        assert_eq!(Reached::new(Some("NVIDIA H200"), &[WorkerSummary::default()]), None);
    }
}
