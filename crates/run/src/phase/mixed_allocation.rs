//! While a run measures on a node whose GPUs are allocated in two ways: no other pod may get one the other way.

use perfval_api::{Phase, Reason};
use perfval_sizing as sizing;

use crate::pass::{Pass, Step};
use crate::run::Run;

/// Returns true if a phase has to watch the other way of a run's node.
pub(crate) fn watches(run: &Run<'_>, current: Phase) -> bool {
    current.is_measured() && run.status().state.plan.neighbours.is_some()
}

/// Ends a run that may share a GPU; waits while that is unknown.
pub(crate) fn intruder(pass: &Pass<'_>, current: Phase) -> Option<Step> {
    let plan = pass.run.placement().filter(|_| watches(pass.run, current))?;
    let intruder = match pass.seen.inventory.present() {
        Some(inventory) => {
            let neighbours = pass.run.status().state.plan.neighbours.as_deref();
            sizing::intruder(inventory, pass.run.spec(), plan, neighbours)
        }
        None => Err(pass.seen.inventory.unknown().unwrap_or("no answer").to_owned()),
    };
    match intruder {
        Ok(None) => None,
        Ok(Some(who)) => Some(Step::error(
            Reason::MixedAllocation,
            format!(
                "{who} of {} while the run was using the node: it may be one of the workers'",
                plan.node
            ),
        )),
        Err(unread) => Some(Step::wait(
            Reason::CallFailed,
            format!("whether others got GPUs of {}: {unread}", plan.node),
        )),
    }
}
