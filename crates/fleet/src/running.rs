//! Past of a GPU in one environment, as a `NodePerformance` keeps it.

use perfval_api::fleet::StatisticsText;
use serde::{Deserialize, Serialize};

use crate::centre::{mean, trimmed_mean};
use crate::first_runs::first_means;
use crate::measurement::MOST_TRIALS;
use crate::numbers::{count, loss, round};
use crate::past::{GPU_IN_CONTROL, KNOWN, OUTLIER, Past, REFUTED};
use crate::prior::prior;
use crate::shared::SharedPast;

/// Standard deviations of a run below the mean from which on two runs in a row show a loss, which is not learned as normal.
const LOSS: f64 = 2.0;
/// Number of GPUs up to which one of them moves the trimmed mean of all.
const FEW_GPUS: usize = 4;
/// Most runs that confirm one run.
const MOST_CONFIRMATIONS: u32 = 3;

/// Statistics of the decode speeds of one GPU in one environment. The newest run stays beside them until the next one, because
/// it is compared with the past before it. The names are short, because 8 GPUs fit into 4 KiB.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub(crate) struct Running {
    /// Digest of the environment. Another environment starts new statistics.
    #[serde(rename = "e")]
    environment: Option<String>,
    #[serde(flatten)]
    past: Past,
    /// Speeds of the first runs, until the mean is known: one outlier among them would stay in it.
    #[serde(default, rename = "f", skip_serializing_if = "Vec::is_empty")]
    first: Vec<f64>,
    /// Runs that were not learned.
    #[serde(default, rename = "s", skip_serializing_if = "is_zero")]
    skipped: u32,
    #[serde(flatten)]
    newest: Option<Newest>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Newest run of a GPU (logarithms).
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
struct Newest {
    /// Mean speed of its trials.
    #[serde(rename = "v")]
    speed: f64,
    /// Number of its trials.
    #[serde(rename = "t")]
    trials: usize,
    /// Difference from the past, without the part that the other GPUs of the node share.
    r: f64,
    /// Speed in each trial of the last run that was to confirm a loss.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    c: Vec<f64>,
    /// Difference of that run as in `r`.
    #[serde(default, rename = "d", skip_serializing_if = "Option::is_none")]
    confirmed: Option<f64>,
    /// Runs before that one which were to confirm the same loss.
    #[serde(default, rename = "k", skip_serializing_if = "is_zero")]
    earlier: u32,
    /// True for the first run of the machine since its boot or in its environment.
    #[serde(default, rename = "b", skip_serializing_if = "std::ops::Not::not")]
    is_cold: bool,
}

/// Standard deviations of one run of a GPU (logarithms), from the prior of its product.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deviations {
    /// Of its speed.
    speed: f64,
    /// Of its difference from the node's other GPUs.
    beside: f64,
    /// Of the part that the GPUs share.
    shared: f64,
}

impl Deviations {
    /// Deviations on a node with `gpus` GPUs of a product.
    pub(crate) fn new(product: &str, gpus: usize) -> Self {
        let spread = prior(product);
        let speed = spread.trial.hypot(spread.pass).hypot(spread.noise);
        let beside = match gpus {
            0 | 1 => speed,
            _ => spread.noise * (1.0 + 1.0 / count(gpus - 1)).sqrt(),
        };
        let shared = spread.trial.hypot(spread.pass);
        let shared = shared.hypot(spread.noise / count(gpus.max(1)).sqrt());
        Self { speed, beside, shared }
    }
}

impl Running {
    /// Statistics without a run.
    pub(crate) fn new(environment: Option<&str>) -> Self {
        Self {
            environment: environment.map(str::to_owned),
            ..Self::default()
        }
    }

    /// Reads stored statistics; `None` for those of another version or environment.
    pub(crate) fn read(stored: &StatisticsText, environment: Option<&str>) -> Option<Self> {
        let stored: Self = stored.read()?;
        let same = environment.is_some() && stored.environment.as_deref() == environment;
        same.then_some(stored)
    }

    /// Number of runs, without confirmations.
    pub(crate) fn count_runs(&self) -> u32 {
        let newest = u32::from(self.newest.is_some());
        self.past.count.saturating_add(self.skipped).saturating_add(newest)
    }

    /// Statistics before the newest run.
    pub(crate) fn past(&self) -> Past {
        self.past
    }

    /// Speeds (logarithms): the mean in each trial of the newest run, and the trials of its confirmation.
    pub(crate) fn newest(&self) -> Option<(Vec<f64>, &[f64])> {
        let newest = self.newest.as_ref()?;
        Some((vec![newest.speed; newest.trials.min(MOST_TRIALS)], &newest.c))
    }

    /// True if the newest run is the first one of the machine since its boot or in its environment.
    pub(crate) fn is_cold(&self) -> bool {
        self.newest.as_ref().is_some_and(|newest| newest.is_cold)
    }

    /// Runs that were to confirm the newest one.
    pub(crate) fn confirmations(&self) -> u32 {
        let confirmed = self.newest.as_ref().filter(|newest| !newest.c.is_empty());
        confirmed.map_or(0, |newest| newest.earlier + 1)
    }

    /// Decode speed (percent of the mean of the earlier runs), once there are enough of them. `trials` are logarithms.
    pub(crate) fn compare(&self, trials: &[f64]) -> Option<f64> {
        let speed = mean(trials).filter(|_| self.past.count >= KNOWN)?;
        Some(100.0 * (speed - self.past.mean).exp())
    }

    /// Difference (logarithm) of a run from the past, with the part that the other GPUs of the node share.
    pub(crate) fn residual(&self, trials: &[f64]) -> Option<f64> {
        let speed = mean(trials).filter(|_| self.past.count > 0)?;
        Some(speed - self.past.mean)
    }

    /// Returns true if the newest run is not to be learned: that of a cold machine, or a loss that two deployments show, which would be
    /// normal after a few runs.
    fn is_skipped(&self, deviations: Deviations) -> bool {
        let Some(newest) = &self.newest else { return false };
        // The mean of few runs may be wrong, and a loss beside it would never be learned.
        let is_known = self.past.count >= KNOWN;
        let is_slow = |speed: f64| is_known && speed - self.past.mean < -LOSS * deviations.speed;
        newest.is_cold || is_slow(newest.speed) && mean(&newest.c).is_some_and(is_slow)
    }

    /// Statistics with the newest run learned, so that another one can be added.
    #[must_use]
    fn learn(self, node: NodeRun, deviations: Deviations) -> Self {
        let Some(newest) = &self.newest else { return self };
        let is_skipped = node.is_skipped || self.is_skipped(deviations);
        let (mut learned, mut first) = (self.past, self.first.clone());
        if !is_skipped {
            // The sum that comes back after a suspicion is not that of a new GPU.
            let is_known = learned.count >= KNOWN;
            let speed = newest.speed - if is_known { node.suspected } else { 0.0 };
            learned = learned.update(speed, newest.r - node.common, deviations.beside);
            first.push(newest.speed);
        }
        let is_refuted = newest
            .confirmed
            .is_some_and(|residual| residual - node.common > -loss(REFUTED));
        if is_refuted && learned.is_drifting(deviations.beside, GPU_IN_CONTROL) {
            learned = learned.settle();
        }
        Self {
            past: learned,
            first,
            skipped: self.skipped.saturating_add(u32::from(is_skipped)),
            newest: None,
            ..self
        }
    }

    /// JSON that a `NodePerformance` stores.
    pub(crate) fn to_text(&self) -> Option<StatisticsText> {
        StatisticsText::new(self)
    }
}

/// Part of a run that is not the GPU's own (logarithms).
#[derive(Clone, Copy, Debug, Default)]
struct NodeRun {
    /// True if no GPU learns the run.
    is_skipped: bool,
    /// That a suspected drift of the node may have caused. It is not learned as normal.
    suspected: f64,
    /// That all nodes share, as far as the residual of the GPU contains it.
    common: f64,
}

/// Learns the newest run of all GPUs of a node. `common` is the difference from their pasts that all nodes share, if there are enough
/// of them.
pub(crate) fn learn_run(
    mut gpus: Vec<(Running, Vec<f64>)>,
    node: &mut SharedPast,
    common: Option<f64>,
    deviations: Deviations,
) -> Vec<(Running, Vec<f64>)> {
    let mut run = NodeRun::default();
    let is_suspected = |(gpu, _): &(Running, Vec<f64>)| gpu.past.is_suspected(deviations.beside);
    let skipped = gpus.iter().filter(|(gpu, _)| gpu.is_skipped(deviations)).count();
    // A loss of the node close to the limit would be learned by the GPUs that do not reach it.
    run.is_skipped = skipped > 0 && 2 * skipped >= gpus.len();
    if run.is_skipped {
        node.skip();
    } else {
        // One slow GPU of few moves the node, and the means of the others must not follow it. The only GPU withholds by itself.
        let withholds = gpus.len() > FEW_GPUS || gpus.len() > 1 && !gpus.iter().any(is_suspected);
        run.suspected = node.learn(common, deviations.shared.powi(2), withholds);
    }
    if gpus.len() == 1 {
        // Its residual contains what all nodes share.
        run.common = common.unwrap_or_default();
    }
    for (gpu, _) in &mut gpus {
        *gpu = std::mem::take(gpu).learn(run, deviations);
    }
    let first: Vec<&[f64]> = gpus.iter().map(|(gpu, _)| gpu.first.as_slice()).collect();
    let runs = first.first().map_or(0, |first| first.len());
    if let Some(means) = first_means(&first, OUTLIER * deviations.beside) {
        node.set_first(runs, means.shared_m2);
        for (found, (gpu, _)) in means.gpus.into_iter().zip(&mut gpus) {
            // After its first runs a GPU keeps the newest one alone.
            if usize::try_from(gpu.past.count) == Ok(runs) {
                gpu.past = gpu.past.with_first(found.mean, found.m2);
            }
        }
    }
    for (gpu, _) in &mut gpus {
        if gpu.past.count >= KNOWN {
            gpu.first.clear();
        }
    }
    gpus
}

/// Adds one run to the learned statistics of the GPUs of a node, each with the speeds of its trials (logarithms).
pub(crate) fn add_run(gpus: &mut [(Running, Vec<f64>)], is_cold: bool) {
    for (residual, (gpu, trials)) in residuals_beside(gpus).into_iter().zip(gpus) {
        gpu.newest = Some(Newest {
            speed: round(mean(trials).unwrap_or_default()),
            trials: trials.len(),
            r: residual,
            c: Vec::new(),
            confirmed: None,
            earlier: 0,
            is_cold,
        });
    }
}

/// Adds a confirmation of the newest run. It is not learned: it was made because that run was slow, and each run counts once. `None`
/// if some GPU has no run to confirm.
pub(crate) fn confirm_run(gpus: &[(Running, Vec<f64>)], is_cold: bool) -> Option<Vec<(Running, Vec<f64>)>> {
    let confirm = |(residual, (gpu, trials)): (f64, &(Running, Vec<f64>))| {
        let earlier = gpu.confirmations();
        let newest = gpu.newest.clone().filter(|_| earlier < MOST_CONFIRMATIONS)?;
        let newest = Newest {
            c: trials.iter().copied().map(round).collect(),
            confirmed: Some(residual),
            earlier,
            // The machine may have booted since that run.
            is_cold: newest.is_cold || is_cold,
            ..newest
        };
        let confirmed = Running {
            newest: Some(newest),
            ..gpu.clone()
        };
        Some((confirmed, trials.clone()))
    };
    residuals_beside(gpus).into_iter().zip(gpus).map(confirm).collect()
}

/// Differences of the GPUs from their pasts, of those that have one.
pub(crate) fn residuals(gpus: &[(Running, Vec<f64>)]) -> Vec<f64> {
    gpus.iter().filter_map(|(gpu, trials)| gpu.residual(trials)).collect()
}

/// Difference of each GPU from its past, without the part that the other GPUs of the node share.
fn residuals_beside(gpus: &[(Running, Vec<f64>)]) -> Vec<f64> {
    let residuals: Vec<Option<f64>> = gpus.iter().map(|(gpu, trials)| gpu.residual(trials)).collect();
    let beside = |at: usize| {
        let others = residuals.iter().enumerate().filter(|(other, _)| *other != at);
        let others: Vec<f64> = others.filter_map(|(_, residual)| *residual).collect();
        let shared = trimmed_mean(&others).unwrap_or_default();
        round(residuals[at].unwrap_or_default() - shared)
    };
    (0..gpus.len()).map(beside).collect()
}

#[cfg(test)]
mod tests;
