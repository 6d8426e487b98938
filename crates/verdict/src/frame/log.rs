use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Framed, Outcome, TrialRecord};
use crate::gpus::GpuSeries;
use crate::node_facts::NodeFacts;
use crate::number::short;
use crate::requests::{RequestTimes, if_understood};
use crate::workers::WorkerSeries;

/// Longest payload (bytes): one of an hour on eight GPUs has 300 KB. Logs of all trials of a run are held at once.
pub const FRAME_BYTES: usize = 1_500_000;

/// Most objects and lists in a payload: 2,000 samples of workers and 800 of GPUs have 7,600. A byte of nested lists takes 64
/// while it is read.
const PARTS: usize = 50_000;

/// Content of the log between its two lines.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub struct Payload {
    /// The record, whole.
    pub record: TrialRecord,
    /// AIPerf's export as it was written, on one line; only with a report, and where it fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aiperf: Option<Box<RawValue>>,
    /// The workers' samples.
    #[serde(default, deserialize_with = "short", skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerSeries>,
    /// The GPUs' samples.
    #[serde(default, deserialize_with = "short", skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuSeries>,
    /// Times of single requests; absent if AIPerf recorded none.
    #[serde(default, deserialize_with = "if_understood", skip_serializing_if = "Option::is_none")]
    pub requests: Option<RequestTimes>,
    /// The machine of the load generator; absent in records of older runners.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeFacts>,
}

impl Payload {
    /// A record alone.
    pub fn new(record: TrialRecord) -> Self {
        Self {
            record,
            aiperf: None,
            workers: Vec::new(),
            gpus: Vec::new(),
            requests: None,
            node: None,
        }
    }

    /// Takes the export over unchanged but for line breaks, which JSON has only between values.
    pub fn with_export(mut self, export: &str) -> Result<Self, serde_json::Error> {
        let line: String = export.lines().map(str::trim).collect();
        self.aiperf = Some(RawValue::from_string(line)?);
        Ok(self)
    }
}

/// The end of the runner's log. A run without a report has its own lines, so that no search for a result finds one.
/// An export that would make it longer than [`FRAME_BYTES`] is left out: every judged number is in the record.
pub fn frame(payload: &Payload) -> Result<String, serde_json::Error> {
    let (kind, nonce) = (kind(&payload.record), &payload.record.nonce);
    let mut json = serde_json::to_string(payload)?;
    if json.len() > FRAME_BYTES && payload.aiperf.is_some() {
        let aiperf = None;
        json = serde_json::to_string(&Payload {
            aiperf,
            ..payload.clone()
        })?;
    }
    Ok(format!("{}\n{json}\n{}\n", begin(kind, nonce), end(kind, nonce)))
}

/// Looks for the record of this trial in a log: the last complete pair of lines counts.
pub fn find(log: &str, nonce: &str) -> Framed<Payload> {
    let lines: Vec<&str> = log.lines().map(str::trim_end).collect();
    let found = KINDS.iter().filter_map(|kind| last_pair(&lines, kind, nonce));
    let Some((at, kind, inside)) = found.max_by_key(|(at, ..)| *at) else {
        let ours = |kind: &&str| lines.iter().any(|l| *l == begin(kind, nonce) || *l == end(kind, nonce));
        return if KINDS.iter().any(ours) {
            Framed::Truncated
        } else {
            Framed::Missing
        };
    };
    let [payload] = inside else {
        return Framed::Malformed(format!("{} lines instead of one before line {at}", inside.len()));
    };
    if payload.len() > FRAME_BYTES {
        let bytes = payload.len();
        return Framed::Malformed(format!("the record has {bytes} bytes, more than {FRAME_BYTES}"));
    }
    if let Err(why) = check_parts(payload.as_bytes()) {
        return Framed::Malformed(why);
    }
    match serde_json::from_str::<Payload>(payload) {
        Ok(payload) if payload.record.nonce != nonce => Framed::Malformed("the record has another nonce".to_owned()),
        Ok(payload) if self::kind(&payload.record) != kind => {
            Framed::Malformed(format!("the record between {kind} lines is of another kind"))
        }
        Ok(payload) => Framed::Complete(payload),
        Err(e) => Framed::Malformed(e.to_string()),
    }
}

/// Refuses a payload with more objects and lists than a runner prints, before it is read.
pub(crate) fn check_parts(payload: &[u8]) -> Result<(), String> {
    let parts = payload.iter().filter(|byte| matches!(byte, b'{' | b'[')).count();
    if parts > PARTS {
        return Err(format!("the record has {parts} objects and lists, more than {PARTS}"));
    }
    Ok(())
}

const RESULT: &str = "RESULT";
const FAILURE: &str = "FAILURE";
const KINDS: [&str; 2] = [RESULT, FAILURE];

fn kind(record: &TrialRecord) -> &'static str {
    match record.outcome {
        Outcome::Report(_) => RESULT,
        Outcome::Failure(_) => FAILURE,
    }
}

fn begin(kind: &str, nonce: &str) -> String {
    format!("=====PERFVAL-{kind}-BEGIN {nonce}=====")
}

fn end(kind: &str, nonce: &str) -> String {
    format!("=====PERFVAL-{kind}-END {nonce}=====")
}

/// End of the last pair of a kind, and the lines inside it.
fn last_pair<'a>(
    lines: &'a [&'a str],
    kind: &'static str,
    nonce: &str,
) -> Option<(usize, &'static str, &'a [&'a str])> {
    let (begin, end) = (begin(kind, nonce), end(kind, nonce));
    let to = lines.iter().rposition(|line| *line == end)?;
    let from = lines[..to].iter().rposition(|line| *line == begin)?;
    Some((to + 1, kind, &lines[from + 1..to]))
}
