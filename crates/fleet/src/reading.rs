//! Measurements of one run, and their logarithms.

use std::collections::BTreeMap;

use chrono::serde::ts_seconds_option;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::centre::{mean, median, trimmed_mean};
use crate::numbers::count;
use crate::past::Past;

/// One node in one run: everything that was measured in one deployment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodePass {
    /// Times of the runs of the node, as far as they are known.
    pub times: RunTimes,
    /// True for the first run of a machine since its boot or in its environment: on real GPUs it is 5 to 9 % slower.
    pub is_cold: bool,
    /// Number of new deployments that measured the node again up to this one; 0 for a screen.
    pub confirmations: u32,
    /// True if the run is not Passed, so that no baseline learns it.
    pub is_unsound: bool,
    /// Mean speed of the node as a whole in the runs before.
    pub past: Past,
    /// Residuals of those runs in the part that the GPUs share. It may have fewer runs.
    pub shared: Past,
    /// Decode speeds by GPU UUID.
    pub gpus: BTreeMap<String, Speeds>,
}

/// Times of the runs of a node.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTimes {
    /// Begin of the newest run that confirms none. While confirmed losses are in a row, that of the first of them.
    #[serde(
        default,
        rename = "b",
        with = "ts_seconds_option",
        skip_serializing_if = "Option::is_none"
    )]
    pub began_at: Option<DateTime<Utc>>,
    /// End of the newest run, which may be a confirmation.
    #[serde(
        default,
        rename = "t",
        with = "ts_seconds_option",
        skip_serializing_if = "Option::is_none"
    )]
    pub ended_at: Option<DateTime<Utc>>,
}

/// Speeds of one GPU, one per trial of the deployment, and its own past in this stratum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Speeds {
    /// Speed in each trial, in any unit that the stratum shares; more is better. Others than positive numbers are ignored.
    pub trials: Vec<f64>,
    /// Statistics of the runs before this one; empty at first.
    pub past: Past,
}

/// Variance of the median of three trials beside that of their mean; 1.35 for three normal ones, 1.44 for five.
const MEDIAN: f64 = 1.4;
/// Fewest trials for a median.
const TRIALS: usize = 3;

/// Average over the trials of one deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Average {
    Mean,
    /// One of three trials may be an outlier. The tail of the median has twice the degrees of freedom of one trial's.
    Median,
}

/// Logarithms of one node, averaged over the trials.
#[derive(Clone, Debug)]
pub(crate) struct NodeSummary<'a> {
    pub(crate) times: RunTimes,
    pub(crate) whole: MeanSpeed,
    /// Residuals of the runs before, in the part that the GPUs share.
    pub(crate) shared: Past,
    pub(crate) gpus: Vec<(&'a str, MeanSpeed)>,
}

/// Mean logarithm of one subject.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeanSpeed {
    pub(crate) mean: f64,
    /// Number of trials that a mean would need to vary as little.
    pub(crate) trials: f64,
    /// True if the mean is the median of enough trials.
    pub(crate) is_median: bool,
    pub(crate) past: Past,
}

impl MeanSpeed {
    fn new(speeds: &Speeds, average: Average) -> Option<Self> {
        let usable = speeds.trials.iter().filter(|speed| speed.is_finite() && **speed > 0.0);
        let logarithms: Vec<f64> = usable.map(|speed| speed.ln()).collect();
        let trials = count(logarithms.len());
        let is_median = average == Average::Median && logarithms.len() >= TRIALS;
        let (mean, trials) = if is_median {
            (median(&logarithms)?, trials / MEDIAN)
        } else {
            (mean(&logarithms)?, trials)
        };
        Some(Self {
            mean,
            trials,
            is_median,
            past: speeds.past,
        })
    }

    /// As certain as the average over this number of trials.
    fn with_trials(self, trials: usize, average: Average) -> Self {
        let is_median = average == Average::Median && trials >= TRIALS;
        let trials = count(trials);
        Self {
            trials: if is_median { trials / MEDIAN } else { trials },
            is_median,
            ..self
        }
    }

    /// Difference from the own past, if that has that number of runs.
    pub(crate) fn residual(&self, runs: u32) -> Option<f64> {
        (self.past.count >= runs.max(1)).then_some(self.mean - self.past.mean)
    }
}

impl<'a> NodeSummary<'a> {
    /// The same speeds, as certain as averages over this number of trials.
    pub(crate) fn with_trials(self, trials: usize, average: Average) -> Self {
        let gpus = self.gpus.into_iter();
        Self {
            times: self.times,
            whole: self.whole.with_trials(trials, average),
            shared: self.shared,
            gpus: gpus
                .map(|(uuid, value)| (uuid, value.with_trials(trials, average)))
                .collect(),
        }
    }

    /// The node is the trimmed mean of its GPUs, so that one slow GPU is not a slow node. `None` without any speed.
    pub(crate) fn new(pass: &'a NodePass, average: Average) -> Option<Self> {
        let gpus = pass.gpus.iter();
        let gpus: Vec<(&str, MeanSpeed)> = gpus
            .filter_map(|(uuid, speeds)| Some((uuid.as_str(), MeanSpeed::new(speeds, average)?)))
            .collect();
        let means: Vec<f64> = gpus.iter().map(|(_, value)| value.mean).collect();
        let whole = MeanSpeed {
            mean: trimmed_mean(&means)?,
            trials: gpus.iter().map(|(_, value)| value.trials).fold(f64::INFINITY, f64::min),
            is_median: gpus.iter().all(|(_, value)| value.is_median),
            past: pass.past,
        };
        Some(Self {
            times: pass.times,
            whole,
            shared: pass.shared,
            gpus,
        })
    }
}
