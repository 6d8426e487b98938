//! How fast each worker decodes next to its peers, in words and as a verdict.

use perfval_api::{DeviceStatus, WorkerStatus};
use rust_decimal::Decimal;

use super::peers::{Worker, balanced};
use crate::gate::show;
use crate::workers::{AgainstPeers, Speed, WorkerSummary};

/// A worker is slower than its peers once its whole interval lies below this (percent of their speed). Set on 16 trials of
/// 13 to 23 s on four H200s: the interval's upper end was 99 or more in 7 healthy ones and 94 or less for every GPU that a
/// foreign load slowed down by a tenth or more.
pub(crate) const ALIKE: Decimal = Decimal::from_parts(96, 0, 0, false, 0);

/// UUIDs that are kept: where more GPUs are slow, it is none of them alone.
const GPUS: usize = 4;

/// What the workers' speeds come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The slowest worker's speed (percent of its peers' median).
    pub slowest: Decimal,
    /// Largest distance of a worker from the median of its peers (percent).
    pub widest: Decimal,
    /// How much slower a GPU would have been named (percent).
    pub detectable: Decimal,
}

impl Spread {
    /// `None` unless the speed of every worker that served is known.
    pub fn of(loads: &[WorkerSummary]) -> Option<Self> {
        let compared: Vec<AgainstPeers> = loads.iter().map(against_peers).collect::<Option<_>>()?;
        let hundred = Decimal::ONE_HUNDRED;
        let widest = compared.iter().map(|peers| (hundred - peers.percent).abs()).max()?;
        let within = compared.iter().map(|peers| peers.within).max()?;
        Some(Self {
            slowest: compared.iter().map(|peers| peers.percent).min()?,
            widest,
            detectable: hundred - ALIKE + within,
        })
    }
}

fn against_peers(load: &WorkerSummary) -> Option<AgainstPeers> {
    load.speed.as_ref()?.peers
}

/// A worker with its speed, and how that compares.
type Compared<'a> = (Worker<'a>, &'a Speed, AgainstPeers);

fn compared<'a>(workers: &[Worker<'a>]) -> impl Iterator<Item = Compared<'a>> {
    workers.iter().filter_map(|worker| {
        let speed = worker.load.speed.as_ref()?;
        Some((*worker, speed, speed.peers?))
    })
}

/// The workers that decode slower than their peers beyond the stated limit, the slowest first.
fn slow<'a>(workers: &[Worker<'a>]) -> Vec<Compared<'a>> {
    let mut slow: Vec<_> = compared(workers)
        .filter(|(_, _, peers)| peers.percent + peers.within < ALIKE)
        .collect();
    slow.sort_by_key(|(_, _, peers)| peers.percent);
    slow
}

/// What was seen of each worker that is slower than its peers.
pub fn slower(workers: &[Worker<'_>], pods: &[WorkerStatus], devices: &[DeviceStatus]) -> Option<String> {
    let text = |compared: &Compared<'_>| in_words(compared, pods, devices);
    let texts: Vec<String> = slow(workers).iter().map(text).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// What was seen of the slowest worker, where its interval is too wide to call it slower beyond doubt.
pub fn slowest(workers: &[Worker<'_>], pods: &[WorkerStatus], devices: &[DeviceStatus]) -> Option<String> {
    let slowest = compared(workers).min_by_key(|(_, _, peers)| peers.percent)?;
    let seen = in_words(&slowest, pods, devices);
    Some(format!(
        "{seen}; too uneven a trial to tell it from its peers beyond doubt"
    ))
}

/// That a gate is missed by more than the slowest worker explains, even if all others waited for it: `below` is the distance
/// of a rate from its gate (percent).
pub fn unexplained(workers: &[Worker<'_>], below: Decimal) -> Option<String> {
    let (_, _, peers) = slow(workers).into_iter().next()?;
    let explains = Decimal::ONE_HUNDRED - peers.percent + peers.within;
    (below > explains).then(|| {
        format!(
            "a gate is missed by {} %, of which a worker at {} % ± {} % of its peers' speed explains {} % at most: what all \
             workers share is slow too",
            show(below.round_dp(1)),
            show(peers.percent),
            show(peers.within),
            show(explains)
        )
    })
}

/// The GPU of a worker, as it stands behind its name; nothing where it is not known.
pub fn gpu_in_words(worker: &Worker<'_>, pods: &[WorkerStatus], devices: &[DeviceStatus]) -> String {
    match device(worker, pods, devices) {
        Some((held, Some(uuid))) => format!(" ({held}, {uuid})"),
        Some((held, None)) => format!(" (GPU {held})"),
        None => String::new(),
    }
}

fn in_words((worker, speed, peers): &Compared<'_>, pods: &[WorkerStatus], devices: &[DeviceStatus]) -> String {
    let gpu = gpu_in_words(worker, pods, devices);
    format!(
        "worker {}{gpu} decodes at {} % ± {} % of its peers' speed: {} ms from token to token with {} requests at a time",
        worker.name,
        show(peers.percent),
        show(peers.within),
        show(speed.token_ms),
        show(speed.batch)
    )
}

/// UUIDs of the GPUs of the workers that are slower than their peers, as far as they are known.
pub fn slow_gpus(workers: &[Worker<'_>], pods: &[WorkerStatus], devices: &[DeviceStatus]) -> Vec<String> {
    let uuid = |(worker, _, _): &(Worker<'_>, _, _)| device(worker, pods, devices)?.1;
    slow(workers).iter().filter_map(uuid).take(GPUS).collect()
}

/// The GPU that a worker holds, as `pool/device`, and its UUID where the driver publishes one.
fn device(worker: &Worker<'_>, pods: &[WorkerStatus], devices: &[DeviceStatus]) -> Option<(String, Option<String>)> {
    let held = pods.iter().find(|pod| pod.pod == worker.name)?.device.clone()?;
    let device = devices
        .iter()
        .find(|device| held == format!("{}/{}", device.pool, device.name));
    let uuid = device.and_then(|device| device.uuid.clone());
    Some((held, uuid))
}

/// Why several workers are not compared with each other; `None` if they are.
pub fn uncompared(loads: &[WorkerSummary]) -> Option<String> {
    if loads.len() < 2 || Spread::of(loads).is_some() {
        return None;
    }
    let count = loads.len();
    let why = if loads.iter().any(|load| load.speed.is_some()) {
        "they were seen at work together in fewer than 4 windows of 2 s"
    } else {
        "their engines do not report the time between tokens"
    };
    Some(format!(
        "the speeds of {count} workers were not compared: {why}; a slow GPU would not have been named"
    ))
}

/// That no worker stands out, with the figures that allow to say so; `None` if one does, or nothing is known.
pub fn alike(workers: &[Worker<'_>]) -> Option<String> {
    let count = workers.len();
    let loads: Vec<WorkerSummary> = workers.iter().map(|worker| worker.load.clone()).collect();
    match Spread::of(&loads) {
        Some(spread) if slower(workers, &[], &[]).is_none() => Some(format!(
            "all {count} workers decode within {} % of their peers' speed; a GPU {} % slower would have been named",
            show(spread.widest),
            show(spread.detectable)
        )),
        Some(_) => None,
        None if count == 1 => Some("there is one worker, and so none to compare it with".to_owned()),
        None => balanced(workers).then(|| {
            format!(
                "all {count} workers served within a factor of 2 of each other; their engines do not report their speed"
            )
        }),
    }
}
