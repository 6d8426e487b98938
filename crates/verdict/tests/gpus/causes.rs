//! Causes of each sign, and the GPUs that are judged.

use perfval_api::{DeviceStatus, WorkerPod};
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::diagnosis::gpus::{found, unread};
use perfval_verdict::gpus::{GpuRecord, GpuSummary, Mark};

use super::{UUIDS, causes, devices, mark, pods};

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

#[test]
fn each_sign_has_its_cause() {
    use Cause::{ClocksLow, GPUErrors, GPUShared, GPUThrottled, LinkDegraded};
    const OLD_BUS_LOSS: Option<Mark> = Some(Mark { value: 79, at: None });
    const OLD_PROGRAM_ERROR: Option<Mark> = Some(Mark { value: 31, at: None });
    type Change = fn(&mut GpuSummary);
    let cases: [(&str, Change, &[Cause]); 21] = [
        ("nothing", |_| {}, &[]),
        (
            "heat",
            |gpu| (gpu.reasons, gpu.slowed) = (Some(0x48), Some(mark(12, 14))),
            &[GPUThrottled],
        ),
        (
            "one reading of many",
            |gpu| (gpu.reasons, gpu.slowed) = (Some(0x20), Some(mark(2, 14))),
            &[],
        ),
        (
            "one moment, by an exporter that collects every 30 s",
            |gpu| (gpu.reasons, gpu.readings, gpu.slowed) = (Some(0x40), 2, Some(mark(2, 14))),
            &[],
        ),
        (
            "held back without reasons",
            |gpu| (gpu.reasons, gpu.held_back_ms) = (None, Some(mark(9000, 3))),
            &[GPUThrottled],
        ),
        ("off the bus", |gpu| gpu.xid = OLD_BUS_LOSS, &[GPUErrors]),
        ("an old XID of a program", |gpu| gpu.xid = OLD_PROGRAM_ERROR, &[]),
        (
            "a new XID of a program",
            |gpu| gpu.xid = Some(mark(31, 5)),
            &[GPUErrors],
        ),
        ("ECC", |gpu| gpu.double_bit_errors = Some(mark(1, 5)), &[GPUErrors]),
        ("remap failure", |gpu| gpu.remap_failed = true, &[GPUErrors]),
        ("half the lanes", |gpu| gpu.pcie_width = Some(8), &[LinkDegraded]),
        ("replays", |gpu| gpu.pcie_replays = Some(mark(40, 2)), &[LinkDegraded]),
        ("few replays", |gpu| gpu.pcie_replays = Some(mark(2, 2)), &[]),
        ("NVLink", |gpu| gpu.nvlink_errors = Some(mark(10, 2)), &[LinkDegraded]),
        ("slow clock", |gpu| gpu.sm_mhz = Some(1700), &[ClocksLow]),
        ("another clock of a healthy one", |gpu| gpu.sm_mhz = Some(1820), &[]),
        ("slow memory", |gpu| gpu.memory_mhz = Some(1593), &[ClocksLow]),
        (
            "a slow clock, seen once",
            |gpu| (gpu.sm_mhz, gpu.readings) = (Some(900), 1),
            &[],
        ),
        (
            "a neighbour",
            |gpu| (gpu.idle_busy, gpu.idle_busy_percent) = (Some(mark(8, 2)), Some(13)),
            &[GPUShared],
        ),
        ("an echo of the load", |gpu| gpu.idle_busy = Some(mark(1, 40)), &[]),
        ("a foreign pod", |gpu| gpu.foreign_pods = 1, &[GPUShared]),
    ];
    for (name, change, expected) in cases {
        let mut second = gpu(1);
        change(&mut second);
        let found = causes(&of([gpu(0), second]));
        let named: Vec<Cause> = found.iter().map(|(cause, _)| *cause).collect();
        assert_eq!(named, expected, "{name}: {found:?}");
        assert!(
            found.iter().all(|(_, text)| text.contains(UUIDS[1])),
            "{name}: {found:?}"
        );
    }
}

#[test]
fn only_gpus_of_the_run_are_judged() {
    let mut hot = gpu(1);
    (hot.reasons, hot.slowed) = (Some(0x40), Some(mark(60, 1)));
    let record = of([gpu(0), hot]);
    // A run on the first GPU alone.
    assert_eq!(found(Some(&record), &pods()[..1], &devices(), 1), []);
    // The device plugin: nobody knows who has which, but the run has them all.
    let mut unknown = pods();
    for pod in &mut unknown {
        pod.devices.clear();
    }
    let all = found(Some(&record), &unknown, &[], 1);
    assert_eq!(all.len(), 1);
    assert!(
        all[0]
            .1
            .starts_with(&format!("GPU 1, {}: hardware thermal slowdown", UUIDS[1])),
        "{all:?}"
    );
    assert_eq!(
        found(Some(&record), &unknown[..1], &[], 1),
        [],
        "one of two: not known which"
    );
    // One worker with two GPUs has them all.
    assert_eq!(found(Some(&record), &unknown[..1], &[], 2).len(), 1);
    // Unless the exporter lists the pods.
    let mut listed = record.clone();
    listed.gpus[1].pods.insert("pv-1-worker-1".to_owned());
    let joined = found(Some(&listed), &unknown[1..], &[], 1);
    assert!(joined[0].1.starts_with("worker pv-1-worker-1 (GPU 1, "), "{joined:?}");
}

#[test]
fn missing_telemetry_has_a_reason() {
    let silent = GpuRecord {
        errors: [("connection refused".to_owned(), 7)].into(),
        ..GpuRecord::default()
    };
    let why = unread(&silent, &pods(), &devices(), 1, true).expect("a reason");
    assert_eq!(why, "no page of GPU metrics could be read (7 × connection refused)");
    let mut elsewhere = of([gpu(0), gpu(1)]);
    for gpu in &mut elsewhere.gpus {
        gpu.uuid.push('x');
    }
    let why = unread(&elsewhere, &pods(), &devices(), 1, true).expect("a reason");
    assert!(why.starts_with("none of the 2 GPUs on the page"), "{why}");
}

/// Three of four H200s were shared, and the status had room for two.
#[test]
fn no_gpu_is_cut_off() {
    let uuid = |n: i64| format!("GPU-5165af39-0648-336e-8215-55181701b5b{n}");
    let text = |shared: i64| {
        let gpus = (0..8).map(|n| GpuSummary {
            uuid: uuid(n),
            index: Some(n),
            idle_busy: (n < shared).then(|| mark(8, 3)),
            idle_busy_percent: Some(28),
            used_mib: Some(if n < shared { 117_000 } else { 116_000 }),
            ..gpu(0)
        });
        let record = GpuRecord {
            pages: 80,
            gpus: gpus.collect(),
            ..GpuRecord::default()
        };
        let device = |n: i64| DeviceStatus {
            pool: "gpu-node-1".to_owned(),
            name: format!("gpu-{n}"),
            uuid: Some(uuid(n)),
        };
        let pod = |n: i64| WorkerPod {
            pod: format!("pv-2a65add2-worker-77954d744c-mpt6{n}"),
            devices: vec![format!("gpu-node-1/gpu-{n}")],
            ..WorkerPod::default()
        };
        let (pods, devices): (Vec<_>, Vec<_>) = (0..8).map(|n| (pod(n), device(n))).unzip();
        let [(Cause::GPUShared, text)] = &found(Some(&record), &pods, &devices, 1)[..] else {
            panic!("{shared} GPUs are shared");
        };
        let shown = Cause::GPUShared.finding(text.as_str()).evidence;
        assert!((0..shared).all(|n| shown.contains(&uuid(n))), "{shown}");
        shown
    };
    let (one, two, eight) = (text(1), text(2), text(8));
    let seen = "up to 28 % busy in 8 of 10 readings";
    assert!(
        one.starts_with(&format!(
            "worker pv-2a65add2-worker-77954d744c-mpt60 (GPU 0, {}): {seen}",
            uuid(0)
        )),
        "{one}"
    );
    assert!(two.starts_with(&format!("GPU 0, {}: {seen}", uuid(0))), "{two}");
    assert!(two.contains(&format!("; GPU 1, {}: {seen}", uuid(1))), "{two}");
    assert!(
        eight.contains(&format!("{}; the first one: up to 28 %", uuid(7))),
        "{eight}"
    );
    for shared in 3..8 {
        text(shared);
    }
}
