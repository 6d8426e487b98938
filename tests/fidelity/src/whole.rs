//! Whole runs of the shipped rule, played on made-up deployments: how often a healthy one fails, a degraded one passes, and a
//! healthy GPU is blamed, beside what the pages promise. Every trial goes through the operator's own code, from the report
//! to the verdict.

mod blame;
mod cases;
mod claims;
pub(crate) mod deployment;
mod page;
mod run;

use perfval_verdict::trials::averages::RESOLUTION;

pub use page::page;

use crate::goals::at_least;

/// Accepted share of wrong verdicts.
const WRONG: f64 = 0.02;
/// Accepted share of runs that blame a healthy GPU.
const BLAMED: f64 = 0.01;
/// Least share of runs in which a claim of "95 of 100" has to hold.
const HELD: f64 = 0.93;
/// Largest share of runs in which a claim of "about 95 of 100" may hold: one that always holds says less than it could.
const SURE: f64 = 0.99;

/// Wrong runs of all that were played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wrong {
    runs: usize,
    of: usize,
}

impl Wrong {
    fn add(&mut self, is_wrong: bool) {
        self.runs += usize::from(is_wrong);
        self.of += 1;
    }

    /// Largest share that is compatible with what was seen in 5 of 100 cases.
    fn at_most(self) -> f64 {
        1.0 - at_least(self.of - self.runs, self.of)
    }

    fn share(self) -> f64 {
        crate::published::share(self.runs, self.of)
    }

    /// Result for a goal: met beyond doubt, not refuted, or missed.
    fn against(self, goal: f64) -> &'static str {
        if self.at_most() <= goal {
            "met"
        } else if self.share() <= goal {
            "not refuted"
        } else {
            "**missed**"
        }
    }
}

/// Plays every item of a list, on all cores; the answers are in the order of the list.
fn on_all_cores<T: Sync, R: Send>(items: &[T], play: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut answers: Vec<(usize, R)> = std::thread::scope(|scope| {
        let play = &play;
        let part = |core: usize| {
            scope.spawn(move || {
                let own = items.iter().enumerate().skip(core).step_by(cores);
                own.map(|(at, item)| (at, play(at, item))).collect::<Vec<_>>()
            })
        };
        let parts: Vec<_> = (0..cores).map(part).collect();
        parts
            .into_iter()
            .flat_map(|part| part.join().expect("no run panics"))
            .collect()
    });
    answers.sort_by_key(|(at, _)| *at);
    answers.into_iter().map(|(_, answer)| answer).collect()
}
