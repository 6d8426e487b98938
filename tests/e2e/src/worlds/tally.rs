//! What many worlds came to.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::play::Played;

/// Counts of what was played.
#[derive(Debug, Default)]
pub struct Tally {
    worlds: usize,
    broken: Vec<u64>,
    happened: BTreeMap<String, usize>,
    runs: i64,
    ends: BTreeMap<String, usize>,
    longest: Duration,
}

impl Tally {
    /// Adds a world.
    pub fn add(&mut self, played: &Played) {
        self.worlds += 1;
        self.broken.extend(played.broken.as_ref().map(|_| played.world.seed));
        for (step, told) in played.world.steps.iter().zip(&played.told) {
            let shown = format!("{:?}", step.what);
            let name = shown.split('(').next().unwrap_or_default().to_owned();
            let came = if told.ends_with(": done") {
                name
            } else {
                format!("{name} (came to nothing)")
            };
            *self.happened.entry(came).or_default() += 1;
        }
        for status in &played.statuses {
            self.runs += status["run"]["number"].as_i64().unwrap_or_default();
            let word = |field: &str| status[field].as_str().unwrap_or("-").to_owned();
            *self
                .ends
                .entry(format!("{} {} {}", word("phase"), word("verdict"), word("reason")))
                .or_default() += 1;
        }
        self.longest = self.longest.max(played.took);
    }

    /// Whether every law held in every world.
    pub fn is_clean(&self) -> bool {
        self.broken.is_empty()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} worlds, the longest {} s; objects that rested were in their {} runs in all",
            self.worlds,
            self.longest.as_secs(),
            self.runs
        )?;
        writeln!(f, "happened: {}", counts(&self.happened))?;
        writeln!(f, "ended: {}", counts(&self.ends))?;
        write!(f, "broken: {:?}", self.broken)
    }
}

fn counts(of: &BTreeMap<String, usize>) -> String {
    let shown: Vec<String> = of.iter().map(|(what, count)| format!("{what} {count}")).collect();
    shown.join(", ")
}
