//! Noise that earlier runs show: how much the throughput varies between trials and between runs.

use perfval_api::{EarlierRun, PerfValidationStatus};

use crate::environment;
use crate::history::Numbers;
use crate::stats::{count, mean, squares};

/// Fewest earlier runs that show the noise. With fewer the claim is too cautious: with five it held in 99.5 of 100 simulated runs at
/// a noise of 1 and 2.5 %.
pub const EARLIER_RUNS: usize = 9;
/// Two trials vary this many times as much as usual by chance in 1 of 20 runs, and more trials hardly ever.
const UNUSUAL: f64 = 2.0;

/// A variance (of the logarithm of a number) that was estimated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Variance {
    pub value: f64,
    /// Degrees of freedom.
    pub degrees: usize,
}

/// Noise of one deployment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Noise {
    /// Between the trials of one run.
    pub trials: Variance,
    /// Between the means of runs.
    pub runs: Variance,
    /// Mean over the runs of one divided by the number of trials.
    pub one_over_trials: f64,
}

impl Noise {
    /// The noise that this run and those before it in the same environment show; `None` if they are too few, or if the trials of
    /// this run (standard deviation `own`) vary more than before.
    pub(super) fn measured(status: &PerfValidationStatus, own: f64) -> Option<Self> {
        let earlier = environment::comparable_runs(status);
        let earlier: Vec<RunThroughput> = earlier.filter_map(RunThroughput::earlier).collect();
        let now = RunThroughput::now(&Numbers::new(status))?;
        if earlier.len() < EARLIER_RUNS {
            return None;
        }
        let runs: Vec<RunThroughput> = earlier.into_iter().chain([now]).collect();
        let noise = Self::between(&runs)?;
        (own <= UNUSUAL * noise.trials.value.sqrt()).then_some(noise)
    }

    fn between(runs: &[RunThroughput]) -> Option<Self> {
        let degrees: usize = runs.iter().map(|run| run.trials - 1).sum();
        let within: f64 = runs.iter().map(|run| count(run.trials - 1) * run.spread.powi(2)).sum();
        let means: Vec<f64> = runs.iter().map(|run| run.mean.ln()).collect();
        let noise = Self {
            trials: Variance {
                value: within / count(degrees),
                degrees,
            },
            runs: Variance {
                value: squares(&means) / count(runs.len() - 1),
                degrees: runs.len() - 1,
            },
            one_over_trials: runs.iter().map(|run| 1.0 / count(run.trials)).sum::<f64>() / count(runs.len()),
        };
        (noise.trials.value.is_finite() && noise.runs.value.is_finite()).then_some(noise)
    }
}

/// Throughput of one run.
struct RunThroughput {
    mean: f64,
    /// Standard deviation between its trials (part of the mean).
    spread: f64,
    trials: usize,
}

impl RunThroughput {
    fn earlier(entry: &EarlierRun) -> Option<Self> {
        let spread = entry.throughput_spread.as_ref()?.parse::<f64>().ok()? / 100.0;
        let mean = entry.throughput.as_ref()?.parse::<f64>().ok()?;
        let trials = usize::try_from(entry.trials?).ok()?;
        (trials > 1 && mean > 0.0).then_some(Self { mean, spread, trials })
    }

    fn now(numbers: &Numbers) -> Option<Self> {
        let values = numbers.throughputs();
        let (mean, spread) = (mean(&values), numbers.throughput_spread()?);
        (mean > 0.0).then_some(Self {
            mean,
            spread,
            trials: values.len(),
        })
    }
}
