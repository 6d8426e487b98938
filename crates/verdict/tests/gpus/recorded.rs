//! Telemetry of real GPUs: two H200, healthy and with a neighbour on one of them, and an H100 that overheats.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::diagnosis::gpus::unread;
use perfval_verdict::gpus::dcgm::read;
use perfval_verdict::gpus::{GpuRecord, Recorder, summarize};
use rust_decimal::Decimal;

use super::{UUIDS, causes, devices, pods, workers};

/// Two GPUs of a real host, one look a second, through the same steps as in a trial.
fn recorded(name: &str, every: i64, first: i64, last: i64) -> GpuRecord {
    let path = format!("tests/fixtures/telemetry/{name}.csv");
    let text = fs::read_to_string(&path).expect("a recording");
    let mut pages: BTreeMap<i64, String> = BTreeMap::new();
    for line in text.lines().skip(1) {
        // Not every recording has every column.
        let number = |value: &str| (!value.is_empty()).then(|| value.parse::<i64>().expect("a number"));
        let values: Vec<Option<i64>> = line.split(',').map(number).collect();
        let [
            Some(second),
            Some(gpu),
            sm,
            memory,
            mw,
            celsius,
            percent,
            reasons,
            generation,
            mib,
        ] = values[..]
        else {
            panic!("{line}")
        };
        let uuid = UUIDS[usize::try_from(gpu).expect("0 or 1")];
        let labels = format!("gpu=\"{gpu}\",UUID=\"{uuid}\"");
        let page = pages.entry(second).or_default();
        for (series, value) in [
            ("SM_CLOCK", sm),
            ("MEM_CLOCK", memory),
            ("GPU_TEMP", celsius),
            ("GPU_UTIL", percent),
            ("CLOCKS_EVENT_REASONS", reasons),
            ("PCIE_LINK_GEN", generation),
            ("FB_USED", mib),
        ] {
            if let Some(value) = value {
                writeln!(page, "DCGM_FI_DEV_{series}{{{labels}}} {value}").expect("text");
            }
        }
        let mw = mw.expect("power");
        let (watts, rest) = (mw / 1000, mw % 1000);
        writeln!(page, "DCGM_FI_DEV_POWER_USAGE{{{labels}}} {watts}.{rest:03}").expect("text");
    }
    let mut recorder = Recorder::new("perf");
    let seconds = pages.keys().last().expect("pages") + 1;
    for second in 0..seconds {
        // An exporter repeats its page until it collects again.
        let shown = pages.range(..=second / every * every).next_back();
        if let Some((_, page)) = shown {
            recorder.add(second, read(page.as_bytes()).expect("a page"));
        }
    }
    let (pages, errors, series) = recorder.finish();
    let measured = Some(Decimal::from(last - first));
    summarize(pages, errors, &series, &workers(seconds, first, last), measured)
}

#[test]
fn healthy_gpus_are_not_blamed_for_their_power_cap() {
    for every in [1, 5, 10, 30] {
        let record = recorded("h200-healthy", every, 21, 37);
        assert_eq!(causes(&record), [], "a page every {every} s");
        assert_eq!(unread(&record, &pods(), &devices(), 1, true), None);
    }
    // The whole load came and went between two collections.
    let why = unread(&recorded("h200-healthy", 60, 21, 37), &pods(), &devices(), 1, true);
    assert!(
        why.as_ref().is_some_and(|why| why.contains("DCGM_EXPORTER_INTERVAL")),
        "{why:?}"
    );
    let record = recorded("h200-healthy", 1, 21, 37);
    let first = &record.gpus[0];
    assert!(first.readings >= 10 && first.idle_readings >= 10, "{first:?}");
    assert_eq!(first.reasons, Some(4), "the power cap was active");
    assert!(first.sm_mhz.is_some_and(|mhz| (1850..1980).contains(&mhz)), "{first:?}");
}

#[test]
fn a_neighbour_on_a_real_gpu_is_seen_with_its_uuid() {
    let record = recorded("h200-shared", 1, 25, 46);
    let causes = causes(&record);
    let named: Vec<Cause> = causes.iter().map(|(cause, _)| *cause).collect();
    assert_eq!(named, [Cause::GPUShared, Cause::ClocksLow], "{causes:?}");
    for (_, text) in &causes {
        assert!(
            text.starts_with(&format!("worker pv-1-worker-1 (GPU 1, {}): ", UUIDS[1])),
            "{text}"
        );
    }
    assert!(
        causes[0].1.contains("while no worker had requests, first in second"),
        "{}",
        causes[0].1
    );
    assert!(
        causes[0].1.contains("MiB more memory in use than on its peers"),
        "{}",
        causes[0].1
    );
}

#[test]
fn a_page_that_is_seldom_new_proves_no_idleness() {
    // Its values may be twice its rhythm old, and the load began after 25 seconds.
    for every in [10, 30] {
        let record = recorded("h200-shared", every, 25, 46);
        assert!(record.gpus.iter().all(|gpu| gpu.idle_readings == 0), "{record:?}");
        assert_eq!(causes(&record), [], "a page every {every} s");
    }
}

#[test]
fn a_real_gpu_that_overheats_is_named_with_its_reason() {
    // GPUs 0 and 1 of four H100s that decoded from second 12 on. GPU 0 was at 77 °C before.
    for every in [1, 5] {
        let record = recorded("h100-overheating", every, 12, 49);
        let causes = causes(&record);
        let named: Vec<Cause> = causes.iter().map(|(cause, _)| *cause).collect();
        assert_eq!(
            named,
            [Cause::GPUThrottled, Cause::ClocksLow],
            "every {every} s: {causes:?}"
        );
        for (_, text) in &causes {
            assert!(
                text.starts_with(&format!("worker pv-1-worker-0 (GPU 0, {}): ", UUIDS[0])) && !text.contains(UUIDS[1]),
                "{text}"
            );
        }
        assert!(causes[0].1.contains("software thermal slowdown in"), "{}", causes[0].1);
    }
}
