//! Pages in Prometheus' text format: of a worker, and of NVIDIA's DCGM exporter. A NUL ends a page, and the next one follows.

use perfval_verdict::dynamo::worker_metrics;
use perfval_verdict::gpus::{Recorder, dcgm, summarize};
use perfval_verdict::workers::{self, Sample, Scrape, WorkerSeries};

pub fn run(input: &[u8]) -> bool {
    let pages: Vec<&[u8]> = input.split(|byte| *byte == 0).collect();
    let worker = worker_of(&pages);
    let gpus = gpus_of(&pages);
    worker || gpus
}

fn worker_of(pages: &[&[u8]]) -> bool {
    let mut samples = Vec::new();
    for page in pages {
        let Ok(reading) = worker_metrics::read(&String::from_utf8_lossy(page)) else {
            continue;
        };
        assert!(reading.in_flight >= 0 && reading.finished >= 0);
        samples.push(reading);
    }
    let read = !samples.is_empty();
    let series = series(samples);
    let summaries = workers::summarize(&[series.clone(), series], None);
    assert_eq!(summaries.len(), 2);
    read
}

fn series(readings: Vec<workers::Reading>) -> WorkerSeries {
    let mut series = WorkerSeries::default();
    for (second, reading) in (0..).zip(readings) {
        series.samples.push(Sample(second, Scrape::Reading(reading)));
    }
    series.thin(16);
    series
}

fn gpus_of(pages: &[&[u8]]) -> bool {
    let (mut recorder, mut read) = (Recorder::new("perf"), false);
    for (second, page) in (0..).zip(pages) {
        match dcgm::read(*page) {
            Ok(gpus) => {
                assert!((1..=64).contains(&gpus.len()));
                recorder.add(second, gpus);
                read = true;
            }
            Err(error) => recorder.failed(&error.to_string()),
        }
    }
    let (pages, errors, series) = recorder.finish();
    assert!(series.len() <= 64 && errors.len() <= 8, "{errors:?}");
    let record = summarize(pages, errors, &series, &[], None);
    let sane = |gpu: &perfval_verdict::gpus::GpuSummary| gpu.readings >= 0 && gpu.sm_mhz.is_none_or(|mhz| mhz >= 0);
    assert!(record.gpus.iter().all(sane));
    read
}
