//! Pages of the DCGM exporter, their use in a trial, and their evidence about the workers' GPUs.

mod causes;
mod pages;
mod recorded;

use std::fs;

use perfval_api::{DeviceStatus, WorkerPod};
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::diagnosis::gpus::found;
use perfval_verdict::gpus::{GpuRecord, Mark};
use perfval_verdict::workers::{self, Sample, Scrape, WorkerSeries};

const UUIDS: [&str; 2] = [
    "GPU-a51c9ad4-0d6e-4d3a-9b1c-2f4e8d7a6c00",
    "GPU-b51c9ad4-0d6e-4d3a-9b1c-2f4e8d7a6c01",
];

fn page() -> String {
    fs::read_to_string("tests/fixtures/telemetry/dcgm-exporter.txt").expect("a page")
}

/// Each worker had requests from the first to the last of these seconds.
fn workers(seconds: i64, first: i64, last: i64) -> Vec<WorkerSeries> {
    let sample = |second: i64| {
        let done = (second.clamp(first, last) - first) * 10;
        let loaded = (first..last).contains(&second);
        Sample(
            second,
            Scrape::Reading(workers::Reading {
                in_flight: if loaded { 256 } else { 0 },
                started: done,
                finished: done,
                ..workers::Reading::default()
            }),
        )
    };
    let worker = |address: &str| WorkerSeries {
        address: address.to_owned(),
        samples: (0..seconds).map(sample).collect(),
    };
    vec![worker("10.0.0.1"), worker("10.0.0.2")]
}

fn devices() -> Vec<DeviceStatus> {
    let device = |n: usize| DeviceStatus {
        pool: "node".to_owned(),
        name: format!("gpu-{n}"),
        uuid: Some(UUIDS[n].to_owned()),
    };
    vec![device(0), device(1)]
}

fn pods() -> Vec<WorkerPod> {
    let pod = |n: usize| WorkerPod {
        pod: format!("pv-1-worker-{n}"),
        devices: vec![format!("node/gpu-{n}")],
        ..WorkerPod::default()
    };
    vec![pod(0), pod(1)]
}

fn causes(record: &GpuRecord) -> Vec<(Cause, String)> {
    found(Some(record), &pods(), &devices(), 1)
}

fn mark(value: i64, at: i64) -> Mark {
    Mark { value, at: Some(at) }
}
