//! What the workers did during a trial, from their own metrics: the frontend has no per-worker in-flight gauge under
//! least-loaded routing.

mod exposition;
mod summary;

use serde::{Deserialize, Serialize};

pub use exposition::{ExpositionError, Scraped, read};
pub use summary::{WorkerSummary, summarize};

/// One worker, sampled once a second.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct WorkerSeries {
    /// IP address, the pod's.
    pub address: String,
    /// The worker's id in its own metrics (hex).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// In order of time.
    pub samples: Vec<Sample>,
}

/// One look at one worker; `[second, [in flight, started, finished, tokens]]` or `[second, "TimedOut"]` as JSON.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample(
    /// Seconds since the runner started.
    pub i64,
    /// What came back.
    pub Scrape,
);

/// What came back from a worker.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(untagged)]
pub enum Scrape {
    /// Its counters.
    Reading(Reading),
    /// No counters.
    Nothing(Silence),
}

/// Why no counters came back.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// No answer in time: a frozen process does not answer its metrics port either.
    TimedOut,
    /// Refused, or an answer without the counters.
    Failed,
}

/// Counters of one worker's `generate` endpoint, since its process started.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(from = "(i64, i64, i64, Option<i64>)", into = "(i64, i64, i64, Option<i64>)")]
pub struct Reading {
    /// Requests in work now.
    pub in_flight: i64,
    /// Requests ever begun.
    pub started: i64,
    /// Requests ever ended.
    pub finished: i64,
    /// Tokens ever generated, where the engine counts them.
    pub tokens: Option<i64>,
}

impl From<(i64, i64, i64, Option<i64>)> for Reading {
    fn from((in_flight, started, finished, tokens): (i64, i64, i64, Option<i64>)) -> Self {
        Self {
            in_flight,
            started,
            finished,
            tokens,
        }
    }
}

impl From<Reading> for (i64, i64, i64, Option<i64>) {
    fn from(reading: Reading) -> Self {
        (reading.in_flight, reading.started, reading.finished, reading.tokens)
    }
}

impl WorkerSeries {
    /// Merges neighbours until at most `limit` samples are left. Of each group the last counters, the highest in-flight
    /// and any silence survive.
    pub fn thin(&mut self, limit: usize) {
        let group = self.samples.len().div_ceil(limit.max(1)).max(1);
        self.samples = self.samples.chunks(group).filter_map(merge).collect();
    }

    /// The samples with counters, with their second.
    fn readings(&self) -> impl Iterator<Item = (i64, Reading)> {
        self.samples.iter().filter_map(|Sample(second, scrape)| match scrape {
            Scrape::Reading(reading) => Some((*second, *reading)),
            Scrape::Nothing(_) => None,
        })
    }

    fn silences(&self, kind: Silence) -> i64 {
        let silent = self.samples.iter().filter(|s| s.1 == Scrape::Nothing(kind)).count();
        i64::try_from(silent).unwrap_or(i64::MAX)
    }
}

fn merge(group: &[Sample]) -> Option<Sample> {
    if let Some(silent) = group.iter().find(|s| matches!(s.1, Scrape::Nothing(_))) {
        return Some(*silent);
    }
    let mut merged = *group.last()?;
    if let Scrape::Reading(last) = &mut merged.1 {
        for sample in group {
            if let Scrape::Reading(reading) = sample.1 {
                last.in_flight = last.in_flight.max(reading.in_flight);
            }
        }
    }
    Some(merged)
}
