//! Pages of the DCGM exporter, what becomes of them in a trial, and what they say of the workers' GPUs.

use std::collections::BTreeMap;
use std::fs;

use perfval_api::{DeviceStatus, WorkerStatus};
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::diagnosis::gpus::{found, unread};
use perfval_verdict::gpus::dcgm::{PageError, read};
use perfval_verdict::gpus::{Field, GpuRecord, GpuSummary, Mark, Reading, Recorder, summarize};
use perfval_verdict::workers::{self, Sample, Scrape, WorkerSeries};
use rust_decimal::Decimal;

const UUIDS: [&str; 2] = [
    "GPU-a51c9ad4-0d6e-4d3a-9b1c-2f4e8d7a6c00",
    "GPU-b51c9ad4-0d6e-4d3a-9b1c-2f4e8d7a6c01",
];

fn page() -> String {
    fs::read_to_string("tests/fixtures/telemetry/dcgm-exporter.txt").expect("a page")
}

#[test]
fn a_page_is_read_by_uuid() {
    let gpus = read(page().as_bytes()).expect("a good page");
    let uuids: Vec<&str> = gpus.iter().map(|gpu| gpu.uuid.as_str()).collect();
    assert_eq!(uuids, UUIDS);
    let second = &gpus[1];
    assert_eq!(second.index, Some(1));
    assert!(second.pods.contains(&("perf".to_owned(), "pv-1-worker-1".to_owned())));
    for (field, value) in [
        (Field::SmClock, 1890),
        (Field::MemoryClock, 2619),
        (Field::Reasons, 0),
        (Field::Power, 648_011),
        (Field::Temperature, 55),
        (Field::Utilisation, 98),
        (Field::MemoryUsed, 71_902),
        (Field::Xid, 31),
        (Field::SingleBitErrors, 2),
        (Field::PcieReplays, 3),
        (Field::PcieGeneration, 5),
        (Field::ThermalViolation, 1_500_000_000),
        (Field::EngineActive, 98),
        (Field::MemoryActive, 55),
    ] {
        assert_eq!(second.reading.get(field), Some(value), "{field:?}");
    }
    assert_eq!(second.reading.get(Field::NvlinkRecoveries), None, "not exported");
}

#[test]
fn a_page_that_cannot_be_trusted_is_refused() {
    let page = page();
    let refused = |text: &str| read(text.as_bytes()).expect_err("refused");
    assert!(matches!(refused(&page[..page.len() / 2]), PageError::Cut));
    assert!(matches!(refused(""), PageError::NoGpus));
    assert!(matches!(refused("<html>\n</html>\n"), PageError::Malformed(1)));
    assert!(
        matches!(refused(&page.replace("DCGM_FI", "DCGM_EX")), PageError::NoGpus),
        "renamed"
    );
    assert!(matches!(refused(&page.replace("UUID", "uuid")), PageError::NoGpus));
    assert!(matches!(
        refused(&page.replace("\",device=", ",device=")),
        PageError::Malformed(_)
    ));
    assert!(matches!(refused(&"# a comment\n".repeat(400_000)), PageError::TooLarge));
    assert!(
        matches!(refused(&"a".repeat(10_000)), PageError::Malformed(1)),
        "one endless line"
    );
    assert!(matches!(read(&b"\xff\xfe\n"[..]), Err(PageError::Malformed(1))));
    let many: String = (0..65)
        .map(|n| format!("DCGM_FI_DEV_SM_CLOCK{{UUID=\"GPU-{n}\"}} 1\n"))
        .collect();
    assert!(matches!(refused(&many), PageError::TooManyGpus));
}

#[test]
fn a_value_that_cannot_be_is_left_out() {
    for value in [
        "NaN",
        "-1",
        "9223372036854775794",
        "1e300",
        "+Inf",
        "ERROR - FAILED TO CONVERT TO STRING",
    ] {
        let page = page().replace("} 1890", &format!("}} {value}"));
        let gpus = read(page.as_bytes()).expect("a page");
        assert_eq!(gpus[1].reading.get(Field::SmClock), None, "{value}");
        assert_eq!(gpus[1].reading.get(Field::MemoryClock), Some(2619), "{value}");
    }
}

#[test]
fn labels_may_hold_anything_and_slices_do_not_count() {
    let text = concat!(
        "DCGM_FI_DEV_SM_CLOCK{modelName=\"a \\\"b\\\", }{ c\\\\\" , UUID=\"GPU-1\",} 100 1700000000\n",
        "DCGM_FI_DEV_SM_CLOCK{UUID=\"GPU-1\",GPU_I_ID=\"7\"} 999\n",
        "DCGM_FI_DEV_SM_CLOCK{UUID=\"GPU-../1\"} 5\n",
    );
    let gpus = read(text.as_bytes()).expect("a page");
    assert_eq!(gpus.len(), 1);
    assert_eq!(gpus[0].reading.get(Field::SmClock), Some(100));
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
        worker_id: None,
        samples: (0..seconds).map(sample).collect(),
    };
    vec![worker("10.0.0.1"), worker("10.0.0.2")]
}

/// Two H200 of a real host, one look a second (issue 14), through the same steps as in a trial.
fn recorded(name: &str, every: i64, first: i64, last: i64) -> GpuRecord {
    let path = format!("tests/fixtures/telemetry/h200-{name}.csv");
    let text = fs::read_to_string(&path).expect("a recording");
    let mut pages: BTreeMap<i64, String> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let values: Vec<i64> = line.split(',').map(|value| value.parse().expect("a number")).collect();
        let [second, gpu, sm, memory, mw, celsius, percent, reasons, generation, mib] = values[..] else {
            panic!("{line}")
        };
        let uuid = UUIDS[usize::try_from(gpu).expect("0 or 1")];
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
            *page += &format!("DCGM_FI_DEV_{series}{{gpu=\"{gpu}\",UUID=\"{uuid}\"}} {value}\n");
        }
        *page += &format!(
            "DCGM_FI_DEV_POWER_USAGE{{gpu=\"{gpu}\",UUID=\"{uuid}\"}} {}.{:03}\n",
            mw / 1000,
            mw % 1000
        );
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

fn devices() -> Vec<DeviceStatus> {
    let device = |n: usize| DeviceStatus {
        pool: "node".to_owned(),
        name: format!("gpu-{n}"),
        uuid: Some(UUIDS[n].to_owned()),
    };
    vec![device(0), device(1)]
}

fn pods() -> Vec<WorkerStatus> {
    let pod = |n: usize| WorkerStatus {
        pod: format!("pv-1-worker-{n}"),
        device: Some(format!("node/gpu-{n}")),
        ..WorkerStatus::default()
    };
    vec![pod(0), pod(1)]
}

fn causes(record: &GpuRecord) -> Vec<(Cause, String)> {
    found(Some(record), &pods(), &devices())
}

#[test]
fn healthy_gpus_are_not_blamed_for_their_power_cap() {
    for every in [1, 5, 10, 30] {
        let record = recorded("healthy", every, 21, 37);
        assert_eq!(causes(&record), [], "a page every {every} s");
        assert_eq!(unread(&record, &pods(), &devices()), None);
    }
    let record = recorded("healthy", 1, 21, 37);
    assert_eq!(record.every_seconds, Some(1));
    let first = &record.gpus[0];
    assert!(first.readings >= 10 && first.idle_readings >= 10, "{first:?}");
    assert_eq!(first.reasons, Some(4), "the power cap was active");
    assert!(first.sm_mhz.is_some_and(|mhz| (1850..1980).contains(&mhz)), "{first:?}");
}

#[test]
fn a_neighbour_on_a_real_gpu_is_seen_with_its_uuid() {
    let record = recorded("shared", 1, 25, 46);
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
fn a_page_of_every_half_minute_proves_no_idleness() {
    // Its values may be a minute old, and the load began after 25 seconds.
    let record = recorded("shared", 30, 25, 46);
    assert!(record.gpus.iter().all(|gpu| gpu.idle_readings == 0), "{record:?}");
    assert_eq!(causes(&record), []);
}

/// A healthy GPU under load.
fn gpu(n: usize) -> GpuSummary {
    GpuSummary {
        uuid: UUIDS[n].to_owned(),
        index: i64::try_from(n).ok(),
        readings: 60,
        sm_mhz: Some(1900),
        memory_mhz: Some(2619),
        watts: Some(650),
        celsius: Some(60),
        reasons: Some(4),
        pcie_generation: Some(5),
        pcie_width: Some(16),
        idle_readings: 10,
        ..GpuSummary::default()
    }
}

fn of(gpus: [GpuSummary; 2]) -> GpuRecord {
    GpuRecord {
        pages: 80,
        gpus: gpus.into(),
        ..GpuRecord::default()
    }
}

fn mark(value: i64, at: i64) -> Option<Mark> {
    Some(Mark { value, at: Some(at) })
}

#[test]
fn each_sign_has_its_cause() {
    let standing = |value| Some(Mark { value, at: None });
    type Change = Box<dyn Fn(&mut GpuSummary)>;
    let cases: Vec<(&str, Change, Option<Cause>)> = vec![
        ("nothing", Box::new(|_| {}), None),
        (
            "heat",
            Box::new(|gpu| (gpu.reasons, gpu.slowed) = (Some(0x48), mark(12, 14))),
            Some(Cause::GPUThrottled),
        ),
        (
            "one reading of many",
            Box::new(|gpu| (gpu.reasons, gpu.slowed) = (Some(0x20), mark(2, 14))),
            None,
        ),
        (
            "held back without reasons",
            Box::new(|gpu| (gpu.reasons, gpu.held_back_ms) = (None, mark(9000, 3))),
            Some(Cause::GPUThrottled),
        ),
        (
            "off the bus",
            Box::new(move |gpu| gpu.xid = standing(79)),
            Some(Cause::GPUErrors),
        ),
        (
            "an old XID of a program",
            Box::new(move |gpu| gpu.xid = standing(31)),
            None,
        ),
        (
            "a new XID of a program",
            Box::new(|gpu| gpu.xid = mark(31, 5)),
            Some(Cause::GPUErrors),
        ),
        (
            "double-bit errors",
            Box::new(|gpu| gpu.double_bit_errors = mark(1, 5)),
            Some(Cause::GPUErrors),
        ),
        (
            "remap failure",
            Box::new(|gpu| gpu.remap_failed = true),
            Some(Cause::GPUErrors),
        ),
        (
            "half the lanes",
            Box::new(|gpu| gpu.pcie_width = Some(8)),
            Some(Cause::LinkDegraded),
        ),
        (
            "replays",
            Box::new(|gpu| gpu.pcie_replays = mark(40, 2)),
            Some(Cause::LinkDegraded),
        ),
        ("few replays", Box::new(|gpu| gpu.pcie_replays = mark(2, 2)), None),
        (
            "NVLink errors",
            Box::new(|gpu| gpu.nvlink_errors = mark(10, 2)),
            Some(Cause::LinkDegraded),
        ),
        (
            "slow clock",
            Box::new(|gpu| gpu.sm_mhz = Some(1700)),
            Some(Cause::ClocksLow),
        ),
        (
            "another clock of a healthy one",
            Box::new(|gpu| gpu.sm_mhz = Some(1820)),
            None,
        ),
        (
            "slow memory",
            Box::new(|gpu| gpu.memory_mhz = Some(1593)),
            Some(Cause::ClocksLow),
        ),
        (
            "a slow clock, seen once",
            Box::new(|gpu| (gpu.sm_mhz, gpu.readings) = (Some(900), 1)),
            None,
        ),
        (
            "a neighbour",
            Box::new(|gpu| (gpu.idle_busy, gpu.idle_busy_percent) = (mark(8, 2), Some(13))),
            Some(Cause::GPUShared),
        ),
        (
            "a last echo of the load",
            Box::new(|gpu| gpu.idle_busy = mark(1, 40)),
            None,
        ),
        (
            "a foreign pod",
            Box::new(|gpu| gpu.foreign_pods = 1),
            Some(Cause::GPUShared),
        ),
    ];
    for (name, change, cause) in cases {
        let mut second = gpu(1);
        change(&mut second);
        let found = causes(&of([gpu(0), second]));
        let named: Vec<Cause> = found.iter().map(|(cause, _)| *cause).collect();
        assert_eq!(named, Vec::from_iter(cause), "{name}: {found:?}");
        assert!(
            found.iter().all(|(_, text)| text.contains(UUIDS[1])),
            "{name}: {found:?}"
        );
    }
}

#[test]
fn only_gpus_of_the_run_are_judged() {
    let mut hot = gpu(1);
    (hot.reasons, hot.slowed) = (Some(0x40), mark(60, 1));
    let record = of([gpu(0), hot]);
    // A run on the first GPU alone.
    assert_eq!(found(Some(&record), &pods()[..1], &devices()), []);
    // The device plugin: nobody knows who has which, but the run has them all.
    let unknown: Vec<WorkerStatus> = pods()
        .into_iter()
        .map(|pod| WorkerStatus { device: None, ..pod })
        .collect();
    let all = found(Some(&record), &unknown, &[]);
    assert_eq!(all.len(), 1);
    assert!(
        all[0]
            .1
            .starts_with(&format!("GPU 1, {}: hardware thermal slowdown", UUIDS[1])),
        "{all:?}"
    );
    assert_eq!(
        found(Some(&record), &unknown[..1], &[]),
        [],
        "one of two: not known which"
    );
    // Unless the exporter lists the pods.
    let mut listed = record.clone();
    listed.gpus[1].pods.insert("pv-1-worker-1".to_owned());
    let joined = found(Some(&listed), &unknown[1..], &[]);
    assert!(joined[0].1.starts_with("worker pv-1-worker-1 (GPU 1, "), "{joined:?}");
}

#[test]
fn missing_telemetry_has_a_reason() {
    let silent = GpuRecord {
        errors: [("connection refused".to_owned(), 7)].into(),
        ..GpuRecord::default()
    };
    let why = unread(&silent, &pods(), &devices()).expect("a reason");
    assert_eq!(why, "no page of GPU metrics could be read (7 × connection refused)");
    let mut elsewhere = of([gpu(0), gpu(1)]);
    for gpu in &mut elsewhere.gpus {
        gpu.uuid.push('x');
    }
    let why = unread(&elsewhere, &pods(), &devices()).expect("a reason");
    assert!(why.starts_with("none of the 2 GPUs on the page"), "{why}");
}

#[test]
fn counters_that_go_backwards_are_no_growth() {
    let page = |replays: i64, xid: i64| {
        let uuid = UUIDS[0];
        let text = format!(
            "DCGM_FI_DEV_PCIE_REPLAY_COUNTER{{UUID=\"{uuid}\"}} {replays}\nDCGM_FI_DEV_XID_ERRORS{{UUID=\"{uuid}\"}} {xid}\n"
        );
        read(text.as_bytes()).expect("a page")
    };
    let mut recorder = Recorder::new("perf");
    for (second, replays) in (0..).zip([500, 100, 100, 40, 45]) {
        recorder.add(second, page(replays, if second < 3 { 0 } else { 94 }));
    }
    let (pages, errors, series) = recorder.finish();
    assert_eq!(
        (pages, series[0].samples.len()),
        (5, 4),
        "a page that repeats itself is no reading"
    );
    let record = summarize(pages, errors, &series, &workers(5, 0, 5), None);
    assert_eq!(record.gpus[0].pcie_replays, mark(5, 4));
    assert_eq!(record.gpus[0].xid, mark(94, 3));
}

#[test]
fn recordings_come_back_as_they_were_stored() {
    let gpus = read(page().as_bytes()).expect("a page");
    let mut recorder = Recorder::new("elsewhere");
    recorder.add(3, gpus);
    let (_, _, mut series) = recorder.finish();
    assert_eq!(series[0].foreign_pods, 1, "counted, not named");
    assert!(series[0].pods.is_empty());
    let text = serde_json::to_string(&series).expect("JSON");
    let back: Vec<perfval_verdict::gpus::GpuSeries> = serde_json::from_str(&text).expect("JSON");
    assert_eq!(back, series);
    // A later version knows more, an earlier one less.
    let longer: Reading = serde_json::from_str(&format!("[1900{}]", ",5".repeat(40))).expect("a reading");
    assert_eq!(longer.get(Field::SmClock), Some(1900));
    let shorter: Reading = serde_json::from_str("[1900]").expect("a reading");
    assert_eq!(shorter.get(Field::NvlinkTraffic), None);

    let sample = series[0].samples[0];
    series[0].samples = (0..100)
        .map(|second| perfval_verdict::gpus::GpuSample(second, sample.1))
        .collect();
    series[0].samples[4].1.set(Field::Reasons, 0x40);
    series[0].thin(10);
    assert_eq!(series[0].samples.len(), 10);
    assert_eq!(
        series[0].samples[0].1.get(Field::Reasons),
        Some(0x44),
        "a reason survives"
    );
}
