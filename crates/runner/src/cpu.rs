use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use perfval_verdict::generator::{CpuReading, GeneratorCpu, cpu_limit};
use perfval_verdict::node_cpu::{NodeCpu, NodeReading};
use rust_decimal::Decimal;

use crate::ticker::Ticker;

const CGROUPS: &str = "/sys/fs/cgroup";

/// Counters of each second, with the seconds since the start.
type Readings<T> = Ticker<Vec<(i64, T)>>;

/// Starts reading once a second.
fn start_reading<T: Send + 'static>(read: impl Fn() -> Option<T> + Send + 'static) -> Readings<T> {
    let add = move |readings: &mut Vec<(i64, T)>, second| readings.extend(read().map(|reading| (second, reading)));
    Ticker::start(Instant::now(), Vec::new(), add)
}

/// CPU counters of this container's cgroup.
pub struct Cpu {
    readings: Readings<CpuReading>,
    limit: Option<Decimal>,
}

impl Cpu {
    /// Starts reading in a folder, or in that of this process. `None` where there are no counters.
    pub fn start(folder: Option<&Path>) -> Option<Self> {
        let folder = folder.map(Path::to_owned).or_else(own)?;
        let limit = fs::read_to_string(folder.join("cpu.max")).ok();
        let readings = start_reading(move || {
            let stat = fs::read_to_string(folder.join("cpu.stat")).ok()?;
            let pressure = fs::read_to_string(folder.join("cpu.pressure")).ok();
            Some(CpuReading::read(&stat, pressure.as_deref()))
        });
        Some(Self {
            readings,
            limit: limit.as_deref().and_then(cpu_limit),
        })
    }

    /// Stops, and returns the use in the measured phase, which lasted `measured` seconds; `over` is the end of AIPerf, less the
    /// seconds in which its last requests waited for their time-out.
    pub fn stop(self, measured: Option<Decimal>, over: i64) -> Option<GeneratorCpu> {
        GeneratorCpu::new(&self.readings.stop(), self.limit, measured, over)
    }
}

/// CPU counters of the machine.
pub struct NodeSampler {
    name: String,
    readings: Readings<NodeReading>,
}

impl NodeSampler {
    /// Starts reading the counters of this machine in `proc`, if it is the node under test.
    pub fn start(proc: &Path, own: Option<&str>, under_test: Option<&str>) -> Option<Self> {
        let name = under_test
            .filter(|node| own == Some(node) && !node.is_empty())?
            .to_owned();
        let [stat, pressure] = ["stat", "pressure/cpu"].map(|file| proc.join(file));
        let readings = start_reading(move || {
            let [stat, pressure] = [&stat, &pressure].map(|file| fs::read_to_string(file).ok());
            let readable = stat.is_some() || pressure.is_some();
            readable.then(|| NodeReading::read(stat.as_deref(), pressure.as_deref()))
        });
        Some(Self { name, readings })
    }

    /// Stops, and returns the use in the measured phase, as [`Cpu::stop`] does.
    pub fn stop(self, measured: Option<Decimal>, over: i64) -> Option<NodeCpu> {
        NodeCpu::new(&self.name, &self.readings.stop(), measured, over)
    }
}

/// The folder of this process's cgroup. The root of version 2 counts the whole machine and has no `cpu.max`; a container of
/// version 1 finds its own counters at the root of the controller.
fn own() -> Option<PathBuf> {
    let cgroup = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = cgroup.lines().find_map(|line| line.strip_prefix("0::/"));
    let unified = path.map(|path| Path::new(CGROUPS).join(path));
    let unified = unified.filter(|folder| folder.join("cpu.max").is_file());
    unified.or_else(|| Some(Path::new(CGROUPS).join("cpu")).filter(|folder| folder.join("cpu.stat").is_file()))
}
