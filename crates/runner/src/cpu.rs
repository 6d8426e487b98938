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

/// Starts reading once a second; `read` is given the seconds since the start.
fn start_reading<T: Send + 'static>(read: impl Fn(i64) -> Option<T> + Send + 'static) -> Readings<T> {
    let add =
        move |readings: &mut Vec<(i64, T)>, second| readings.extend(read(second).map(|reading| (second, reading)));
    Ticker::start(Instant::now(), Vec::new(), add)
}

/// All readings but those of the last `seconds`.
fn without_the_last<T>(readings: Vec<(i64, T)>, seconds: i64) -> Vec<T> {
    let until = readings.last().map_or(0, |(second, _)| second - seconds);
    let before = readings.into_iter().filter(|(second, _)| *second <= until);
    before.map(|(_, reading)| reading).collect()
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
        let readings = start_reading(move |second| {
            let stat = fs::read_to_string(folder.join("cpu.stat")).ok()?;
            let pressure = fs::read_to_string(folder.join("cpu.pressure")).ok();
            Some(CpuReading::read(second, &stat, pressure.as_deref()))
        });
        Some(Self {
            readings,
            limit: limit.as_deref().and_then(cpu_limit),
        })
    }

    /// Stops, and returns the use in the measured phase, which lasted `measured` seconds and ended `waited` seconds before
    /// the last request did.
    pub fn stop(self, measured: Option<Decimal>, waited: i64) -> Option<GeneratorCpu> {
        GeneratorCpu::new(&without_the_last(self.readings.stop(), waited), self.limit, measured)
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
        let readings = start_reading(move |second| {
            let [stat, pressure] = [&stat, &pressure].map(|file| fs::read_to_string(file).ok());
            let readable = stat.is_some() || pressure.is_some();
            readable.then(|| NodeReading::read(second, stat.as_deref(), pressure.as_deref()))
        });
        Some(Self { name, readings })
    }

    /// Stops, and returns the use in the measured phase, as [`Cpu::stop`] does.
    pub fn stop(self, measured: Option<Decimal>, waited: i64) -> Option<NodeCpu> {
        NodeCpu::new(&self.name, &without_the_last(self.readings.stop(), waited), measured)
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

#[cfg(test)]
mod tests {
    use super::without_the_last;

    #[test]
    fn seconds_in_which_requests_waited_for_their_time_out_are_left_out() {
        let readings = || (0..40).map(|second| (second, second)).collect();
        assert_eq!(without_the_last(readings(), 0).last(), Some(&39));
        assert_eq!(without_the_last(readings(), 30).last(), Some(&9));
        assert!(without_the_last(readings(), 300).is_empty());
    }
}
