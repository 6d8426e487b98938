//! Trials packed into a limited number of bytes: samples are thinned before a trial is left out.
//!
//! A trial is packed as soon as its log is read, so that a run holds packed trials and one log at a time: twenty logs of 4 MiB
//! took 266 MB.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};

use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use perfval_verdict::frame::{self, Framed, Payload};

use crate::secret::Redactor;

/// Most samples that are merged into one.
const MOST_MERGED: usize = 64;
/// Most bytes of content. The API server takes 1 MiB; the rest is for keys, metadata and the server's own fields.
pub(super) const CONTENT_MAX: usize = 900 * 1024;

/// A trial's payload as gzip, with as many of its samples as a results ConfigMap can hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedTrial {
    /// Empty if even the record without samples is too big.
    bytes: Vec<u8>,
    /// Bytes before any sample was thinned.
    whole: usize,
    thinned: Option<Thinned>,
}

/// Parts that a trial lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thinned {
    /// This many samples are merged into one.
    Merged(usize),
    /// It has no samples.
    LeftOut,
}

/// Packed trials, and what they lost.
#[derive(Default)]
pub struct Packed {
    /// By number.
    pub trials: BTreeMap<i64, Vec<u8>>,
    /// A line for each trial whose samples were thinned.
    pub thinned: Vec<String>,
    /// A line for each trial that does not fit at all.
    pub omitted: Vec<String>,
}

impl PackedTrial {
    /// Packs the payload in a log without secrets; `None` if the log has no complete one.
    pub fn from_log(log: &str, nonce: &str, redactor: &Redactor) -> Option<Self> {
        let Framed::Complete(mut payload) = frame::find(log, nonce) else {
            return None;
        };
        redactor.redact_payload(&mut payload);
        Some(Self::new(&serde_json::to_string(&payload).ok()?))
    }

    /// Packs a payload (JSON).
    pub fn new(payload: &str) -> Self {
        let bytes = gzip(payload);
        let whole = Self {
            whole: bytes.len(),
            bytes,
            thinned: None,
        };
        if whole.bytes.len() <= CONTENT_MAX {
            return whole;
        }
        whole.within(CONTENT_MAX).unwrap_or(Self {
            bytes: Vec::new(),
            ..whole
        })
    }

    /// The same trial with so few samples that it fits. The record was made from all samples and stays whole.
    fn within(&self, room: usize) -> Option<Self> {
        if !self.bytes.is_empty() && self.bytes.len() <= room {
            return Some(self.clone());
        }
        let mut merged = match self.thinned {
            None => 1,
            Some(Thinned::Merged(merged)) => merged,
            Some(Thinned::LeftOut) => return None,
        };
        let mut payload: Payload = serde_json::from_str(&gunzip(&self.bytes)?).ok()?;
        let fits = |payload: &Payload, thinned| {
            let bytes = gzip(&serde_json::to_string(payload).ok()?);
            (bytes.len() <= room).then_some(Self {
                bytes,
                whole: self.whole,
                thinned: Some(thinned),
            })
        };
        while merged < MOST_MERGED {
            merged *= 2;
            for worker in &mut payload.workers {
                worker.thin(worker.samples.len().div_ceil(2));
            }
            for gpu in &mut payload.gpus {
                gpu.thin(gpu.samples.len().div_ceil(2));
            }
            if let Some(fitting) = fits(&payload, Thinned::Merged(merged)) {
                return Some(fitting);
            }
        }
        (payload.workers, payload.gpus) = (Vec::new(), Vec::new());
        fits(&payload, Thinned::LeftOut)
    }
}

impl Thinned {
    fn in_words(self) -> String {
        match self {
            Self::Merged(merged) => format!("each {merged} samples are merged into one"),
            Self::LeftOut => "its samples are left out".to_owned(),
        }
    }
}

/// Fits trials into `room` bytes. What does not fit as it is gets an equal share of the room, with fewer samples; what still does
/// not fit is left out, from the last trial on.
pub fn pack(trials: &BTreeMap<i64, PackedTrial>, room: usize) -> Packed {
    let mut by_size: Vec<(&i64, &PackedTrial)> = trials.iter().collect();
    by_size.sort_by_key(|(trial, packed)| (packed.whole, **trial));
    let all_fit = trials.values().all(|trial| !trial.bytes.is_empty())
        && trials.values().map(|trial| trial.bytes.len()).sum::<usize>() <= room;
    let (mut packed, mut stubborn, mut left, mut to_come) = (Packed::default(), BTreeMap::new(), room, by_size.len());
    for (number, trial) in by_size {
        let share = if all_fit { left } else { left / to_come };
        to_come -= 1;
        match trial.within(share) {
            Some(fitting) => {
                left -= fitting.bytes.len();
                packed.add(*number, fitting);
            }
            None => {
                stubborn.insert(*number, trial);
            }
        }
    }
    for (number, trial) in stubborn {
        if !trial.bytes.is_empty() && trial.bytes.len() <= left {
            left -= trial.bytes.len();
            packed.add(number, trial.clone());
        } else {
            let line = format!(
                "trial {number}: {} bytes packed, too big for this ConfigMap\n",
                trial.whole
            );
            packed.omitted.push(line);
        }
    }
    packed.thinned.sort();
    packed
}

impl Packed {
    fn add(&mut self, number: i64, trial: PackedTrial) {
        if let Some(thinned) = trial.thinned {
            self.thinned.push(format!("trial {number}: {}\n", thinned.in_words()));
        }
        self.trials.insert(number, trial.bytes);
    }
}

/// The same bytes for the same text: no time, no name, no operating system.
fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzBuilder::new()
        .mtime(0)
        .operating_system(255)
        .write(Vec::new(), Compression::best());
    // A Vec takes every write.
    let _ = encoder.write_all(text.as_bytes());
    encoder.finish().unwrap_or_default()
}

/// Reverses [`gzip`].
fn gunzip(bytes: &[u8]) -> Option<String> {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text).ok()?;
    Some(text)
}
