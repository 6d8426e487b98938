//! Trials packed into a limited number of bytes: samples are thinned before a trial is left out.

use std::collections::BTreeMap;
use std::io::Write as _;

use flate2::{Compression, GzBuilder};
use perfval_verdict::frame::Payload;

/// Most samples that are merged into one.
const MOST_MERGED: usize = 64;

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

/// Packs payloads into `room` bytes. What does not fit as it is gets an equal share of the room, with fewer samples; what still
/// does not fit is left out, from the last trial on.
pub fn pack(payloads: &BTreeMap<i64, String>, room: usize) -> Packed {
    let whole: BTreeMap<i64, Vec<u8>> = payloads.iter().map(|(trial, text)| (*trial, gzip(text))).collect();
    if whole.values().map(Vec::len).sum::<usize>() <= room {
        return Packed {
            trials: whole,
            ..Packed::default()
        };
    }
    let mut by_size: Vec<(i64, Vec<u8>)> = whole.into_iter().collect();
    by_size.sort_by_key(|(trial, bytes)| (bytes.len(), *trial));
    let (mut packed, mut stubborn, mut left, mut to_come) = (Packed::default(), BTreeMap::new(), room, by_size.len());
    for (trial, bytes) in by_size {
        let share = left / to_come;
        to_come -= 1;
        let fitting = if bytes.len() <= share {
            Ok(bytes)
        } else {
            match thinned(&payloads[&trial], share) {
                Some((fewer, lost)) => {
                    packed.thinned.push(format!("trial {trial}: {lost}\n"));
                    Ok(fewer)
                }
                None => Err(bytes),
            }
        };
        match fitting {
            Ok(bytes) => {
                left -= bytes.len();
                packed.trials.insert(trial, bytes);
            }
            Err(bytes) => {
                stubborn.insert(trial, bytes);
            }
        }
    }
    for (trial, bytes) in stubborn {
        if bytes.len() <= left {
            left -= bytes.len();
            packed.trials.insert(trial, bytes);
        } else {
            let line = format!(
                "trial {trial}: {} bytes packed, too big for this ConfigMap\n",
                bytes.len()
            );
            packed.omitted.push(line);
        }
    }
    packed.thinned.sort();
    packed
}

/// A payload with so few samples that it fits, and what was lost. The record was made from all samples and stays whole.
fn thinned(text: &str, room: usize) -> Option<(Vec<u8>, String)> {
    let mut payload: Payload = serde_json::from_str(text).ok()?;
    let mut merged = 1;
    while merged < MOST_MERGED {
        merged *= 2;
        for worker in &mut payload.workers {
            worker.thin(worker.samples.len().div_ceil(2));
        }
        for gpu in &mut payload.gpus {
            gpu.thin(gpu.samples.len().div_ceil(2));
        }
        let packed = gzip(&serde_json::to_string(&payload).ok()?);
        if packed.len() <= room {
            return Some((packed, format!("each {merged} samples are merged into one")));
        }
    }
    (payload.workers, payload.gpus) = (Vec::new(), Vec::new());
    let packed = gzip(&serde_json::to_string(&payload).ok()?);
    (packed.len() <= room).then(|| (packed, "its samples are left out".to_owned()))
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
