//! The only worker of a run next to earlier runs of the same measurement on the same GPU: a reference where it has no peers.

use std::str::FromStr as _;

use perfval_api::{DecodeSpeed, DeviceStatus, HistoryEntry, PerfValidationStatus, PlacementStatus, Verdict};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use crate::diagnosis::speed::ALIKE;
use crate::environment;
use crate::gate::show;
use crate::workers::speed::{ELASTICITY, average, count, rounded, student};

/// Fewest earlier runs of which an interval is made.
const RUNS: usize = 3;
/// Least standard deviation of the decode speed of one GPU from one trial to another (logarithm): mostly 2 to 3 % within one
/// start of the engines on H200s. Three runs that agree by chance do not bound it.
const NOISE: f64 = 0.03;

/// The speed of the only worker as a percentage of that of earlier runs.
#[derive(Clone, Debug)]
pub(crate) struct Earlier {
    percent: Decimal,
    /// Half of the 95 % interval in which another healthy run is expected (percentage points).
    within: Decimal,
    runs: usize,
    now: DecodeSpeed,
    worker: String,
    device: Option<DeviceStatus>,
}

/// What the history keeps of a run: nothing of one that only judged again what another had measured, or in which a cause was
/// named, such as a GPU that something else worked on.
pub(crate) fn kept(status: &PerfValidationStatus) -> Option<DecodeSpeed> {
    let judged_again = status.run.as_ref().is_some_and(|run| run.judged_run.is_some());
    let explained = status.trials.iter().any(|trial| !trial.causes.is_empty());
    (!judged_again && !explained).then(|| decode(status)).flatten()
}

/// The speed in the trial that was closed last, where the run has one worker, whose engine reports it.
fn decode(status: &PerfValidationStatus) -> Option<DecodeSpeed> {
    status.placement.as_ref().filter(|placement| placement.gpus == 1)?;
    let [worker] = status.workers.as_slice() else {
        return None;
    };
    Some(DecodeSpeed {
        token_ms: worker.token_ms.clone()?,
        batch: worker.batch.clone()?,
        gpu: device(status.placement.as_ref()).and_then(|device| device.uuid),
    })
}

fn device(placement: Option<&PlacementStatus>) -> Option<DeviceStatus> {
    match placement?.devices.as_slice() {
        [device] => Some(device.clone()),
        _ => None,
    }
}

/// The trial that was closed last next to the earlier runs that passed with the very same environment (model, image, settings,
/// product, driver) on the same GPU, as far as its UUID is known; `None` with fewer than three of these.
pub(crate) fn against(status: &PerfValidationStatus) -> Option<Earlier> {
    let now = decode(status)?;
    let environment = status.environment.as_ref().filter(|now| environment::is_known(now))?;
    let digest = environment::digest(environment);
    let itself = status.run.as_ref().and_then(|run| run.judged_run);
    let comparable = |entry: &&HistoryEntry| {
        entry.verdict == Some(Verdict::Passed)
            && entry.environment.as_ref() == Some(&digest)
            && Some(entry.run) != itself
    };
    let same_gpu = status.history.iter().filter(comparable).filter_map(|entry| {
        let decode = entry.decode.as_ref()?;
        (decode.gpu == now.gpu).then(|| Point::of(decode)).flatten()
    });
    let earlier: Vec<Point> = same_gpu.collect();
    let (percent, within) = compared(Point::of(&now)?, &earlier)?;
    Some(Earlier {
        percent,
        within,
        runs: earlier.len(),
        worker: status.workers.first()?.name.clone(),
        device: device(status.placement.as_ref()),
        now,
    })
}

/// Logarithms of the time per token and of the batch.
#[derive(Clone, Copy)]
struct Point {
    token_ms: f64,
    batch: f64,
}

impl Point {
    fn of(decode: &DecodeSpeed) -> Option<Self> {
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
    let mean = average(earlier.iter().map(|point| point.corrected()));
    let squares = earlier.iter().map(|point| (point.corrected() - mean).powi(2));
    let deviation = (squares.sum::<f64>() / (runs - 1.0)).sqrt().max(NOISE);
    let unequal = (now.batch - average(earlier.iter().map(|point| point.batch))).abs();
    let within = student(earlier.len() - 1) * deviation * (1.0 + 1.0 / runs).sqrt() + 2.0 * ELASTICITY.1 * unequal;
    let percent = 100.0 * (mean - now.corrected()).exp();
    Some((rounded(percent, 1)?, rounded(percent * within.exp_m1(), 1)?))
}

impl Earlier {
    /// Whether the whole interval lies below what counts as alike.
    pub(crate) fn is_slow(&self) -> bool {
        self.percent + self.within < ALIKE
    }

    /// UUID of the GPU.
    pub(crate) fn gpu(&self) -> Option<&str> {
        self.now.gpu.as_deref()
    }

    /// For the table of the workers.
    pub(crate) fn shown(&self) -> String {
        format!("{} ± {} of {}", show(self.percent), show(self.within), self.runs)
    }

    /// For evidence.
    pub(crate) fn in_words(&self) -> String {
        let gpu = match &self.device {
            Some(DeviceStatus { pool, name, uuid }) => match uuid {
                Some(uuid) => format!(" ({pool}/{name}, {uuid})"),
                None => format!(" (GPU {pool}/{name})"),
            },
            None => String::new(),
        };
        format!(
            "worker {}{gpu} decodes at {} % ± {} % of the speed of its {} earlier runs: {} ms from token to token with {} requests at a time",
            self.worker,
            show(self.percent),
            show(self.within),
            self.runs,
            self.now.token_ms,
            self.now.batch
        )
    }
}
