use std::collections::BTreeSet;

use crate::workers::{Sample, Scrape, WorkerSeries};

/// The seconds in which every worker was seen with nothing to do. A second in which one of them did not answer, or was not
/// asked, does not count.
pub(super) fn idle_seconds(workers: &[WorkerSeries]) -> BTreeSet<i64> {
    let each = workers.iter().map(seconds_of);
    each.reduce(|all, one| &all & &one).unwrap_or_default()
}

fn seconds_of(worker: &WorkerSeries) -> BTreeSet<i64> {
    let mut before = None;
    let idle = |Sample(second, scrape): &Sample| {
        let Scrape::Reading(now) = scrape else { return None };
        let counters = (now.started, now.finished);
        let moved = before.replace(counters).is_some_and(|before| before != counters);
        (now.in_flight == 0 && !moved).then_some(*second)
    };
    worker.samples.iter().filter_map(idle).collect()
}

/// Returns true if the workers had no requests from `from` to `to`.
pub(super) fn idle_through(idle: &BTreeSet<i64>, from: i64, to: i64) -> bool {
    from <= to && (from..=to).all(|second| idle.contains(&second))
}
