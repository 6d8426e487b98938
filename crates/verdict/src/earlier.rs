//! Each worker of a run next to earlier runs of the same measurement on the same GPU: a reference where it has no peers, or
//! where all of them became slow.

use std::str::FromStr as _;

use perfval_api::{DecodeSpeed, DeviceStatus, PerfValidationStatus, RelativeSpeed, Verdict, WorkerLoad};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use crate::diagnosis::speed::ALIKE;
use crate::environment;
use crate::gate::show;
use crate::quantile::{normal_beyond, student};
use crate::stats::{count, mean, rounded, squares};
use crate::workers::speed::ELASTICITY;

/// Fewest earlier runs that give an interval.
const RUNS: usize = 3;
/// Least standard deviation of the decode speed of one GPU from one trial to another (logarithm): mostly 2 to 3 % within one
/// start of the engines on H200s. Three runs that agree by chance do not bound it.
const NOISE: f64 = 0.03;
/// Part of healthy comparisons that lie below a 95 % interval.
const TAIL: f64 = 0.025;

/// Speed of a worker as a percentage of that of earlier runs on its GPU.
#[derive(Clone, Debug)]
pub(crate) struct Earlier {
    percent: Decimal,
    /// Half of the 95 % interval in which another healthy run is expected (percentage points).
    within: Decimal,
    runs: usize,
    now: Own,
}

/// A worker of a run with its speed and its GPUs.
#[derive(Clone, Debug)]
struct Own {
    worker: String,
    speed: DecodeSpeed,
    devices: Vec<DeviceStatus>,
}

/// Speeds that the history keeps of a run.
pub(crate) fn speeds(status: &PerfValidationStatus) -> Vec<DecodeSpeed> {
    own(status).into_iter().map(|own| own.speed).collect()
}

/// The speeds in the last trial that is no soak, where the engines report them: of the only worker, and of each of several
/// whose GPUs have UUIDs.
fn own(status: &PerfValidationStatus) -> Vec<Own> {
    let Some(placement) = status.placement.as_ref() else {
        return Vec::new();
    };
    let alone = placement.gpus == 1 || status.state.worker_pods.len() == 1;
    if alone != (status.state.workers.len() == 1) {
        return Vec::new();
    }
    let own = |load: &WorkerLoad| {
        let devices = match status.state.plan.device_ids.as_slice() {
            [device] if placement.gpus == 1 => vec![device.clone()],
            devices => held(status, &load.name, devices),
        };
        let speed = DecodeSpeed {
            token_ms: load.token_ms.clone()?,
            batch: load.batch.clone()?,
            gpu: one_name(&devices),
        };
        (alone || speed.gpu.is_some()).then(|| Own {
            worker: load.name.clone(),
            speed,
            devices,
        })
    };
    status.state.workers.iter().filter_map(own).collect()
}

/// The devices that a worker's pod holds.
fn held(status: &PerfValidationStatus, pod: &str, devices: &[DeviceStatus]) -> Vec<DeviceStatus> {
    let worker = status.state.worker_pods.iter().find(|worker| worker.pod == pod);
    let held = worker.into_iter().flat_map(|worker| worker.held(devices));
    held.cloned().collect()
}

/// The UUIDs of a worker's GPUs as one name, in order: a model that is split over other GPUs has another speed.
fn one_name(devices: &[DeviceStatus]) -> Option<String> {
    let uuids = devices.iter().map(|device| device.uuid.as_deref());
    let mut uuids: Vec<&str> = uuids.collect::<Option<_>>()?;
    uuids.sort_unstable();
    (!uuids.is_empty()).then(|| uuids.join(","))
}

/// Workers of the trial that was closed last next to the earlier runs that passed without a cause, with the very same
/// environment (model, image, settings, product, driver) and on the same GPU, or on the same node if its UUID is unknown. A worker
/// with fewer than three of these is left out.
pub(crate) fn against(status: &PerfValidationStatus) -> Vec<Earlier> {
    let passed = environment::comparable_runs(status).filter(|entry| entry.verdict == Some(Verdict::Passed));
    let node = status.placement.as_ref().map(|placement| placement.node.as_str());
    let speeds = passed.flat_map(|entry| {
        let is_here = entry.node.as_deref() == node;
        entry.speeds.iter().map(move |speed| (is_here, speed))
    });
    let earlier: Vec<(bool, &DecodeSpeed)> = speeds.collect();
    let compared = |now: Own| {
        let same_gpu = earlier
            .iter()
            .filter(|(is_here, speed)| speed.gpu == now.speed.gpu && (*is_here || speed.gpu.is_some()));
        let points: Vec<Point> = same_gpu.filter_map(|(_, speed)| Point::new(speed)).collect();
        let (percent, within) = compared(Point::new(&now.speed)?, &points)?;
        Some(Earlier {
            percent,
            within,
            runs: points.len(),
            now,
        })
    };
    own(status).into_iter().filter_map(compared).collect()
}

/// Logarithms of the time per token and of the batch.
#[derive(Clone, Copy)]
struct Point {
    token_ms: f64,
    batch: f64,
}

impl Point {
    fn new(decode: &DecodeSpeed) -> Option<Self> {
        let logarithm = |text: &str| {
            let value = Decimal::from_str(text).ok()?.to_f64()?;
            (value > 0.0).then(|| value.ln())
        };
        Some(Self {
            token_ms: logarithm(&decode.token_ms)?,
            batch: logarithm(&decode.batch)?,
        })
    }

    /// The time per token as it would be with a batch of one.
    fn corrected(self) -> f64 {
        self.token_ms - ELASTICITY.0 * self.batch
    }
}

/// Percent of the earlier runs' speed, and half of the interval in which one more run of theirs would lie (Student's t).
fn compared(now: Point, earlier: &[Point]) -> Option<(Decimal, Decimal)> {
    if earlier.len() < RUNS {
        return None;
    }
    let runs = count(earlier.len());
    let (times, batches): (Vec<f64>, Vec<f64>) = earlier.iter().map(|point| (point.corrected(), point.batch)).unzip();
    let deviation = (squares(&times) / (runs - 1.0)).sqrt().max(NOISE);
    let unequal = (now.batch - mean(&batches)).abs();
    let within = student(earlier.len() - 1) * deviation * (1.0 + 1.0 / runs).sqrt() + 2.0 * ELASTICITY.1 * unequal;
    let percent = 100.0 * (mean(&times) - now.corrected()).exp();
    Some((rounded(percent, 1)?, rounded(percent * within.exp_m1(), 1)?))
}

impl Earlier {
    /// Returns true if the whole interval lies below the range that counts as alike, for this many workers compared
    /// at once.
    pub(crate) fn is_slow(&self, workers: usize) -> bool {
        let each = normal_beyond(TAIL / count(workers.max(1))) / normal_beyond(TAIL);
        let Some(within) = rounded(each, 3).and_then(|each| self.within.checked_mul(each)) else {
            return false;
        };
        self.percent + within < ALIKE
    }

    /// Upper end of the interval (percent): what a gate judges.
    pub(crate) fn at_most(&self) -> Decimal {
        self.percent + self.within
    }

    /// Name of the worker.
    pub(crate) fn name(&self) -> &str {
        &self.now.worker
    }

    /// UUIDs of the GPUs.
    pub(crate) fn gpus(&self) -> impl Iterator<Item = &str> {
        self.now.speed.gpu.iter().flat_map(|name| name.split(','))
    }

    /// For the table of the workers.
    pub(crate) fn shown(&self) -> RelativeSpeed {
        RelativeSpeed {
            percent: show(self.percent),
            within: show(self.within),
            of: i64::try_from(self.runs).unwrap_or(i64::MAX),
        }
    }

    /// For evidence.
    pub(crate) fn in_words(&self) -> String {
        let gpus: Vec<String> = self
            .now
            .devices
            .iter()
            .map(|DeviceStatus { pool, name, uuid }| match uuid {
                Some(uuid) => format!("{pool}/{name}, {uuid}"),
                None => format!("GPU {pool}/{name}"),
            })
            .collect();
        let gpu = if gpus.is_empty() {
            String::new()
        } else {
            format!(" ({})", gpus.join("; "))
        };
        format!(
            "worker {}{gpu} decodes at {} % ± {} % of the speed of its {} earlier runs: {} ms from token to token with {} requests at a time",
            self.now.worker,
            show(self.percent),
            show(self.within),
            self.runs,
            self.now.speed.token_ms,
            self.now.speed.batch
        )
    }
}
