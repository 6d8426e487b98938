use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use perfval_verdict::generator::{CpuReading, GeneratorCpu, cpu_limit};
use rust_decimal::Decimal;

const CGROUPS: &str = "/sys/fs/cgroup";

/// Reads the CPU counters of this container's cgroup once a second, until it is stopped.
pub struct Cpu {
    stop: Sender<()>,
    thread: JoinHandle<Vec<CpuReading>>,
    limit: Option<Decimal>,
}

impl Cpu {
    /// Starts reading in a folder, or in that of this process. `None` where there are no counters.
    pub fn start(folder: Option<&Path>) -> Option<Self> {
        let folder = folder.map(Path::to_owned).or_else(own)?;
        let limit = fs::read_to_string(folder.join("cpu.max")).ok();
        let (stop, stopped) = channel();
        let started = Instant::now();
        let thread = thread::spawn(move || {
            let mut readings = Vec::new();
            loop {
                let second = i64::try_from(started.elapsed().as_secs()).unwrap_or(i64::MAX);
                if let Ok(stat) = fs::read_to_string(folder.join("cpu.stat")) {
                    let pressure = fs::read_to_string(folder.join("cpu.pressure")).ok();
                    readings.push(CpuReading::read(second, &stat, pressure.as_deref()));
                }
                let next = started + Duration::from_secs(started.elapsed().as_secs() + 1);
                let wait = next.saturating_duration_since(Instant::now());
                if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                    return readings;
                }
            }
        });
        Some(Self {
            stop,
            thread,
            limit: limit.as_deref().and_then(cpu_limit),
        })
    }

    /// Stops; what lies in the measured phase of so many seconds.
    pub fn stop(self, measured: Option<Decimal>) -> Option<GeneratorCpu> {
        drop(self.stop);
        let readings = self.thread.join().unwrap_or_default(); // one that panicked is no evidence
        GeneratorCpu::of(&readings, self.limit, measured)
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
