//! The record second by second, on one clock for all trials of a run.

mod clock;
mod marks;

use perfval_api::WorkerPod;
use perfval_verdict::gpus::{Field, GpuSummary};
use perfval_verdict::workers::{MeasuredPhase, Reading, WorkerSeries};

pub(crate) use self::clock::{ChartLine, GPU_FIELDS, TimelineMark};
use self::clock::{TrialClock, grown, per};
use crate::facts::{Facts, Trial};

/// Seconds that stay empty between two trials.
pub(crate) const BETWEEN: i64 = 3;
/// Seconds before and after the load that are shown too.
const AROUND: i64 = 2;
/// Seconds over which requests that ended are counted: whole waves of them take up to 2 s on a busy H200.
const WAVES: i64 = 5;
/// Fewest tokens in a step that give the time of one: the same as in the comparison of workers.
const TOKENS: i64 = 50;

/// All trials end to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline {
    pub spans: Vec<Span>,
    /// Every worker of any trial, in order of their address.
    pub workers: Vec<WorkerTimeline>,
    /// Every GPU of these workers with readings.
    pub gpus: Vec<GpuTimeline>,
    pub marks: Vec<TimelineMark>,
    /// Unit of the workers' progress.
    pub unit: ProgressUnit,
    /// Length of all (s).
    pub seconds: i64,
}

/// Position of a trial.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub trial: i64,
    /// On the common clock.
    pub from: i64,
    /// Begin of the measured phase.
    pub measured: i64,
    pub until: i64,
}

/// Unit that is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ProgressUnit {
    Tokens,
    #[default]
    Requests,
}

/// One worker over all trials.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkerTimeline {
    /// Its pod, where that is known, else its address.
    pub name: String,
    pub address: String,
    /// UUIDs of its GPUs, where they are known.
    pub gpus: Vec<String>,
    /// Tokens or requests per second.
    pub rate: ChartLine,
    /// Time from one token of a request to the next (ms).
    pub token_ms: ChartLine,
    /// Time in the worker of the requests that ended (ms).
    pub request_ms: ChartLine,
    /// Time in its engine before the first token of the requests that ended (ms): queue and prefill.
    pub first_token_ms: ChartLine,
}

/// One GPU of a worker over all trials.
#[derive(Clone, Debug, Default)]
pub(crate) struct GpuTimeline {
    pub uuid: String,
    pub worker: String,
    pub lines: Vec<(Field, ChartLine)>,
}

impl ProgressUnit {
    pub fn per_second(self) -> &'static str {
        match self {
            Self::Tokens => "tokens/s",
            Self::Requests => "requests/s",
        }
    }

    fn count(self, reading: &Reading) -> Option<i64> {
        match self {
            Self::Tokens => reading.tokens,
            Self::Requests => Some(reading.finished),
        }
    }
}

impl Timeline {
    pub fn new(facts: &Facts) -> Self {
        let mut timeline = Self {
            unit: unit(&facts.trials),
            ..Self::default()
        };
        for trial in &facts.trials {
            timeline.add(facts, trial);
        }
        timeline.workers.sort_by(|a, b| a.address.cmp(&b.address));
        timeline
    }

    fn add(&mut self, facts: &Facts, trial: &Trial) {
        let Some(payload) = &trial.payload else { return };
        let seconds = payload.record.outcome.measured_seconds();
        let load = MeasuredPhase::new(&payload.workers, None);
        let measured = MeasuredPhase::new(&payload.workers, seconds);
        if payload.workers.is_empty() || load.last <= load.first {
            return;
        }
        let from = if self.spans.is_empty() {
            0
        } else {
            self.seconds + BETWEEN
        };
        let shown = MeasuredPhase::between((load.first - AROUND).max(0), load.last + AROUND);
        let clock = TrialClock {
            trial: trial.status.number,
            shown,
            shift: from - shown.first,
        };
        let until = clock.at(shown.last);
        self.spans.push(Span {
            trial: clock.trial,
            from,
            measured: clock.at(measured.first),
            until,
        });
        self.seconds = until;
        for series in &payload.workers {
            let (unit, at) = (self.unit, self.worker(facts, series));
            let worker = &mut self.workers[at];
            worker.rate.extend(clock.line(series, 1, |then, now, seconds| {
                per(unit.count(now)? - unit.count(then)?, seconds)
            }));
            worker.token_ms.extend(clock.line(series, 1, |then, now, _| {
                let tokens = grown(then.engine.gaps, now.engine.gaps).filter(|tokens| *tokens >= TOKENS)?;
                per(grown(then.engine.gap_us, now.engine.gap_us)?, tokens * 1000)
            }));
            worker.request_ms.extend(clock.line(series, WAVES, |then, now, _| {
                per(grown(then.busy_ms, now.busy_ms)?, now.finished - then.finished)
            }));
            worker.first_token_ms.extend(clock.line(series, WAVES, |then, now, _| {
                let queue = grown(then.engine.queue_ms, now.engine.queue_ms)?;
                let prefill = grown(then.engine.prefill_ms, now.engine.prefill_ms)?;
                per(queue + prefill, now.finished - then.finished)
            }));
            let gpus = worker.gpus.clone();
            let name = worker.name.clone();
            let mut summaries = payload.record.workers.iter();
            let summary = summaries.find(|summary| summary.address == series.address);
            self.marks.extend(marks::worker_marks(clock, &name, series, summary));
            for samples in payload.gpus.iter().filter(|samples| gpus.contains(&samples.uuid)) {
                clock.gpu(self.lines(&name, &samples.uuid), samples);
            }
        }
        let summaries = payload.record.gpus.iter().flat_map(|record| &record.gpus);
        // Other GPUs of the node are other people's.
        let ours = |gpu: &&GpuSummary| self.workers.iter().any(|worker| worker.gpus.contains(&gpu.uuid));
        let marks: Vec<TimelineMark> = summaries
            .filter(ours)
            .flat_map(|gpu| marks::gpu_marks(clock, gpu))
            .collect();
        self.marks.extend(marks);
        self.marks.sort_by(|a, b| (a.at, &a.text).cmp(&(b.at, &b.text)));
    }

    fn lines(&mut self, worker: &str, uuid: &str) -> &mut Vec<(Field, ChartLine)> {
        let mut gpus = self.gpus.iter();
        let known = gpus.position(|gpu| gpu.worker == worker && gpu.uuid == uuid);
        let at = known.unwrap_or_else(|| {
            self.gpus.push(GpuTimeline {
                uuid: uuid.to_owned(),
                worker: worker.to_owned(),
                lines: Vec::new(),
            });
            self.gpus.len() - 1
        });
        &mut self.gpus[at].lines
    }

    fn worker(&mut self, facts: &Facts, series: &WorkerSeries) -> usize {
        let known = self.workers.iter().position(|worker| worker.address == series.address);
        known.unwrap_or_else(|| {
            let at = |pod: &&WorkerPod| pod.address.as_ref() == Some(&series.address);
            let pod = facts.status.state.worker_pods.iter().find(at);
            self.workers.push(WorkerTimeline {
                name: pod.map_or_else(|| series.address.clone(), |pod| pod.pod.clone()),
                address: series.address.clone(),
                gpus: pod.map_or_else(Vec::new, |pod| gpus_of(facts, pod)),
                ..WorkerTimeline::default()
            });
            self.workers.len() - 1
        })
    }
}

/// UUIDs of the GPUs that a worker holds: by its claim, or by the exporter's list of pods.
fn gpus_of(facts: &Facts, pod: &WorkerPod) -> Vec<String> {
    let devices = pod.held(&facts.status.state.plan.device_ids);
    let by_claim: Vec<String> = devices.filter_map(|device| device.uuid.clone()).collect();
    if !by_claim.is_empty() {
        return by_claim;
    }
    let payloads = facts.trials.iter().filter_map(|trial| trial.payload.as_ref());
    let mut listed = payloads.map(|payload| {
        let gpus = payload.gpus.iter().filter(|gpu| gpu.pods.contains(&pod.pod));
        gpus.map(|gpu| gpu.uuid.clone()).collect::<Vec<_>>()
    });
    listed.find(|uuids| !uuids.is_empty()).unwrap_or_default()
}

/// Tokens only where every worker counts them.
fn unit(trials: &[Trial]) -> ProgressUnit {
    let payloads = trials.iter().filter_map(|trial| trial.payload.as_ref());
    let series = payloads.flat_map(|payload| &payload.workers);
    let mut readings = series.flat_map(WorkerSeries::readings).peekable();
    let any = readings.peek().is_some();
    if any && readings.all(|(_, reading)| reading.tokens.is_some()) {
        ProgressUnit::Tokens
    } else {
        ProgressUnit::Requests
    }
}
