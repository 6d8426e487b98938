//! The GPUs' own telemetry, joined with the workers that run on them: evidence, never a miss in itself.

use perfval_api::{DeviceStatus, WorkerPod};

use super::cause::{Cause, EVIDENCE, Explained};
use crate::gpus::{GpuRecord, GpuSummary, Mark};

/// Part of the readings under load (percent) from which a slowdown counts: healthy GPUs had none.
const SLOWED_PERCENT: i64 = 5;
/// Fewest readings of a slowdown: an exporter that collects every 30 s shows two in a trial of a minute, and one moment is half
/// of them.
const SLOWED: i64 = 3;
/// Clock under load, against the median of its peers (percent), below which it is low: 98 to 103 in healthy trials of two
/// H200, 88 to 95 next to a neighbour that worked for half of the time or more.
const CLOCK_PERCENT: i64 = 93;
/// Readings under load that a mean clock needs, of the GPU and of its peers.
const COMPARABLE: i64 = 3;
/// Readings that show a GPU at work while no worker has anything to do. One may still be of the load before.
const AT_WORK: i64 = 3;
/// Memory beyond that of the peers (MiB) that is reported in addition to other signs of a neighbour: healthy workers
/// of one model differed by 330, a neighbour held 1,010.
const MORE_MEMORY: i64 = 700;
/// Replays or link errors in one trial from which a link is in trouble.
const LINK_ERRORS: i64 = 10;
/// XID errors of the hardware, its memory, its links or its firmware, by NVIDIA's list. Others are mostly made by a
/// program; they count only if they come during the trial.
const HARDWARE_XIDS: [i64; 17] = [46, 48, 61, 62, 63, 64, 74, 79, 92, 94, 95, 109, 110, 119, 120, 140, 143];

/// Reasons why clocks are held down, by NVML's bits.
const REASONS: [(i64, &str); 4] = [
    (0x40, "hardware thermal slowdown"),
    (0x80, "power brake"),
    (0x20, "software thermal slowdown"),
    (0x8, "hardware slowdown"),
];

/// One GPU of the run.
struct Gpu<'a> {
    seen: &'a GpuSummary,
    /// The worker that runs on it, where that is known.
    worker: Option<&'a WorkerPod>,
}

impl Gpu<'_> {
    /// `worker pv-…-x7k2 (GPU 3, GPU-8f1d…)`
    fn name(&self) -> String {
        match self.worker {
            Some(worker) => format!("worker {} ({})", worker.pod, self.number()),
            None => self.number(),
        }
    }

    /// `GPU 3, GPU-8f1d…`
    fn number(&self) -> String {
        let uuid = &self.seen.uuid;
        let index = self.seen.index;
        index.map_or_else(|| uuid.clone(), |index| format!("GPU {index}, {uuid}"))
    }
}

/// Findings about the GPUs of the workers, `each` per worker.
pub fn found(record: Option<&GpuRecord>, workers: &[WorkerPod], devices: &[DeviceStatus], each: i64) -> Vec<Explained> {
    let Some(record) = record else {
        return Vec::new();
    };
    let gpus = join_workers(record, workers, devices, each);
    let all = |cause: Cause, rule: &dyn Fn(&Gpu<'_>, &[Gpu<'_>]) -> Option<String>| {
        let found = gpus.iter().filter_map(|gpu| Some((gpu, rule(gpu, &gpus)?)));
        in_words(&found.collect::<Vec<_>>()).map(|text| (cause, text))
    };
    [
        all(Cause::GPUErrors, &|gpu, _| errors(gpu.seen)),
        all(Cause::GPUThrottled, &|gpu, _| throttled(gpu.seen)),
        all(Cause::GPUShared, &|gpu, gpus| shared(gpu, gpus, workers)),
        all(Cause::LinkDegraded, &|gpu, gpus| link(gpu.seen, gpus)),
        all(Cause::ClocksLow, &|gpu, gpus| clocks(gpu.seen, gpus)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Text for each GPU. A text that is too long loses the workers' names, then all but the first GPU's part: the UUIDs of eight GPUs
/// fit (three of four H200s were shared, and the status showed two).
fn in_words(found: &[(&Gpu<'_>, String)]) -> Option<String> {
    let (_, first) = found.first()?;
    let each = |with_worker: bool| {
        let name = |gpu: &Gpu<'_>| if with_worker { gpu.name() } else { gpu.number() };
        let texts: Vec<String> = found
            .iter()
            .map(|(gpu, text)| format!("{}: {text}", name(gpu)))
            .collect();
        texts.join("; ")
    };
    let fits = |text: &String| found.len() == 1 || text.len() <= EVIDENCE;
    let uuids: Vec<&str> = found.iter().map(|(gpu, _)| gpu.seen.uuid.as_str()).collect();
    let text = [true, false].map(each).into_iter().find(fits);
    Some(text.unwrap_or_else(|| format!("{}; the first one: {first}", uuids.join(", "))))
}

/// Reason why a trial lacks the requested telemetry. `is_sampled`: a worker's samples show the time under load.
pub fn unread(
    record: &GpuRecord,
    workers: &[WorkerPod],
    devices: &[DeviceStatus],
    each: i64,
    is_sampled: bool,
) -> Option<String> {
    if record.pages == 0 {
        let most = record.errors.iter().max_by_key(|(_, count)| **count);
        return most.map(|(why, count)| format!("no page of GPU metrics could be read ({count} × {why})"));
    }
    let gpus = join_workers(record, workers, devices, each);
    if gpus.is_empty() {
        let on_page = record.gpus.len();
        return Some(format!(
            "none of the {on_page} GPUs on the page of metrics is known to be one of this run"
        ));
    }
    let never = is_sampled && gpus.iter().all(|gpu| gpu.seen.readings == 0);
    never.then(|| {
        "no new page of the exporter showed a GPU under load (half busy or more): it collects every 30 s by default \
         (DCGM_EXPORTER_INTERVAL)"
            .to_owned()
    })
}

/// The GPUs that the workers run on: those of their claims, or those that the exporter lists with their pods. Without
/// either, all GPUs of the node, if there are as many as the workers'.
fn join_workers<'a>(
    record: &'a GpuRecord,
    workers: &'a [WorkerPod],
    devices: &[DeviceStatus],
    each: i64,
) -> Vec<Gpu<'a>> {
    let joined: Vec<Gpu<'a>> = record
        .gpus
        .iter()
        .filter_map(|seen| {
            let worker = workers.iter().find(|worker| runs_on(worker, seen, devices))?;
            Some(Gpu {
                seen,
                worker: Some(worker),
            })
        })
        .collect();
    let unclaimed = workers.iter().all(|worker| worker.devices.is_empty());
    let all = usize::try_from(each).unwrap_or(1).saturating_mul(workers.len());
    if joined.is_empty() && record.gpus.len() == all && unclaimed {
        return record.gpus.iter().map(|seen| Gpu { seen, worker: None }).collect();
    }
    joined
}

fn runs_on(worker: &WorkerPod, gpu: &GpuSummary, devices: &[DeviceStatus]) -> bool {
    if worker.devices.is_empty() {
        return gpu.pods.contains(&worker.pod);
    }
    let mut held = worker.held(devices);
    held.any(|device| device.uuid.as_ref() == Some(&gpu.uuid))
}

fn errors(gpu: &GpuSummary) -> Option<String> {
    let mut texts = Vec::new();
    if let Some(xid) = gpu
        .xid
        .filter(|xid| xid.at.is_some() || HARDWARE_XIDS.contains(&xid.value))
    {
        texts.push(format!("XID {}{}", xid.value, when(xid)));
    }
    if let Some(errors) = gpu.double_bit_errors {
        texts.push(format!("{} double-bit ECC errors{}", errors.value, when(errors)));
    }
    if let Some(rows) = gpu.remapped_rows {
        texts.push(format!("{} rows of its memory replaced{}", rows.value, when(rows)));
    }
    if gpu.remap_failed {
        texts.push("a row of its memory could not be replaced".to_owned());
    }
    (!texts.is_empty()).then(|| texts.join(", "))
}

fn when(mark: Mark) -> String {
    match mark.at {
        Some(second) => format!(" in second {second}"),
        None => " from before the trial".to_owned(),
    }
}

fn throttled(gpu: &GpuSummary) -> Option<String> {
    let enough = |slowed: &Mark| slowed.value >= SLOWED && slowed.value * 100 >= gpu.readings * SLOWED_PERCENT;
    let slowed = gpu.slowed.filter(enough).map(|slowed| {
        let why = why(gpu.reasons.unwrap_or_default());
        let (count, readings, first) = (slowed.value, gpu.readings, slowed.at.unwrap_or_default());
        format!("{why} in {count} of {readings} readings under load, first in second {first}")
    });
    // Without the reasons, the time that the clocks were held down is the evidence.
    let held = gpu.held_back_ms.filter(|held| held.value >= 1000).map(|held| {
        let (seconds, first) = (held.value / 1000, held.at.unwrap_or_default());
        format!("heat, the board's limits or reliability held its clocks down for {seconds} s, first in second {first}")
    });
    slowed.or(held).map(|text| text + &conditions(gpu))
}

/// A slowdown by heat or by the power brake is a slowdown by the hardware too: the other bit adds nothing.
fn why(reasons: i64) -> String {
    let seen = REASONS.iter().filter(|(bit, _)| reasons & bit != 0);
    let mut named: Vec<&str> = seen.map(|(_, name)| *name).collect();
    if named.len() > 1 {
        named.retain(|name| *name != "hardware slowdown");
    }
    named.join(" and ")
}

/// `; 1200 MHz, 350 W, up to 87 °C`
fn conditions(gpu: &GpuSummary) -> String {
    let values = [
        gpu.sm_mhz.map(|mhz| format!("{mhz} MHz")),
        gpu.watts.map(|watts| format!("{watts} W")),
        gpu.celsius.map(|celsius| format!("up to {celsius} °C")),
    ];
    let values: Vec<String> = values.into_iter().flatten().collect();
    if values.is_empty() {
        String::new()
    } else {
        format!("; {}", values.join(", "))
    }
}

fn shared(gpu: &Gpu<'_>, all: &[Gpu<'_>], workers: &[WorkerPod]) -> Option<String> {
    let mut texts = Vec::new();
    if let Some(at_work) = gpu.seen.idle_busy.filter(|busy| busy.value >= AT_WORK) {
        let (count, readings) = (at_work.value, gpu.seen.idle_readings);
        let (most, first) = (
            gpu.seen.idle_busy_percent.unwrap_or_default(),
            at_work.at.unwrap_or_default(),
        );
        texts.push(format!(
            "up to {most} % busy in {count} of {readings} readings while no worker had requests, first in second {first}"
        ));
    }
    // Only of a GPU that is known to be a worker's: the exporter may list pods that are gone.
    if gpu
        .worker
        .is_some_and(|worker| !worker.devices.is_empty() || gpu.seen.pods.contains(&worker.pod))
    {
        let ours = |pod: &str| workers.iter().any(|worker| worker.pod == pod);
        let mut others: Vec<String> = gpu.seen.pods.iter().filter(|pod| !ours(pod)).cloned().collect();
        if gpu.seen.foreign_pods > 0 {
            others.push(format!("{} of other namespaces", gpu.seen.foreign_pods));
        }
        if !others.is_empty() {
            texts.push(format!(
                "the exporter lists pods on it that are not of this run: {}",
                others.join(", ")
            ));
        }
    }
    if texts.is_empty() {
        return None;
    }
    let theirs = median(peers(gpu.seen, all).filter_map(|peer| peer.used_mib));
    if let Some((own, theirs)) = gpu.seen.used_mib.zip(theirs)
        && own - theirs >= MORE_MEMORY
    {
        texts.push(format!("{} MiB more memory in use than on its peers", own - theirs));
    }
    Some(texts.join(", "))
}

fn link(gpu: &GpuSummary, all: &[Gpu<'_>]) -> Option<String> {
    let mut texts = Vec::new();
    let mut below = |what: &str, own: Option<i64>, theirs: Option<i64>| {
        if let Some((own, theirs)) = own.zip(theirs)
            && own < theirs
        {
            texts.push(format!("its PCIe link runs at {what} {own}, its peers' at {theirs}"));
        }
    };
    let generation = median(peers(gpu, all).filter_map(|peer| peer.pcie_generation));
    let width = median(peers(gpu, all).filter_map(|peer| peer.pcie_width));
    below("generation", gpu.pcie_generation, generation);
    below("width", gpu.pcie_width, width);
    for (what, grown) in [
        ("PCIe packets sent again", gpu.pcie_replays),
        ("NVLink errors", gpu.nvlink_errors),
    ] {
        if let Some(grown) = grown.filter(|grown| grown.value >= LINK_ERRORS) {
            texts.push(format!(
                "{} {what} from second {}",
                grown.value,
                grown.at.unwrap_or_default()
            ));
        }
    }
    (!texts.is_empty()).then(|| texts.join(", "))
}

fn clocks(gpu: &GpuSummary, all: &[Gpu<'_>]) -> Option<String> {
    let comparable = |gpu: &&GpuSummary| gpu.readings >= COMPARABLE;
    let own = Some(gpu).filter(comparable)?;
    let low = |what: &str, own: Option<i64>, theirs: Option<i64>| {
        let (own, theirs) = own.zip(theirs)?;
        (own * 100 < theirs * CLOCK_PERCENT)
            .then(|| format!("{what} {own} MHz under load, its peers {theirs} (median)"))
    };
    let theirs = |clock: fn(&GpuSummary) -> Option<i64>| median(peers(gpu, all).filter(comparable).filter_map(clock));
    let sm = low("clock", own.sm_mhz, theirs(|peer| peer.sm_mhz));
    let memory = low("memory clock", own.memory_mhz, theirs(|peer| peer.memory_mhz));
    let texts: Vec<String> = [sm, memory].into_iter().flatten().collect();
    let watts = gpu.watts.zip(theirs(|peer| peer.watts));
    let watts = watts.map_or(String::new(), |(own, theirs)| {
        format!("; {own} W, its peers {theirs} W")
    });
    (!texts.is_empty()).then(|| texts.join(", ") + &watts)
}

fn peers<'a>(gpu: &'a GpuSummary, all: &'a [Gpu<'_>]) -> impl Iterator<Item = &'a GpuSummary> {
    all.iter()
        .map(|peer| peer.seen)
        .filter(move |peer| peer.uuid != gpu.uuid)
}

/// The middle value; the lower one of two, so that a claim against peers is never made by one of them alone.
fn median(values: impl Iterator<Item = i64>) -> Option<i64> {
    let mut values: Vec<i64> = values.collect();
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}
