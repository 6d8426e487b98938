//! Reads a page of NVIDIA's DCGM exporter, line by line as it arrives.
//!
//! The page comes from another program of the node, so nothing of it is taken on trust: its size, its lines, its GPUs and
//! its numbers are bounded. A page that is cut off or not in Prometheus' text format is refused as a whole; a value that
//! cannot be is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead};

use super::{Field, GpuReading};
use crate::exposition::{self, ExpositionLine};
use crate::number::MOST_PER_NODE;

/// Eight GPUs with every series of DCGM are about 200 KB.
const PAGE_BYTES: usize = 4 << 20;
/// Longest line: some labels of 253 characters each.
const LINE_BYTES: usize = 8 << 10;
/// Pods that one GPU is shared by; more are not kept.
const PODS: usize = 16;
/// Longest name of a pod or a namespace.
const NAME: usize = 253;

/// Reason why a page contains no metrics.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The answer broke off.
    #[error("{0}")]
    Read(#[from] io::Error),
    /// More than any exporter writes.
    #[error("the page is larger than {PAGE_BYTES} bytes")]
    TooLarge,
    /// No text, or no metrics.
    #[error("line {0} is not in Prometheus' text format")]
    Malformed(usize),
    /// The last line has no end.
    #[error("the page is cut off")]
    Cut,
    /// More GPUs than any node has.
    #[error("the page names more than {MOST_PER_NODE} GPUs")]
    TooManyGpus,
    /// Of another program, or without GPUs.
    #[error("the page has no series of DCGM with a GPU's UUID")]
    NoGpus,
}

/// Metrics of one GPU on a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrapedGpu {
    /// UUID, `GPU-…`.
    pub uuid: String,
    /// Its number on the node.
    pub index: Option<i64>,
    /// Namespaces and names of the pods that hold it, if the exporter reports them.
    pub pods: BTreeSet<(String, String)>,
    /// Its values.
    pub reading: GpuReading,
}

/// Reads a page; the GPUs in order of their UUID.
pub fn read(mut page: impl BufRead) -> Result<Vec<ScrapedGpu>, PageError> {
    let mut gpus = BTreeMap::new();
    let (mut line, mut left, mut number) = (Vec::new(), PAGE_BYTES, 0);
    loop {
        line.clear();
        number += 1;
        let read = io::Read::take(&mut page, (LINE_BYTES + 1) as u64).read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        left = left.checked_sub(read).ok_or(PageError::TooLarge)?;
        if line.pop() != Some(b'\n') {
            // The limit of a line was reached, or the end of the page.
            return Err(if read > LINE_BYTES {
                PageError::Malformed(number)
            } else {
                PageError::Cut
            });
        }
        let text = str::from_utf8(&line).map_err(|_| PageError::Malformed(number))?;
        take(text.trim(), number, &mut gpus)?;
    }
    if gpus.is_empty() {
        return Err(PageError::NoGpus);
    }
    Ok(gpus.into_values().collect())
}

/// Takes over a line if its series is known.
fn take(line: &str, number: usize, gpus: &mut BTreeMap<String, ScrapedGpu>) -> Result<(), PageError> {
    if line.is_empty() || line.starts_with('#') {
        return Ok(());
    }
    let name = exposition::name(line);
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == ':') {
        return Err(PageError::Malformed(number));
    }
    let Some((field, factor)) = Field::from_series(name) else {
        return Ok(());
    };
    let sample = ExpositionLine::read(&line[name.len()..]).ok_or(PageError::Malformed(number))?;
    let label = |wanted| sample.label(wanted);
    // A slice of a GPU shows nothing about the whole one, and a switch has no UUID.
    let Some(uuid) = label("UUID").filter(|uuid| is_uuid(uuid) && label("GPU_I_ID").is_none()) else {
        return Ok(());
    };
    if gpus.len() >= MOST_PER_NODE && !gpus.contains_key(uuid) {
        return Err(PageError::TooManyGpus);
    }
    let gpu = gpus.entry(uuid.to_owned()).or_insert_with(|| ScrapedGpu {
        uuid: uuid.to_owned(),
        ..ScrapedGpu::default()
    });
    let index = label("gpu").and_then(|index| index.parse().ok());
    gpu.index = gpu.index.or(index.filter(|index| (0..1024).contains(index)));
    // Without a look at the pods the labels are empty or those of the exporter itself.
    let pod = label("pod").or(label("pod_name"));
    let namespace = label("namespace").or(label("pod_namespace"));
    if let (Some(pod), Some(namespace)) = (pod, namespace)
        && gpu.pods.len() < PODS
        && pod.len().max(namespace.len()) <= NAME
    {
        gpu.pods.insert((namespace.to_owned(), pod.to_owned()));
    }
    // DCGM's blanks (no value) of 64 bits begin at 2^63 − 16.
    if let Some(value) = sample.number(factor) {
        // A GPU that several pods share is listed once for each of them, with the same values.
        gpu.reading.set(field, gpu.reading.get(field).unwrap_or(0).max(value));
    }
    Ok(())
}

fn is_uuid(text: &str) -> bool {
    let rest = text.strip_prefix("GPU-");
    rest.is_some_and(|rest| {
        (1..=64).contains(&rest.len()) && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    })
}
