use serde::{Deserialize, Serialize};

/// One worker, sampled once a second.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct WorkerSeries {
    /// IP address, the pod's.
    pub address: String,
    /// In order of time.
    pub samples: Vec<Sample>,
}

/// One look at one worker; `[second, [in flight, started, finished, …]]` or `[second, "TimedOut"]` as JSON.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample(
    /// Seconds since the runner started, up to a week.
    #[serde(deserialize_with = "crate::number::second")]
    pub i64,
    /// Result of the scrape.
    pub Scrape,
);

/// Result of one scrape of a worker.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(untagged)]
pub enum Scrape {
    /// Its counters.
    Reading(Reading),
    /// No counters.
    Nothing(Silence),
}

/// Reason why no counters came back.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// No answer in time: a frozen process does not answer its metrics port either.
    TimedOut,
    /// Refused, or an answer without the counters.
    Failed,
}

/// Counters and gauges of one worker's `generate` endpoint; counters since its process started. What a Dynamo version or
/// an engine does not export is absent, which is no evidence of anything.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(from = "ReadingRow", into = "ReadingRow")]
pub struct Reading {
    /// Requests in work now.
    pub in_flight: i64,
    /// Requests ever begun.
    pub started: i64,
    /// Requests ever ended.
    pub finished: i64,
    /// Tokens ever generated.
    pub tokens: Option<i64>,
    /// Bytes ever sent back. They grow inside a stream (measured on 1.4.2), so they show progress without tokens.
    pub bytes: Option<i64>,
    /// Time that all ended requests together spent in the worker (ms).
    pub busy_ms: Option<i64>,
    /// Requests that wait for the engine now.
    pub waiting: Option<i64>,
    /// Counters of the engine itself.
    pub engine: Engine,
}

/// vLLM's counters of its own work since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Engine {
    /// Tokens that followed another one of their request.
    pub gaps: Option<i64>,
    /// Time between these tokens and the ones before them, all together (µs).
    pub gap_us: Option<i64>,
    /// Steps of the engine; each makes one token for every request that it decodes.
    pub steps: Option<i64>,
    /// Time that requests spent in prefill (ms).
    pub prefill_ms: Option<i64>,
    /// Time that requests waited in the engine's own queue (ms).
    pub queue_ms: Option<i64>,
    /// Arithmetic of each GPU by the engine's own estimate (10⁹ operations); 0 unless vLLM runs with `--enable-mfu-metrics`.
    pub gflop: Option<i64>,
    /// Bytes that the memory of each GPU moved by the same estimate (MB).
    pub moved_mb: Option<i64>,
}

/// A reading as a JSON array: values missing at its end were not yet sampled when it was written. Earlier versions wrote the use of
/// the KV cache in the place before the last.
#[derive(Serialize, Deserialize)]
struct ReadingRow(
    #[serde(deserialize_with = "crate::number::bounded")] i64,
    #[serde(deserialize_with = "crate::number::bounded")] i64,
    #[serde(deserialize_with = "crate::number::bounded")] i64,
    #[serde(default, deserialize_with = "crate::number::bounded")] Option<i64>,
    #[serde(default, deserialize_with = "crate::number::bounded")] Option<i64>,
    #[serde(default, deserialize_with = "crate::number::bounded")] Option<i64>,
    #[serde(default, deserialize_with = "crate::number::bounded")] Option<i64>,
    #[serde(default, deserialize_with = "crate::number::bounded")] Option<i64>,
    #[serde(default, skip_serializing_if = "Tail::is_empty")] Tail,
);

/// Counters of the engine, in the order of [`Engine`]; empty if it counts none. Earlier versions wrote others in places 5 to 7.
#[derive(Serialize, Deserialize, Default)]
struct Tail(#[serde(deserialize_with = "crate::number::bounded")] Vec<Option<i64>>);

impl Tail {
    fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }
}

impl From<Engine> for Tail {
    fn from(engine: Engine) -> Self {
        Self(vec![
            engine.gaps,
            engine.gap_us,
            engine.steps,
            engine.prefill_ms,
            engine.queue_ms,
            None,
            None,
            None,
            engine.gflop,
            engine.moved_mb,
        ])
    }
}

impl From<Tail> for Engine {
    fn from(Tail(numbers): Tail) -> Self {
        let at = |index: usize| numbers.get(index).copied().flatten();
        Self {
            gaps: at(0),
            gap_us: at(1),
            steps: at(2),
            prefill_ms: at(3),
            queue_ms: at(4),
            gflop: at(8),
            moved_mb: at(9),
        }
    }
}

impl From<ReadingRow> for Reading {
    fn from(row: ReadingRow) -> Self {
        let ReadingRow(in_flight, started, finished, tokens, bytes, busy_ms, waiting, _, engine) = row;
        Self {
            in_flight,
            started,
            finished,
            tokens,
            bytes,
            busy_ms,
            waiting,
            engine: engine.into(),
        }
    }
}

impl From<Reading> for ReadingRow {
    fn from(reading: Reading) -> Self {
        Self(
            reading.in_flight,
            reading.started,
            reading.finished,
            reading.tokens,
            reading.bytes,
            reading.busy_ms,
            reading.waiting,
            None,
            reading.engine.into(),
        )
    }
}

impl WorkerSeries {
    /// Merges neighbours until at most `limit` samples are left. A group keeps its first silence, or without one its last
    /// counters and its highest gauges.
    pub fn thin(&mut self, limit: usize) {
        let group = self.samples.len().div_ceil(limit.max(1)).max(1);
        self.samples = self.samples.chunks(group).filter_map(merge).collect();
    }

    /// The samples with counters, with their second.
    pub fn readings(&self) -> impl DoubleEndedIterator<Item = (i64, Reading)> {
        self.samples.iter().filter_map(|Sample(second, scrape)| match scrape {
            Scrape::Reading(reading) => Some((*second, *reading)),
            Scrape::Nothing(_) => None,
        })
    }

    /// Second of the last reading that differs in this way from the one before it.
    pub(super) fn last_change(&self, differs: impl Fn(&Reading, &Reading) -> bool) -> Option<i64> {
        let readings: Vec<(i64, Reading)> = self.readings().collect();
        let last = readings.windows(2).rfind(|pair| differs(&pair[0].1, &pair[1].1))?;
        Some(last[1].0)
    }

    /// Samples without counters in the seconds that match.
    pub(super) fn silences(&self, kind: Silence, within: impl Fn(i64) -> bool) -> i64 {
        let silent = |s: &&Sample| within(s.0) && s.1 == Scrape::Nothing(kind);
        i64::try_from(self.samples.iter().filter(silent).count()).unwrap_or(i64::MAX)
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
                last.waiting = last.waiting.max(reading.waiting);
            }
        }
    }
    Some(merged)
}
