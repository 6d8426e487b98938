//! Picture of a running validation on a terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::mem;

use chrono::{DateTime, Utc};
use kube::ResourceExt as _;
use perfval_api::{EarlierRun, PerfValidation, PerfValidationStatus, Phase, quantity};
use perfval_run::{Run, Settings, progress};
use perfval_verdict::history;
use rust_decimal::prelude::ToPrimitive as _;

use super::live::Live;
use super::plain::{message, trial_text};
use crate::draw::{BAR, Ink, flow, span, wrap};
use crate::screen::{Size, harmless};
use crate::table::dash;

/// Cells of a line of values.
const LINE: usize = 40;
/// On fewer columns nothing is aligned.
const NARROW: usize = 40;
/// Workers under each other; a node has no more GPUs.
const WORKERS: usize = 16;

pub struct Picture {
    size: Size,
    ink: Ink,
    /// Lines that are on the terminal now.
    height: usize,
}

impl Picture {
    /// Nothing is drawn yet.
    pub fn new(size: Size, unicode: bool) -> Self {
        Self {
            size,
            ink: Ink { unicode },
            height: 0,
        }
    }

    /// Leaves the drawing in place.
    pub fn leave(&mut self) {
        self.height = 0;
    }

    /// Draws over the last picture; on a terminal of another size than then, after clearing it.
    pub fn draw(&mut self, size: Option<Size>, object: &PerfValidation, live: &Live, now: DateTime<Utc>) -> String {
        let size = size.unwrap_or(self.size);
        let resized = mem::replace(&mut self.size, size) != size;
        let mut lines = self.lines(object, live, now);
        // Rows that have left the screen cannot be drawn over; the cursor is in the last row.
        let room = size.rows.saturating_sub(1).max(1);
        if lines.len() > room {
            lines.truncate(room.saturating_sub(1));
            lines.push(if self.ink.unicode { "…" } else { "..." }.to_owned());
        }
        let mut text = String::new();
        if self.height > 0 && resized {
            text += "\x1b[2J\x1b[H";
        } else if self.height > 0 {
            // To the start of its first line, wherever typed characters moved the cursor, and clear from there.
            let _ = write!(text, "\x1b[{}A\r\x1b[J", self.height);
        }
        for line in &lines {
            text.extend([harmless(line).as_str(), "\n"]);
        }
        self.height = lines.len();
        text
    }

    fn lines(&self, object: &PerfValidation, live: &Live, now: DateTime<Utc>) -> Vec<String> {
        let fresh = PerfValidationStatus::default();
        let status = object.status.as_ref().unwrap_or(&fresh);
        let run = status.run.as_ref();
        let phase = status.phase.map_or("waiting for the operator", Phase::as_str);
        let mut head = vec![format!(
            "{}/{}",
            object.namespace().unwrap_or_default(),
            object.name_any()
        )];
        head.extend(run.map(|run| format!("run {}", run.number)));
        head.push(phase.to_owned());
        head.extend(run.map(|run| span((run.completed_at.unwrap_or(now) - run.started_at).num_seconds().max(0))));
        let mut lines = self.row(&head);
        lines.push(String::new());
        lines.extend(self.phases(status, now));
        lines.extend(self.gpus(status));
        lines.extend(self.trial(object, live, now));
        lines.extend(self.trials(status));
        lines.extend(self.workers(status));
        if let Some(message) = message(status) {
            if lines.last().is_some_and(|line| !line.is_empty()) {
                lines.push(String::new());
            }
            lines.extend(wrap(&message, self.columns(), "").lines().map(str::to_owned));
        }
        lines
    }

    /// A line that wraps would count twice when it is drawn over.
    fn columns(&self) -> usize {
        self.size.columns.saturating_sub(1)
    }

    /// Pieces beside each other, or below each other on a narrow terminal.
    fn row(&self, pieces: &[String]) -> Vec<String> {
        let pieces = pieces.iter().map(String::as_str);
        flow(pieces, "  ", self.columns(), "")
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// Cells of a bar.
    fn bar(&self) -> usize {
        BAR.min(self.size.columns / 3)
    }

    fn gpus(&self, status: &PerfValidationStatus) -> Vec<String> {
        let Some(plan) = &status.placement else {
            return Vec::new();
        };
        let count = |gpus: i64| usize::try_from(gpus).unwrap_or_default().min(64);
        let cells = self.ink.cells(count(plan.gpus), count(plan.node_gpus));
        self.row(&[
            format!("GPUs     {cells}"),
            format!("{} of {} on {}", plan.gpus, plan.node_gpus, plan.node),
        ])
    }

    /// The open trial: the log is newer than the status.
    fn trial(&self, object: &PerfValidation, live: &Live, now: DateTime<Utc>) -> Vec<String> {
        let Some(status) = &object.status else {
            return Vec::new();
        };
        let Some(open) = status.state.trials.last().filter(|trial| trial.outcome.is_none()) else {
            return Vec::new();
        };
        let took = span((now - open.started_at).num_seconds().max(0));
        let samples = live.samples(open.number);
        let known = status.state.progress.as_ref();
        let known = known.filter(|known| known.trial == open.number);
        let progress = match (samples.last(), known) {
            (Some(sample), _) => progress::at(&Run::new(object, &Settings::default()), open.number, sample, now),
            (None, Some(known)) => known.clone(),
            (None, None) => return self.row(&[format!("trial {:<2} starting, {took}", open.number)]),
        };
        let part = progress.shown.percent.unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "a percentage")]
        let bar = self.ink.part(part as f64 / 100.0, self.bar());
        let mut lines = self.row(&[
            format!("trial {:<2} {bar}", open.number),
            format!("{}, {took}", trial_text(&progress)),
        ]);
        let rates: Vec<i64> = samples.iter().filter_map(|sample| sample.tokens_per_second).collect();
        let waits: Vec<i64> = samples.iter().filter_map(|sample| sample.ttft_ms).collect();
        for (what, values, unit) in [("tok/s", rates, ""), ("TTFT", waits, " ms")] {
            if let Some(last) = values.last() {
                let drawn = self.ink.line(&values, LINE.min(self.size.columns / 2));
                lines.extend(self.row(&[format!("{what:<8} {drawn}"), format!("{last}{unit}")]));
            }
        }
        lines
    }

    /// Side by side, on one scale: the odd one is seen.
    fn workers(&self, status: &PerfValidationStatus) -> Vec<String> {
        let device = |pod: &str| {
            let worker = status.state.worker_pods.iter().find(|worker| worker.pod == pod)?;
            worker.device_names()
        };
        let speeds: Vec<(String, f64, &str)> = status
            .state
            .workers
            .iter()
            .filter_map(|worker| {
                let speed = worker
                    .tokens_per_second
                    .as_deref()
                    .or(worker.requests_per_second.as_deref())?;
                let value = quantity::parse(speed)?.to_f64()?;
                Some((
                    device(&worker.name).unwrap_or_else(|| worker.name.clone()),
                    value,
                    speed,
                ))
            })
            .take(WORKERS)
            .collect();
        let fastest = speeds.iter().map(|(_, value, _)| *value).fold(0.0, f64::max);
        if fastest <= 0.0 {
            return Vec::new();
        }
        let row = |(gpu, value, speed): &(String, f64, &str)| {
            let bar = self.ink.part(value / fastest, self.bar());
            let width = if self.size.columns < NARROW { 0 } else { 12 };
            self.row(&[format!("  {gpu:<width$} {bar}"), (*speed).to_owned()])
        };
        let mut lines = self.row(&["workers in the last trial, per second".to_owned()]);
        lines.extend(speeds.iter().flat_map(row));
        lines
    }

    /// A phase behind its mark, as wide as the longest where there is room.
    fn named(&self, mark: char, phase: Phase) -> String {
        let width = if self.size.columns < NARROW { 0 } else { 15 };
        format!("{mark} {:<width$}", phase.as_str())
    }

    /// Each phase with its time, and its usual time where earlier runs had it; the place in the queue behind the current one.
    fn phases(&self, status: &PerfValidationStatus, now: DateTime<Utc>) -> Vec<String> {
        let usual = usual(&status.state.history);
        let ended = history::phase_seconds(status);
        let mut lines: Vec<String> = ended
            .iter()
            .flat_map(|phase| self.row(&[self.named(' ', phase.phase), span(phase.seconds)]))
            .collect();
        let last = status.state.timeline.last();
        if let Some(current) = last.filter(|entry| entry.completed_at.is_none()) {
            let seconds = (now - current.started_at).num_seconds().max(0);
            let mut row = vec![self.named('>', current.phase), span(seconds)];
            let usual = usual.get(&current.phase);
            row.extend(usual.map(|usual| format!("usually {}", span(*usual))));
            let run = status.run.as_ref();
            if let Some((run, ahead)) = run.and_then(|run| Some((run, run.queue_ahead?))) {
                row.push(format!("{ahead} ahead in the queue"));
                row.extend(run.expected_at.map(|at| {
                    let wait = span((at - now).num_seconds().max(0));
                    format!("its turn in about {wait}")
                }));
            }
            lines.extend(self.row(&row));
        }
        lines.push(String::new());
        lines
    }

    /// Trials that are over.
    fn trials(&self, status: &PerfValidationStatus) -> Vec<String> {
        let over = status
            .state
            .trials
            .iter()
            .filter_map(|trial| Some((trial, trial.outcome?)));
        over.flat_map(|(trial, outcome)| {
            let mut row = vec![
                format!("trial {:<2} {:<7}", trial.number, format!("{outcome:?}")),
                format!(
                    "{} tok/s, TTFT p99 {} ms",
                    dash(trial.throughput.as_ref()),
                    dash(trial.ttft_p99_ms.as_ref())
                ),
            ];
            row.extend((!trial.causes.is_empty()).then(|| trial.causes.join(", ")));
            self.row(&row)
        })
        .collect()
    }
}

/// The median of earlier runs.
fn usual(history: &[EarlierRun]) -> BTreeMap<Phase, i64> {
    let mut all: BTreeMap<Phase, Vec<i64>> = BTreeMap::new();
    for phase in history
        .iter()
        .filter(|entry| entry.verdict.is_some())
        .flat_map(|entry| &entry.phases)
    {
        all.entry(phase.phase).or_default().push(phase.seconds);
    }
    let median = |mut seconds: Vec<i64>| {
        seconds.sort_unstable();
        seconds[seconds.len() / 2]
    };
    all.into_iter()
        .map(|(phase, seconds)| (phase, median(seconds)))
        .collect()
}
