use perfval_verdict::gpus::{Field, GpuSeries};
use perfval_verdict::workers::{MeasuredPhase, Reading, WorkerSeries};

/// Points in order of time; a new part begins where nothing is known in between.
pub(crate) type ChartLine = Vec<Vec<(f64, f64)>>;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimelineMark {
    pub trial: i64,
    /// On the common clock.
    pub at: i64,
    pub text: String,
}

/// Drawn fields of a GPU, with unit and factor from the recorded number.
pub(crate) const GPU_FIELDS: [(Field, &str, &str, f64); 4] = [
    (Field::SmClock, "clock", "MHz", 1.0),
    (Field::Power, "power", "W", 1000.0),
    (Field::Temperature, "temperature", "°C", 1.0),
    (Field::Utilisation, "use", "%", 1.0),
];

/// From a trial's own seconds to those of the run.
#[derive(Clone, Copy)]
pub(super) struct TrialClock {
    pub trial: i64,
    pub shown: MeasuredPhase,
    pub shift: i64,
}

impl TrialClock {
    pub fn at(self, second: i64) -> i64 {
        second + self.shift
    }

    #[expect(clippy::cast_precision_loss, reason = "seconds of one run")]
    fn x(self, second: i64) -> f64 {
        self.at(second) as f64
    }

    /// Growth between a reading and the latest one at least `window` seconds before it, at the time of the later one.
    /// Requests end in waves, and counters of different programs are a second apart: over one second their quotient
    /// is meaningless.
    pub fn line(
        self,
        series: &WorkerSeries,
        window: i64,
        value: impl Fn(&Reading, &Reading, i64) -> Option<f64>,
    ) -> ChartLine {
        let mut parts: ChartLine = vec![Vec::new()];
        let all: Vec<(i64, Reading)> = series.readings().collect();
        for (index, (second, now)) in all.iter().enumerate() {
            let earlier = all[..index].iter().rev().find(|(since, _)| second - since >= window);
            let Some((since, then)) = earlier.filter(|_| self.shown.contains(*second)) else {
                continue;
            };
            let restarted = now.finished < then.finished || now.started < then.started;
            match value(then, now, second - since).filter(|_| !restarted) {
                Some(value) => parts
                    .last_mut()
                    .into_iter()
                    .for_each(|part| part.push((self.x(*second), value))),
                None => parts.push(Vec::new()),
            }
        }
        parts.retain(|part| !part.is_empty());
        parts
    }

    #[expect(clippy::cast_precision_loss, reason = "clocks, watts and degrees")]
    pub fn gpu(self, lines: &mut Vec<(Field, ChartLine)>, samples: &GpuSeries) {
        for (field, ..) in GPU_FIELDS {
            let known = samples.samples.iter().filter(|sample| self.shown.contains(sample.0));
            let points: Vec<(f64, f64)> = known
                .filter_map(|sample| Some((self.x(sample.0), sample.1.get(field)? as f64)))
                .collect();
            if points.is_empty() {
                continue;
            }
            match lines.iter_mut().find(|(known, _)| *known == field) {
                Some((_, line)) => line.push(points),
                None => lines.push((field, vec![points])),
            }
        }
    }

    pub fn mark(self, second: i64, mut text: String) -> TimelineMark {
        if second < self.shown.first {
            text.push_str(", before the load began");
        }
        TimelineMark {
            trial: self.trial,
            at: self.at(second.clamp(self.shown.first, self.shown.last)),
            text,
        }
    }
}

pub(super) fn grown(then: Option<i64>, now: Option<i64>) -> Option<i64> {
    Some(now? - then?).filter(|more| *more >= 0)
}

/// A quotient, where there is something to divide by and nothing went back.
#[expect(clippy::cast_precision_loss, reason = "counters of one trial are far below 2^53")]
pub(super) fn per(more: i64, of: i64) -> Option<f64> {
    (more >= 0 && of > 0).then(|| more as f64 / of as f64)
}
