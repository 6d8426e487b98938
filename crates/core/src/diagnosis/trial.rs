//! How the workers shared the load of a trial.

use perfval_api::WorkerStatus;
use rust_decimal::Decimal;

use super::cause::Cause;
use crate::gate::show;
use crate::workers::WorkerSummary;

/// A worker in balance has at least this share of its peers' median rate: least-loaded routing equalises the queue, so
/// only rates tell (measured: 32/32/32/32 in flight with one worker 10 × slower).
const FAIR_RATE: Decimal = Decimal::from_parts(5, 0, 0, false, 1);
/// A worker in balance has at most this many times its peers' median in flight (measured: 126 against 32).
const FAIR_IN_FLIGHT: i64 = 2;
/// Below this a queue is too short to compare.
const COMPARABLE_IN_FLIGHT: i64 = 8;

/// The worker that is out of balance, if there is one: what was seen of it.
pub fn stalled(workers: &[WorkerSummary]) -> Option<String> {
    // Nothing is known of a worker that was never reached, unless its silence itself tells: a frozen one times out.
    let workers: Vec<&WorkerSummary> = workers
        .iter()
        .filter(|worker| worker.samples > 0 || worker.timeouts > 0)
        .collect();
    if workers.len() < 2 {
        return None;
    }
    workers.iter().enumerate().find_map(|(index, worker)| {
        let peers: Vec<&&WorkerSummary> = workers
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != index)
            .map(|(_, peer)| peer)
            .collect();
        let rate = median(peers.iter().map(|peer| peer.rate_per_second).collect());
        let in_flight = median(peers.iter().map(|peer| Decimal::from(peer.peak_in_flight)).collect());
        if worker.rate_per_second < rate * FAIR_RATE {
            return Some(format!(
                "worker {} served {} requests/s, its peers {} (median)",
                worker.address,
                show(worker.rate_per_second),
                show(rate)
            ));
        }
        let piled_up = worker.peak_in_flight > COMPARABLE_IN_FLIGHT
            && Decimal::from(worker.peak_in_flight) > in_flight * Decimal::from(FAIR_IN_FLIGHT);
        piled_up.then(|| {
            let (peak, fair) = (worker.peak_in_flight, show(in_flight));
            format!(
                "worker {} had {peak} requests in flight, its peers {fair} (median)",
                worker.address
            )
        })
    })
}

/// A worker that served nothing while others did.
pub fn idle(workers: &[WorkerSummary]) -> Option<String> {
    let busy = workers.iter().any(|worker| worker.served > 0);
    let idle = workers.iter().find(|worker| worker.served == 0 && worker.samples > 0)?;
    busy.then(|| format!("worker {} served no request", idle.address))
}

/// What changed of the workers between the start of a trial and its end.
pub fn changed(before: &[WorkerStatus], after: &[WorkerStatus]) -> Option<(Cause, String)> {
    before
        .iter()
        .find_map(|worker| match after.iter().find(|later| later.uid == worker.uid) {
            None => Some((Cause::WorkerRestarted, format!("worker {} is gone", worker.pod))),
            Some(later) if later.restarts != worker.restarts => {
                Some((Cause::WorkerRestarted, format!("worker {} restarted", worker.pod)))
            }
            Some(later) if later.device != worker.device => {
                let (old, new) = (worker.device.as_deref(), later.device.as_deref());
                Some((
                    Cause::GPUChanged,
                    format!(
                        "worker {} held {} and now {}",
                        worker.pod,
                        old.unwrap_or("none"),
                        new.unwrap_or("none")
                    ),
                ))
            }
            Some(_) => None,
        })
}

fn median(mut values: Vec<Decimal>) -> Decimal {
    values.sort();
    let middle = values.len() / 2;
    match values.len() {
        0 => Decimal::ZERO,
        odd if odd % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / Decimal::TWO,
    }
}
