//! Decode speed of each worker next to its peers, in words and as a verdict.

mod limit;
mod words;

use perfval_api::DeviceStatus;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

pub use self::words::{alike, slower, slowest, uncompared, unexplained};
use super::peers::Worker;
use crate::stats::rounded;
use crate::workers::{AgainstPeers, WorkerSummary};

/// The only worker is slower than in earlier runs once its whole interval lies below this (percent of their speed).
pub(crate) const ALIKE: Decimal = Decimal::from_parts(96, 0, 0, false, 0);

/// Largest number of workers whose UUIDs are kept: where more are slow, it is none of them alone.
const WORKERS: usize = 4;

/// A worker whose decode speed was compared: in one trial, or on average over the trials of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Its pod, or its address.
    pub name: String,
    /// Text behind its name for its GPUs; empty if they are unknown.
    pub gpu: String,
    /// UUIDs of these GPUs, where the driver publishes them.
    pub uuids: Vec<String>,
    /// Time from one token of a request to its next in the last trial (ms).
    pub token_ms: Decimal,
    /// Requests that were decoded together.
    pub batch: Decimal,
    /// Speed next to the median of its peers.
    pub peers: AgainstPeers,
    /// Trials that this is the mean of.
    pub trials: i64,
}

/// Comparison of the workers with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpeedSpread {
    /// The slowest worker's speed (percent of its peers' median; of the fastest worker's where most are slow).
    pub slowest: Decimal,
    /// Largest distance of a worker from the median of its peers (percent).
    pub widest: Decimal,
    /// Loss of speed at which a GPU is reported in 95 of 100 runs (percent); `None` while the workers differ by more
    /// than that.
    pub detectable: Option<Decimal>,
}

impl SpeedSpread {
    /// `None` unless the speed of every worker is known.
    pub fn new<'a>(loads: impl IntoIterator<Item = &'a WorkerSummary>) -> Option<Self> {
        let peers = loads.into_iter().map(|load| load.speed.as_ref()?.peers);
        Self::from_speeds(&peers.collect::<Option<Vec<_>>>()?)
    }

    /// The comparison of these workers.
    pub fn from_compared(compared: &[Compared]) -> Option<Self> {
        let peers: Vec<AgainstPeers> = compared.iter().map(|compared| compared.peers).collect();
        Self::from_speeds(&peers)
    }

    fn from_speeds(peers: &[AgainstPeers]) -> Option<Self> {
        let distances = peers.iter().map(|peers| (Decimal::ONE_HUNDRED - peers.percent).abs());
        let widest = distances.max()?;
        let found = slow_of(peers).into_iter().map(|slow| slow.percent);
        let within = peers.iter().filter_map(|peers| peers.within.to_f64());
        let within = within.fold(0.0, f64::max);
        let detectable = rounded(limit::surely_named(peers.len(), within), 1)?;
        Some(Self {
            slowest: peers.iter().map(|peers| peers.percent).chain(found).min()?,
            widest,
            detectable: Some(detectable).filter(|detectable| widest <= *detectable),
        })
    }
}

/// The workers whose speed next to their peers is known.
pub fn compared(workers: &[Worker<'_>], devices: &[DeviceStatus]) -> Vec<Compared> {
    let compared = |worker: &Worker<'_>| {
        let speed = worker.load.speed.as_ref()?;
        Some(Compared {
            name: worker.name.to_owned(),
            gpu: gpu_in_words(worker, devices),
            uuids: uuids(worker, devices),
            token_ms: speed.token_ms,
            batch: speed.batch,
            peers: speed.peers?,
            trials: 1,
        })
    };
    workers.iter().filter_map(compared).collect()
}

/// A worker beyond a limit.
struct Slow {
    /// Its place among all.
    at: usize,
    /// Its speed, as a percentage of the median of its peers, or of the fastest worker.
    percent: Decimal,
    relative_to_fastest: bool,
}

/// The slow workers, the slowest first. The median of the peers is slow itself once most of them are, so each worker is
/// compared with the fastest one too.
fn slow_of(peers: &[AgainstPeers]) -> Vec<Slow> {
    let number = |peers: &AgainstPeers| peers.percent.to_f64().zip(peers.within.to_f64());
    let numbers: Vec<(f64, f64)> = peers.iter().map(number).collect::<Option<_>>().unwrap_or_default();
    let of_fastest = relative_to_fastest(&numbers);
    let beyond_fastest = |at: usize, within: f64| {
        numbers.len() > 2 && 100.0 - of_fastest[at] > limit::against_fastest(numbers.len(), within)
    };
    let each = numbers.iter().enumerate();
    let many = each.filter(|(at, (_, within))| beyond_fastest(*at, *within));
    let most_are = many.count() * 2 > numbers.len();
    let slow = |(at, (percent, within)): (usize, &(f64, f64))| {
        let of_fastest = rounded(of_fastest[at], 1).filter(|_| beyond_fastest(at, *within));
        let of_median =
            Some(peers[at].percent).filter(|_| 100.0 - percent > limit::against_median(numbers.len(), *within));
        let (percent, relative_to_fastest) = match (of_median, of_fastest) {
            (Some(percent), fastest) if fastest.is_none() || !most_are => (percent, false),
            (_, fastest) => (fastest?, true),
        };
        Some(Slow {
            at,
            percent,
            relative_to_fastest,
        })
    };
    let mut slow: Vec<Slow> = numbers.iter().enumerate().filter_map(slow).collect();
    slow.sort_by_key(|slow| slow.percent);
    slow
}

/// Each speed as a percentage of the fastest one. The median of a fast worker's peers lies one place below that of a slow
/// worker's; the worker in the middle shows how far these two are apart.
fn relative_to_fastest(numbers: &[(f64, f64)]) -> Vec<f64> {
    let mut sorted: Vec<f64> = numbers.iter().map(|(percent, _)| *percent).collect();
    sorted.sort_by(f64::total_cmp);
    let Some(fastest) = sorted.last().copied() else {
        return Vec::new();
    };
    let middle = sorted[(sorted.len() / 2).saturating_sub(1)].min(100.0);
    let ratio = |(percent, _): &(f64, f64)| {
        let places = if *percent <= middle { 100.0 / middle } else { 1.0 };
        100.0 * percent / fastest * places
    };
    numbers.iter().map(ratio).collect()
}

/// The slow ones of these workers, the slowest first.
fn slow(compared: &[Compared]) -> Vec<(&Compared, Slow)> {
    let peers: Vec<AgainstPeers> = compared.iter().map(|compared| compared.peers).collect();
    let slow = slow_of(&peers).into_iter();
    slow.map(|slow| (&compared[slow.at], slow)).collect()
}

/// Returns true if any of these workers is slow.
pub fn any_slow(compared: &[Compared]) -> bool {
    !slow(compared).is_empty()
}

/// The GPUs of a worker, as they stand behind its name; nothing where they are not known.
pub fn gpu_in_words(worker: &Worker<'_>, devices: &[DeviceStatus]) -> String {
    let Some(pod) = worker.pod.filter(|pod| !pod.devices.is_empty()) else {
        return String::new();
    };
    let uuids = uuids(worker, devices);
    let held = pod.devices.join(", ");
    match (uuids.len(), pod.devices.len()) {
        (0, 1) => format!(" (GPU {held})"),
        (0, _) => format!(" (GPUs {held})"),
        _ => format!(" ({held}, {})", uuids.join(", ")),
    }
}

/// UUIDs of the GPUs of the slow workers, as far as they are known.
pub fn slow_gpus(compared: &[Compared]) -> Vec<String> {
    let uuids = slow(compared).into_iter().map(|(worker, _)| worker.uuids.clone());
    uuids.take(WORKERS).flatten().collect()
}

/// UUIDs of the GPUs that a worker holds, where the driver publishes them.
fn uuids(worker: &Worker<'_>, devices: &[DeviceStatus]) -> Vec<String> {
    let held = worker.pod.into_iter().flat_map(|pod| pod.held(devices));
    held.filter_map(|device| device.uuid.clone()).collect()
}
