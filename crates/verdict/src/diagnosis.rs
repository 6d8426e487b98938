//! Causes of a trial's outcome: found in AIPerf's export and the workers' samples, and in what the node lacks, each
//! with its evidence and its remedy.

pub mod cause;
pub mod decay;
pub mod gpus;
pub mod missing;
pub mod peers;
pub mod roofline;
pub mod speed;
pub mod trial;

#[cfg(test)]
mod tests {
    use super::cause::Cause;
    use super::{decay, trial};
    use crate::aiperf::both_ends;

    #[test]
    fn the_page_has_the_figures_of_the_code() {
        let percent = |part: rust_decimal::Decimal| (part * rust_decimal::Decimal::ONE_HUNDRED).normalize();
        for (cause, figure) in [
            (Cause::TransientStall, format!("{} s", crate::workers::STANDSTILL)),
            (Cause::SlowWorker, format!("below {} %", super::speed::ALIKE)),
            (Cause::ThroughputDecay, format!("{} %", decay::TOGETHER)),
            (Cause::ThroughputDecay, format!("{} %", decay::ALONE)),
            (Cause::KneeJitter, format!("{} %", trial::KNEE_JITTER.abs())),
            (Cause::GeneratorStarved, format!("{} %", percent(both_ends::LARGE))),
            (Cause::GeneratorStarved, format!("{} ms", both_ends::LEAST_REPORTED)),
            (Cause::NodeCPUPressure, format!("{} %", crate::node_cpu::BUSY)),
            (Cause::FrontendBound, format!("{} %", percent(trial::ON_THE_WAY))),
            (Cause::FrontendBound, format!("{} s", trial::LEAST_REPORTED)),
            (Cause::FrontendBound, format!("{} ms", trial::LATE_LOOP_MS)),
        ] {
            let meaning = cause.word().meaning();
            assert!(meaning.contains(&figure), "{cause:?}: no {figure} in {meaning:?}");
        }
    }
}
