use std::collections::{BTreeMap, BTreeSet};

use super::dcgm::ScrapedGpu;
use super::{GpuSample, GpuSeries};
use crate::number::MOST_PER_NODE;

/// Samples of one GPU that are kept while they are taken; beyond it every second one goes. Two hours, one a second.
const SAMPLES: usize = 7200;
/// Distinct error texts that are kept.
const ERRORS: usize = 8;

/// Collects the pages of one trial.
///
/// An exporter collects every 30 seconds by default, or every few, and repeats its page until then. Only a page with
/// new content is a reading; otherwise a value of before the load would count for every second of it.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    /// The run's namespace: pods of others are counted, but their names are not recorded.
    namespace: String,
    series: BTreeMap<String, GpuSeries>,
    last: Vec<ScrapedGpu>,
    pages: i64,
    errors: BTreeMap<String, i64>,
}

impl Recorder {
    /// For a run of this namespace.
    pub fn new(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            ..Self::default()
        }
    }

    /// Takes a page that was read in this second.
    pub fn add(&mut self, second: i64, page: Vec<ScrapedGpu>) {
        self.pages += 1;
        if page == self.last {
            return;
        }
        for gpu in &page {
            if self.series.len() >= MOST_PER_NODE && !self.series.contains_key(&gpu.uuid) {
                continue;
            }
            let (own, foreign): (Vec<_>, Vec<_>) = gpu.pods.iter().partition(|(of, _)| *of == self.namespace);
            let series = self.series.entry(gpu.uuid.clone()).or_default();
            series.uuid.clone_from(&gpu.uuid);
            series.index = gpu.index;
            series.pods = own.into_iter().map(|(_, pod)| pod.clone()).collect::<BTreeSet<_>>();
            series.foreign_pods = i64::try_from(foreign.len()).unwrap_or(i64::MAX);
            series.samples.push(GpuSample(second, gpu.reading));
            if series.samples.len() > SAMPLES {
                series.thin(SAMPLES / 2);
            }
        }
        self.last = page;
    }

    /// Counts a page that could not be read.
    pub fn failed(&mut self, why: &str) {
        let text: String = why.chars().take(160).collect();
        if self.errors.len() < ERRORS || self.errors.contains_key(&text) {
            *self.errors.entry(text).or_default() += 1;
        }
    }

    /// Pages that were read, why others were not, and the GPUs in order of their UUID.
    pub fn finish(self) -> (i64, BTreeMap<String, i64>, Vec<GpuSeries>) {
        (self.pages, self.errors, self.series.into_values().collect())
    }
}
