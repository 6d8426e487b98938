//! Deployments whose verdict is known beforehand.

use perfval_api::Verdict;

use super::deployment::{Deployment, Trials};
use super::run::{play, play_again};
use super::{RESOLUTION, Wrong};

/// Runs of each cell of a row with a goal: 13 wrong ones still show 2 %, one of 1,000 and more is known to 0.3 points.
const RUNS: usize = 1000;
/// Runs of each cell of a row that is only stated.
const FEWER: usize = 500;

/// Right verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// Must not fail.
    Healthy,
    /// Must not pass.
    Degraded,
}

/// One row: a deployment under both correlations.
pub struct Case {
    pub what: &'static str,
    pub truth: Truth,
    pub noise: f64,
    /// True if it lies within the range for which a goal is set.
    pub has_goal: bool,
    means: &'static [f64],
    stalls: f64,
    tail: f64,
    /// Soak, and judged again.
    kinds: &'static [(bool, bool)],
}

/// Ends of the runs of one cell.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cell {
    pub soak: bool,
    pub correlation: f64,
    pub passed: usize,
    pub failed: usize,
    pub trials: usize,
    pub wrong: Wrong,
}

const MEASURED: &[(bool, bool)] = &[(false, false), (true, false)];
const AGAIN: &[(bool, bool)] = &[(false, true)];
const ABOVE: f64 = RESOLUTION;
const BELOW: f64 = -RESOLUTION;

/// Every row.
pub fn cases() -> Vec<Case> {
    use Truth::{Degraded, Healthy};
    let case = |what, truth, noise, means| Case {
        what,
        truth,
        noise,
        has_goal: true,
        means,
        stalls: 0.05,
        tail: 0.5,
        kinds: MEASURED,
    };
    let mut cases = Vec::new();
    for noise in [2.5, 4.3] {
        cases.extend([
            case("one average, 5 % above its gate", Healthy, noise, &[ABOVE]),
            case("six averages, each 5 % above its gate", Healthy, noise, &[ABOVE; 6]),
            case("one average, 5 % below its gate", Degraded, noise, &[BELOW]),
            case(
                "six averages, one 5 % below its gate, five 5 % above",
                Degraded,
                noise,
                &[BELOW, ABOVE, ABOVE, ABOVE, ABOVE, ABOVE],
            ),
        ]);
    }
    cases.extend([
        case("two averages, each 25 % above its gate", Healthy, 4.3, &[25.0; 2]),
        case("one average, 20 % below its gate", Degraded, 4.3, &[-20.0]),
        Case {
            tail: 5.0 / 3.0,
            ..case(
                "TTFT p99 two thirds above its limit in a usual trial",
                Degraded,
                4.3,
                &[25.0],
            )
        },
        Case {
            kinds: AGAIN,
            ..case(
                "judged again: six averages, each 5 % above its gate",
                Healthy,
                4.3,
                &[ABOVE; 6],
            )
        },
        Case {
            kinds: AGAIN,
            ..case("judged again: one average, 5 % below its gate", Degraded, 4.3, &[BELOW])
        },
    ]);
    let stated = |what, truth, noise, means| Case {
        has_goal: false,
        ..case(what, truth, noise, means)
    };
    cases.extend([
        Case {
            stalls: 1.0 / 3.0,
            ..stated(
                "25 % above its gate, a third of the trials stalls",
                Healthy,
                4.3,
                &[25.0],
            )
        },
        stated("one average, 2 % above its gate", Healthy, 4.3, &[2.0]),
        stated("one average, 2 % below its gate", Degraded, 4.3, &[-2.0]),
        stated("one average, 5 % above its gate", Healthy, 6.0, &[ABOVE]),
        stated("one average, 5 % below its gate", Degraded, 6.0, &[BELOW]),
        stated("one average, 5 % above its gate", Healthy, 10.0, &[ABOVE]),
        stated("one average, 5 % below its gate", Degraded, 10.0, &[BELOW]),
    ]);
    cases
}

impl Case {
    /// Both correlations without a soak, then with one where it has any.
    pub fn play(&self, seed: usize) -> Vec<Cell> {
        let cells = self.kinds.iter().flat_map(|kind| [(*kind, 0.0), (*kind, 0.4)]);
        cells
            .map(|((soak, again), correlation)| self.cell(soak, again, correlation, seed))
            .collect()
    }

    fn cell(&self, soak: bool, again: bool, correlation: f64, seed: usize) -> Cell {
        let deployment = Deployment {
            stalls: self.stalls,
            tail: self.tail,
            ..Deployment::new(self.means.to_vec(), self.noise, correlation)
        };
        let spec = deployment.spec(soak);
        let mut cell = Cell {
            soak,
            correlation,
            ..Cell::default()
        };
        for run in 0..if self.has_goal { RUNS } else { FEWER } {
            let mut trials = Trials::new(&deployment, u64::try_from(seed * 100_000 + run).unwrap_or(0));
            let next = || trials.next_record(Vec::new());
            let ended = if again {
                play_again(&spec, next)
            } else {
                play(&spec, 8, next)
            };
            let (passed, failed) = (ended.verdict == Verdict::Passed, ended.verdict == Verdict::Failed);
            cell.passed += usize::from(passed);
            cell.failed += usize::from(failed);
            cell.trials += ended.status.state.trials.len();
            cell.wrong
                .add(if self.truth == Truth::Healthy { failed } else { passed });
        }
        cell
    }
}
