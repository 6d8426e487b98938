//! A worker next to its peers: the same model on the same GPUs must answer as fast.

use perfval_api::{RouterMode, WorkerPod};
use rust_decimal::Decimal;

use super::cause::{Cause, Explained};
use crate::gate::show;
use crate::stats::decimal_median;
use crate::workers::{STANDSTILL, WorkerSummary};

/// Requests that the peers must have finished (median) before a worker is compared with them.
const COMPARABLE: i64 = 10;
/// A standstill longer than this many of the peers' is the worker's own: long prompts stop every worker now and then.
const OWN_STANDSTILL: i64 = 3;
/// A standstill of one part in this many explains a trial that ran out of time; trials of a healthy deployment differ less.
const GOOD_PART: i64 = 10;
/// Highest ratio of a worker's rate to that of its peers at which it still counts as given no more load than they:
/// 0.86 to 1.19 in healthy runs and 1.17 for a worker that is 10 × slower, under round-robin and random; 150 under
/// kv, which prefers one.
const AS_MANY: Decimal = Decimal::from_parts(150, 0, 0, false, 2);

/// A worker with the name that people know it by.
#[derive(Clone, Copy, Debug)]
pub struct Worker<'a> {
    /// Its pod, or its address.
    pub name: &'a str,
    /// Work that it did.
    pub load: &'a WorkerSummary,
    /// Its pod, while it exists.
    pub pod: Option<&'a WorkerPod>,
}

/// Every sampled worker with its pod's name, where a pod has its address.
pub fn named<'a>(loads: &'a [WorkerSummary], pods: &'a [WorkerPod]) -> Vec<Worker<'a>> {
    let worker = |load: &'a WorkerSummary| {
        let pod = pods.iter().find(|pod| pod.address.as_ref() == Some(&load.address));
        Worker {
            name: pod.map_or(load.address.as_str(), |pod| pod.pod.as_str()),
            load,
            pod,
        }
    };
    loads.iter().map(worker).collect()
}

/// Workers that are much slower than their peers or stand still for good, each with its evidence. `gpu` returns the
/// GPU of a worker, to be put behind its name.
pub fn stalled(workers: &[Worker<'_>], router: RouterMode, gpu: impl Fn(&Worker<'_>) -> String) -> Option<String> {
    let what = |worker: &Worker<'_>| {
        let shown = format!("{}{}", worker.name, gpu(worker));
        stopped(*worker, workers, &shown).or_else(|| slow(*worker, workers, router, &shown))
    };
    let found: Vec<String> = workers.iter().filter_map(what).collect();
    (!found.is_empty()).then(|| found.join("; "))
}

/// A worker with requests in work that neither moved nor answered until the end, or never answered at all.
fn stopped(worker: Worker<'_>, all: &[Worker<'_>], name: &str) -> Option<String> {
    let load = worker.load;
    let others_go_on = all
        .iter()
        .any(|peer| peer.load.samples > 0 && peer.load.frozen_seconds < STANDSTILL);
    if load.samples == 0 && load.timeouts >= STANDSTILL && others_go_on {
        let timeouts = load.timeouts;
        return Some(format!(
            "worker {name} never answered on its metrics port ({timeouts} time-outs)"
        ));
    }
    if load.frozen_seconds >= STANDSTILL && (others_go_on || all.len() == 1) {
        let (frozen, held, timeouts) = (load.frozen_seconds, load.peak_in_flight, load.timeouts);
        return Some(format!(
            "worker {name} stood still for {frozen} s and did not go on ({timeouts} time-outs of its metrics port), with up to {held} \
             requests in work before"
        ));
    }
    None
}

/// A worker that takes several times as long for a request as its peers, and not because it serves more of them.
///
/// Routers differ in what a slow worker shows. Least-loaded and power-of-two keep its queue as long as the others', so it
/// serves fewer. Round-robin and random give it as many requests as the others, which pile up there until the others
/// starve: then all serve equally few. A healthy worker that a router prefers (kv, for its cached prefixes) has a long
/// queue too, but serves many more than its peers.
///
/// Measured on two busy cores (four mocker workers on Dynamo 1.4.2, one of them 10 × slower, as share of the peers'
/// median): a slow worker serves 0.28 to 0.33 of the rate with 7 to 9 times the time per request under least-loaded,
/// power-of-two and kv, and 1.0 to 1.2 of the rate with 19 to 21 times the time under round-robin and random. In ten
/// healthy runs with any router the rate was 0.86 to 1.19 and the time 0.91 to 1.11.
fn slow(worker: Worker<'_>, all: &[Worker<'_>], router: RouterMode, name: &str) -> Option<String> {
    let load = worker.load;
    let peers = Peers::new(worker, all)?;
    let (rate, each) = (show(peers.rate), show(peers.seconds_per_request));
    if load.served == 0 {
        return (load.peak_in_flight > 0 && load.samples > 0).then(|| {
            let held = load.peak_in_flight;
            format!("worker {name} held up to {held} requests and finished none; its peers {rate} requests/s (median)")
        });
    }
    let moving = Moving::new(load)?;
    let ratio = moving.seconds_per_request.checked_div(peers.seconds_per_request)?;
    // kv feeds a worker without a cached prefix less and costs it a prefill more: that alone is no fault.
    let times = if router == RouterMode::Kv {
        Decimal::from(3)
    } else {
        Decimal::TWO
    };
    let serves_fewer = moving.rate * times <= peers.rate && ratio >= times;
    let piles_up = moving.rate <= peers.rate * AS_MANY && ratio >= peers.pile && peers.could_do(load);
    (serves_fewer || piles_up).then(|| {
        format!(
            "worker {name} took {} s for a request, its peers {each} s (median); it served {} requests/s, they {rate}",
            show(moving.seconds_per_request),
            show(moving.rate)
        )
    })
}

/// Medians of a worker's peers.
struct Peers<'a> {
    loads: Vec<&'a WorkerSummary>,
    rate: Decimal,
    seconds_per_request: Decimal,
    /// Factor by which a request takes longer in a worker of half their speed, once its queue has starved the others:
    /// with N workers, one of them s times slower, N × s − (N − 1).
    pile: Decimal,
}

impl<'a> Peers<'a> {
    fn new(worker: Worker<'_>, all: &[Worker<'a>]) -> Option<Self> {
        let loads: Vec<&WorkerSummary> = all
            .iter()
            .filter(|peer| peer.load.address != worker.load.address && peer.load.samples > 0)
            .map(|peer| peer.load)
            .collect();
        let served = decimal_median(loads.iter().map(|load| Decimal::from(load.served)))?;
        if served < Decimal::from(COMPARABLE) {
            return None;
        }
        let moving: Vec<Moving> = loads.iter().filter_map(|load| Moving::new(load)).collect();
        Some(Self {
            rate: decimal_median(moving.iter().map(|peer| peer.rate))?,
            seconds_per_request: decimal_median(moving.iter().map(|peer| peer.seconds_per_request))?,
            pile: Decimal::from(loads.len() + 2),
            loads,
        })
    }

    /// Returns true if they showed at least twice the pace that this worker kept. Behind a pile everybody is slow,
    /// and a worker that is a little slower piles up too if it is given enough time.
    fn could_do(&self, load: &WorkerSummary) -> bool {
        let Some(pace) = load.pace else { return false };
        let best = self
            .loads
            .iter()
            .filter_map(|load| load.pace.filter(|best| best.unit == pace.unit));
        decimal_median(best.map(|best| best.best)).unwrap_or_default() >= pace.mean * Decimal::TWO
    }
}

/// Speed of a worker while it moved; a standstill is reported separately.
struct Moving {
    rate: Decimal,
    seconds_per_request: Decimal,
}

impl Moving {
    fn new(load: &WorkerSummary) -> Option<Self> {
        let served = Decimal::from(load.served);
        // Without a count of its own, the queue's length over the rate is the time in it (Little's law).
        let whole = load
            .seconds_per_request
            .or_else(|| load.mean_in_flight.checked_div(load.rate_per_second))?;
        let mut seconds = Decimal::from(load.seconds);
        let mut waited = Decimal::ZERO;
        // A standstill of half the phase or more is how it works, not an accident.
        if load.still_seconds >= STANDSTILL && load.still_seconds * 2 < load.seconds {
            seconds -= Decimal::from(load.still_seconds);
            waited = Decimal::from(load.still_seconds).checked_mul(load.still_in_flight.into())?;
        }
        Some(Self {
            rate: served.checked_div(seconds)?.round_dp(3),
            seconds_per_request: whole
                .saturating_sub(waited.checked_div(served)?)
                .max(Decimal::ZERO)
                .round_dp(3),
        })
    }
}

/// A worker that stood still for a good part of a trial that ran out of time. What it held is cancelled in the end, so its
/// own metrics may show that it went on.
pub fn held_up(workers: &[Worker<'_>], gpu: impl Fn(&Worker<'_>) -> String) -> Option<String> {
    let long = |worker: &Worker<'_>| worker.load.still_seconds * GOOD_PART >= worker.load.seconds;
    stood_still(workers, gpu).filter(|_| workers.iter().any(long))
}

/// The worker that stood still longest under load and went on, more than three times as long as its peers.
pub fn longest_still<'a, 'b>(workers: &'b [Worker<'a>]) -> Option<&'b Worker<'a>> {
    let worker = workers.iter().max_by_key(|worker| worker.load.still_seconds)?;
    let peers = workers.iter().filter(|peer| peer.load.address != worker.load.address);
    let theirs = decimal_median(peers.map(|peer| Decimal::from(peer.load.still_seconds))).unwrap_or_default();
    let still = worker.load.still_seconds;
    let own = Decimal::from(still) > theirs * Decimal::from(OWN_STANDSTILL);
    (still >= STANDSTILL && own).then_some(worker)
}

/// Text about the worker that stood still longest; `gpu` as in [`stalled`].
pub fn stood_still(workers: &[Worker<'_>], gpu: impl Fn(&Worker<'_>) -> String) -> Option<String> {
    let worker = longest_still(workers)?;
    let (name, still, held) = (worker.name, worker.load.still_seconds, worker.load.still_in_flight);
    Some(format!(
        "worker {name}{} stood still for {still} s with {held} requests in work, then went on",
        gpu(worker)
    ))
}

/// A worker that was given nothing and served nothing while others did.
pub fn idle(workers: &[Worker<'_>]) -> Option<String> {
    let busy = workers.iter().any(|worker| worker.load.served > 0);
    let idle = workers.iter().find(|Worker { load, .. }| {
        load.samples > 0 && load.served == 0 && load.peak_in_flight == 0 && load.frozen_seconds < STANDSTILL
    })?;
    busy.then(|| format!("worker {} served no request", idle.name))
}

/// A worker whose process restarted, or ended: its metrics port refuses what it answered before.
pub fn gone(workers: &[Worker<'_>]) -> Option<Explained> {
    workers.iter().find_map(|Worker { name, load, pod }| {
        // A new pod has another address: behind the same one only the process is new.
        if load.resets > 0 {
            return Some((Cause::WorkerCrashed, format!("the process of worker {name} restarted")));
        }
        let silent = load.frozen_seconds;
        // An engine that hangs may have been refused once, long before.
        let failed = if load.failures > load.timeouts {
            load.failures
        } else {
            0
        };
        let refused = load.refused_at_end.unwrap_or(failed);
        let has_refused = refused >= STANDSTILL || refused.saturating_mul(2) > silent;
        (load.samples > 0 && silent >= STANDSTILL && has_refused).then(|| {
            // A pod that is removed refuses too before it is gone.
            let cause = if pod.is_some() {
                Cause::WorkerCrashed
            } else {
                Cause::WorkerRestarted
            };
            (
                cause,
                format!(
                    "worker {name} refused every connection in the last {} s",
                    refused.min(silent)
                ),
            )
        })
    })
}

/// Returns true if all workers worked alike: no rate and no time per request twice another.
pub fn balanced(workers: &[Worker<'_>]) -> bool {
    let alike = |values: Vec<Decimal>| match (values.iter().min(), values.iter().max()) {
        (Some(least), Some(most)) => *most <= *least * Decimal::TWO,
        _ => false,
    };
    let rates = workers.iter().map(|worker| worker.load.rate_per_second);
    let times = workers.iter().filter_map(|worker| worker.load.seconds_per_request);
    alike(rates.collect()) && alike(times.collect())
}
