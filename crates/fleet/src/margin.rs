//! Certainty of the published difference of a node from its own past.

use perfval_api::fleet::NodePerformanceStatus;

use crate::numbers::{count, percent};
use crate::peers::pass_variance;
use crate::prior::{DEGREES, prior};
use crate::reading::{Average, NodeSummary};
use crate::strata::read;
use crate::tail::student_beyond;

/// Probability beyond each end of the interval.
const TAIL: f64 = 0.025;

/// Margin (percentage points) of [`NodePerformanceStatus::percent_of_own_past`]: in at least 95 of 100 runs of two trials, which vary by up to 2 %,
/// the slowest GPU of a healthy node is within it of 100 %. It is wide for one run, because it contains the noise of the deployment and of the past. `None` without
/// a known past.
pub fn own_past_margin(status: &NodePerformanceStatus) -> Option<f64> {
    let known = status.gpus.iter().filter(|gpu| gpu.percent_of_own_past.is_some());
    let slowest = known.min_by_key(|gpu| gpu.percent_of_own_past)?;
    let (pass, _) = read(status, status.environment.as_deref()?)?;
    let earlier = pass.gpus.get(&slowest.uuid)?.past;
    let spread = prior(status.product.as_deref().unwrap_or_default());
    let summary = NodeSummary::new(&pass, Average::Mean)?;
    let common = pass.shared.deviation(pass_variance(&summary, &spread));
    let gpus = pass.gpus.len();
    // The residual of the only GPU is that of the node.
    let own = if gpus > 1 {
        earlier.deviation(spread.noise.powi(2))
    } else {
        0.0
    };
    let runs = f64::from(earlier.count.max(1));
    let beyond = |tail: f64| student_beyond(tail, DEGREES + runs);
    // The slowest of several GPUs is shown.
    let width = (beyond(TAIL) * common).hypot(beyond(TAIL / count(gpus)) * own);
    Some(-percent(-width * (1.0 + 1.0 / runs).sqrt()))
}
