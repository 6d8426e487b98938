//! A long trial that ends slower than it began.

use rust_decimal::Decimal;

use super::cause::{Cause, Explained};
use super::peers::Worker;
use crate::gate::show;
use crate::workers::{Drift, Unit};

/// Loss from the first to both of the last two minutes that is reported of all workers together (percent). Minutes of a
/// healthy trial on two H200s differed from the first by 1 to 3 %, and once by 5.7 % ([`Drift::settled`]).
pub(super) const TOGETHER: i64 = 5;
/// The same of one worker: its share of the requests varies too.
pub(super) const ALONE: i64 = 10;

/// The workers that became slower, if any did.
pub fn decayed(workers: &[Worker<'_>]) -> Option<Explained> {
    let drifts: Vec<(&str, Drift)> = workers
        .iter()
        .filter_map(|worker| Some((worker.name, worker.load.drift?)))
        .collect();
    if drifts.is_empty() || drifts.len() < workers.len() {
        return None;
    }
    let together = Drift {
        first: drifts.iter().map(|(_, drift)| drift.first).sum(),
        last_but_one: drifts.iter().map(|(_, drift)| drift.last_but_one).sum(),
        last: drifts.iter().map(|(_, drift)| drift.last).sum(),
    };
    let of_some = drifts.iter().filter(|(_, drift)| lost(*drift) >= Decimal::from(ALONE));
    let some: Vec<String> = of_some
        .map(|(name, drift)| format!("worker {name} lost {} %", show(lost(*drift))))
        .collect();
    if some.is_empty() && lost(together) < Decimal::from(TOGETHER) {
        return None;
    }
    let unit = match workers.iter().find_map(|worker| worker.load.pace)?.unit {
        Unit::Tokens => "tokens",
        Unit::Bytes => "bytes of answers",
        Unit::Requests => "requests",
    };
    let less = lost(together);
    let change = if less < Decimal::ZERO { "more" } else { "less" };
    let all = format!(
        "{} {unit} a second in the first minute and {} at most in each of the last two ({} % {change})",
        show(together.first.round()),
        show(together.settled().round()),
        show(less.abs())
    );
    let text = std::iter::once(all).chain(some).collect::<Vec<_>>().join("; ");
    Some((Cause::ThroughputDecay, text))
}

/// Loss (percent), negative for a gain.
fn lost(drift: Drift) -> Decimal {
    let part = (drift.first - drift.settled()).checked_div(drift.first);
    part.map_or(Decimal::ZERO, |part| {
        part.saturating_mul(Decimal::ONE_HUNDRED).round_dp(1)
    })
}
