use perfval_verdict::gpus::{self, GpuSummary};
use perfval_verdict::workers::{Reading, Sample, Scrape, Silence, WorkerSeries, WorkerSummary};

use super::clock::{TimelineMark, TrialClock};

/// Silence, restarts and standing still of one worker while there was load.
pub(super) fn worker_marks(
    clock: TrialClock,
    name: &str,
    series: &WorkerSeries,
    summary: Option<&WorkerSummary>,
) -> Vec<TimelineMark> {
    let mut marks = silences(clock, name, series);
    marks.extend(restarts(clock, name, series));
    // The summary decides if it stood still, by the usual pace of this worker; here the position is found.
    let stood = summary.map_or(0, |summary| summary.still_seconds.max(summary.frozen_seconds));
    if let Some(since) = longest_stillness(series).filter(|_| stood > 0) {
        marks.push(clock.mark(since, format!("{name} stood still for {stood} s with requests")));
    }
    marks
}

fn restarts(clock: TrialClock, name: &str, series: &WorkerSeries) -> Vec<TimelineMark> {
    let all: Vec<(i64, Reading)> = series.readings().collect();
    let restarts = all.windows(2).filter(|pair| {
        let (then, now) = (pair[0].1, pair[1].1);
        now.finished < then.finished || now.started < then.started
    });
    restarts
        .map(|pair| clock.mark(pair[1].0, format!("{name} restarted")))
        .collect()
}

/// Begin of the longest span in which a worker had requests and no counter of it moved.
fn longest_stillness(series: &WorkerSeries) -> Option<i64> {
    let mut longest: Option<(i64, i64)> = None;
    let mut before: Option<(i64, Reading)> = None;
    let mut since = None;
    for (second, now) in series.readings() {
        if let Some((earlier, then)) = before.replace((second, now)) {
            let moved = (then.tokens, then.bytes, then.finished) != (now.tokens, now.bytes, now.finished);
            let began = (!moved && then.in_flight > 0).then(|| since.unwrap_or(earlier));
            if let Some(began) = began.filter(|began| longest.is_none_or(|(length, _)| second - began > length)) {
                longest = Some((second - began, began));
            }
            since = began;
        }
    }
    longest.map(|(_, began)| began)
}

/// Silences, each from its first time-out to the next answer. Merged samples hide the answers between two time-outs, so the
/// length is an upper limit.
fn silences(clock: TrialClock, name: &str, series: &WorkerSeries) -> Vec<TimelineMark> {
    let silent = |sample: &Sample| sample.1 == Scrape::Nothing(Silence::TimedOut) && clock.shown.contains(sample.0);
    let runs = series.samples.chunk_by(|one, next| silent(one) == silent(next));
    let runs: Vec<&[Sample]> = runs.collect();
    let mut marks = Vec::new();
    for (at, run) in runs.iter().enumerate().filter(|(_, run)| silent(&run[0])) {
        let since = run[0].0;
        let until = runs.get(at + 1).map_or(run[run.len() - 1].0 + 1, |next| next[0].0);
        let text = format!("{name} gave no answer in time for up to {} s", until - since);
        marks.push(clock.mark(since, text));
    }
    marks
}

/// Marks that a GPU reported, with their seconds.
pub(super) fn gpu_marks(clock: TrialClock, gpu: &GpuSummary) -> Vec<TimelineMark> {
    let uuid = &gpu.uuid;
    let events = [
        (gpu.xid, "XID error"),
        (gpu.double_bit_errors, "double-bit ECC errors"),
        (gpu.remapped_rows, "rows replaced"),
        (gpu.slowed, "readings with its clocks held down"),
        (gpu.pcie_replays, "PCIe replays"),
        (gpu.nvlink_errors, "NVLink errors"),
        (gpu.idle_busy, "readings at work while no worker was"),
    ];
    let mark = |(event, what): &(Option<gpus::Mark>, &str)| {
        let (value, at) = (event.as_ref()?.value, event.as_ref()?.at?);
        (value != 0).then(|| clock.mark(at, format!("{uuid}: {what}: {value}")))
    };
    events.iter().filter_map(mark).collect()
}
