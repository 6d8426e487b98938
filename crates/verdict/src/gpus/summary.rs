use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;

use super::{Field, GpuReading, GpuRecord, GpuSample, GpuSeries, GpuSummary, Mark};
use crate::number::MOST;
use crate::workers::{MeasuredPhase, Sample, Scrape, WorkerSeries};

/// NVML's throttle reasons that no healthy GPU has under load: slowdown by the hardware, heat (software and hardware) and
/// the power brake. The power cap (0x4) is not among them: it was active in 83 to 97 % of the busy samples of two healthy
/// H200.
pub(crate) const SLOWDOWN: i64 = 0x8 | 0x20 | 0x40 | 0x80;
/// Below this use (percent) a GPU is not under load: 94 to 100 % in every trial on two H200, slow or not.
const LOADED: i64 = 50;
/// Maximum age of a value (s) if the interval is unknown: an exporter collects every 30 seconds by default.
const UNKNOWN_AGE: i64 = 60;
/// Use (percent) of a GPU whose worker has nothing to do, above which something else runs on it: 0 on healthy H200, 13
/// next to a neighbour that worked for 15 % of the time.
const NOT_IDLE: i64 = 5;

/// Sums up what the GPUs did. `measured` is the length of AIPerf's measured phase (s).
pub fn summarize(
    pages: i64,
    errors: BTreeMap<String, i64>,
    gpus: &[GpuSeries],
    workers: &[WorkerSeries],
    measured: Option<Decimal>,
) -> GpuRecord {
    let trial = TrialTimes {
        phase: MeasuredPhase::new(workers, measured),
        idle: idle_seconds(workers),
        oldest: interval_seconds(gpus).map_or(UNKNOWN_AGE, |interval| interval.saturating_mul(2)),
    };
    GpuRecord {
        pages,
        errors,
        gpus: gpus.iter().map(|gpu| trial.summary(gpu)).collect(),
    }
}

/// The median time between two pages that differ; unknown without a third one. The first may have been there for long.
fn interval_seconds(gpus: &[GpuSeries]) -> Option<i64> {
    let samples = gpus.iter().flat_map(|gpu| &gpu.samples);
    let seconds: BTreeSet<i64> = samples.map(|sample| sample.0).collect();
    let seconds: Vec<i64> = seconds.into_iter().collect();
    let mut gaps: Vec<i64> = seconds.windows(2).skip(1).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_unstable();
    gaps.get(gaps.len() / 2).copied()
}

/// The seconds in which every worker was seen with nothing to do. A second in which one of them did not answer, or was not
/// asked, does not count.
fn idle_seconds(workers: &[WorkerSeries]) -> BTreeSet<i64> {
    let each = workers.iter().map(seconds_of);
    each.reduce(|all, one| &all & &one).unwrap_or_default()
}

fn seconds_of(worker: &WorkerSeries) -> BTreeSet<i64> {
    let mut before = None;
    let idle = |Sample(second, scrape): &Sample| {
        let Scrape::Reading(now) = scrape else { return None };
        let counters = (now.started, now.finished);
        let moved = before.replace(counters).is_some_and(|before| before != counters);
        (now.in_flight == 0 && !moved).then_some(*second)
    };
    worker.samples.iter().filter_map(idle).collect()
}

/// Returns true if the workers had no requests from `from` to `to`.
fn idle_through(idle: &BTreeSet<i64>, from: i64, to: i64) -> bool {
    from <= to && (from..=to).all(|second| idle.contains(&second))
}

/// Times of a trial.
struct TrialTimes {
    phase: MeasuredPhase,
    idle: BTreeSet<i64>,
    /// Maximum age of a value (s): DCGM takes it at an interval, and the exporter fetches it at the same.
    oldest: i64,
}

impl TrialTimes {
    fn summary(&self, series: &GpuSeries) -> GpuSummary {
        let samples = series.samples.as_slice();
        let loaded = samples.iter().copied().filter(|sample| self.is_loaded(*sample));
        let loaded: Vec<GpuSample> = loaded.collect();
        let values = |field| loaded.iter().filter_map(move |sample| sample.1.get(field));
        let watts = mean(values(Field::Power)).map(|milliwatts| (milliwatts + 500) / 1000);
        let mut summary = GpuSummary {
            uuid: series.uuid.clone(),
            index: series.index,
            pods: series.pods.clone(),
            foreign_pods: series.foreign_pods,
            readings: count(loaded.len()),
            sm_mhz: mean(values(Field::SmClock)),
            memory_mhz: mean(values(Field::MemoryClock)),
            watts,
            busy_percent: mean(loaded.iter().filter_map(|sample| sample.1.busy_percent())),
            celsius: values(Field::Temperature).max(),
            used_mib: values(Field::MemoryUsed).max(),
            reasons: values(Field::Reasons).reduce(|a, b| a | b),
            slowed: marked(&loaded, |reading| {
                reading
                    .get(Field::Reasons)
                    .is_some_and(|reasons| reasons & SLOWDOWN != 0)
            }),
            held_back_ms: self.held_back(samples),
            pcie_generation: values(Field::PcieGeneration).max(),
            pcie_width: values(Field::PcieWidth).max(),
            xid: xid(samples),
            double_bit_errors: double_bit_errors(samples),
            remapped_rows: growth(samples, &[Field::RemappedRows]),
            remap_failed: samples.last().and_then(|last| last.1.get(Field::RemapFailure)) == Some(1),
            pcie_replays: growth(samples, &[Field::PcieReplays]),
            nvlink_errors: growth(
                samples,
                &[
                    Field::NvlinkFlitErrors,
                    Field::NvlinkDataErrors,
                    Field::NvlinkReplays,
                    Field::NvlinkRecoveries,
                ],
            ),
            ..GpuSummary::default()
        };
        self.while_idle(samples, &mut summary);
        summary
    }

    /// Returns true for a value of the measured phase, of a GPU that works. If no series shows the load, the value
    /// has to be younger than the phase.
    fn is_loaded(&self, GpuSample(second, reading): GpuSample) -> bool {
        let within = second > self.phase.first && self.phase.contains(second);
        within
            && match reading.busy_percent() {
                Some(busy) => busy >= LOADED,
                None => second.saturating_sub(self.oldest) >= self.phase.first,
            }
    }

    fn held_back(&self, samples: &[GpuSample]) -> Option<Mark> {
        let of_phase = samples.iter().filter(|sample| self.phase.contains(sample.0));
        let of_phase: Vec<GpuSample> = of_phase.copied().collect();
        let held = [
            Field::ThermalViolation,
            Field::BoardLimitViolation,
            Field::ReliabilityViolation,
        ];
        let nanoseconds = growth(&of_phase, &held)?;
        let milliseconds = nanoseconds.value / 1_000_000;
        (milliseconds > 0).then_some(Mark {
            value: milliseconds,
            ..nanoseconds
        })
    }

    /// The readings that can only be of idle seconds, however old their values are.
    fn while_idle(&self, samples: &[GpuSample], summary: &mut GpuSummary) {
        let reach = self.oldest.saturating_add(1);
        let idle: Vec<GpuSample> = samples
            .iter()
            .skip(1) // How old the first page is, is unknown.
            .copied()
            .filter(|sample| idle_through(&self.idle, sample.0.saturating_sub(reach), sample.0))
            .filter(|sample| sample.1.busy_percent().is_some())
            .collect();
        let busy = |reading: &GpuReading| reading.busy_percent().is_some_and(|busy| busy >= NOT_IDLE);
        summary.idle_readings = count(idle.len());
        summary.idle_busy = marked(&idle, busy);
        let most = idle.iter().filter_map(|sample| sample.1.busy_percent()).max();
        summary.idle_busy_percent = most.filter(|_| summary.idle_busy.is_some());
    }
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn mean(values: impl Iterator<Item = i64>) -> Option<i64> {
    let (sum, count) = values.fold((0_i64, 0), |(sum, count), value| (sum.saturating_add(value), count + 1));
    (count > 0).then(|| (sum + count / 2) / count)
}

/// Number of samples that match, and the time of the first.
fn marked(samples: &[GpuSample], shows: impl Fn(&GpuReading) -> bool) -> Option<Mark> {
    let mut found = samples.iter().filter(|sample| shows(&sample.1)).peekable();
    let at = found.peek().map(|sample| sample.0)?;
    Some(Mark {
        value: count(found.count()),
        at: Some(at),
    })
}

/// Growth of counters, and the time at which it began. A counter that fell was reset, which is no growth.
fn growth(samples: &[GpuSample], fields: &[Field]) -> Option<Mark> {
    let (mut sum, mut at) = (0_i64, None);
    for field in fields {
        let known = samples
            .iter()
            .filter_map(|sample| Some((sample.0, sample.1.get(*field)?)));
        let mut before = None;
        for (second, now) in known {
            let more = before.replace(now).map_or(0, |before: i64| now.saturating_sub(before));
            if more > 0 {
                sum = sum.saturating_add(more);
                at = Some(at.map_or(second, |first: i64| first.min(second)));
            }
        }
    }
    at.map(|at| Mark {
        value: sum.min(MOST),
        at: Some(at),
    })
}

/// The last XID, and when it came.
fn xid(samples: &[GpuSample]) -> Option<Mark> {
    let mut known = samples
        .iter()
        .filter_map(|sample| Some((sample.0, sample.1.get(Field::Xid)?)));
    let (_, mut value) = known.next()?;
    let mut at = None;
    for (second, now) in known {
        if now != 0 && now != value {
            (value, at) = (now, Some(second));
        }
    }
    (value != 0).then_some(Mark { value, at })
}

/// Double-bit errors of the trial, or else those since the driver was loaded.
fn double_bit_errors(samples: &[GpuSample]) -> Option<Mark> {
    let before = || {
        let mut known = samples.iter().filter_map(|sample| sample.1.get(Field::DoubleBitErrors));
        known.next().filter(|errors| *errors > 0)
    };
    growth(samples, &[Field::DoubleBitErrors]).or_else(|| before().map(|value| Mark { value, at: None }))
}
