//! What a process of the lab costs, read from `/proc`: the lab's processes are processes of this machine.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Clock ticks a second in `/proc/<pid>/stat`: the same on every Linux of this architecture.
const TICKS: f64 = 100.0;

/// A running process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// The API server of the lab that this program runs in: several labs may be up.
    ///
    /// # Errors
    /// If there is none in this network, or `/proc` cannot be read.
    pub fn api_server() -> io::Result<Self> {
        Self::of_lab("kube-apiserver")
    }

    /// A process of the lab whose network this is.
    ///
    /// # Errors
    /// If there is none, or `/proc` cannot be read.
    pub fn of_lab(name: &str) -> io::Result<Self> {
        let here = fs::read_link("/proc/self/ns/net")?;
        let found = find(|process| {
            fs::read_to_string(process.join("comm")).is_ok_and(|comm| comm.trim() == name)
                && fs::read_link(process.join("ns/net")).is_ok_and(|namespace| namespace == here)
        })?;
        found.ok_or_else(|| {
            io::Error::other(format!(
                "no {name} in this network: run this by `lab exec --network-only`"
            ))
        })
    }

    /// Stops it until a `SIGCONT` or its end.
    ///
    /// # Errors
    /// If it is gone.
    pub fn pause(&self) -> io::Result<()> {
        let id = i32::try_from(self.0).map_err(io::Error::other)?;
        Ok(kill(Pid::from_raw(id), Signal::SIGSTOP)?)
    }

    /// The operator in the pod of this uid, if it runs.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub fn operator(pod_uid: &str) -> io::Result<Option<Self>> {
        find(|process| {
            // systemd writes the uid with underscores.
            fs::read_to_string(process.join("cgroup")).is_ok_and(|groups| groups.replace('_', "-").contains(pod_uid))
                && fs::read(process.join("cmdline"))
                    .is_ok_and(|line| String::from_utf8_lossy(&line).contains("perfvalidation-operator"))
        })
    }

    /// A process by its id.
    pub fn of(id: u32) -> Self {
        Self(id)
    }

    /// CPU time so far (s); `None` once it is gone.
    pub fn cpu_seconds(&self) -> Option<f64> {
        let fields = self.stat()?;
        Some((field(&fields, 14)? + field(&fields, 15)?) / TICKS)
    }

    /// Time since it was started (s); `None` once it is gone.
    pub fn age(&self) -> Option<f64> {
        let uptime = fs::read_to_string("/proc/uptime").ok()?;
        let uptime: f64 = uptime.split_whitespace().next()?.parse().ok()?;
        Some(uptime - field(&self.stat()?, 22)? / TICKS)
    }

    /// Open files and connections.
    pub fn descriptors(&self) -> Option<usize> {
        let open = fs::read_dir(format!("/proc/{}/fd", self.0)).ok()?;
        Some(open.count())
    }

    /// Resident memory now (MiB).
    pub fn resident(&self) -> Option<f64> {
        self.memory("VmRSS:")
    }

    /// Resident memory now (KiB).
    pub fn resident_kib(&self) -> Option<u64> {
        self.kib("VmRSS:")?.parse().ok()
    }

    /// The most resident memory so far (MiB).
    pub fn peak(&self) -> Option<f64> {
        self.memory("VmHWM:")
    }

    /// Resident pages of files, which the kernel may drop (MiB).
    pub fn of_files(&self) -> Option<f64> {
        self.memory("RssFile:")
    }

    fn memory(&self, line: &str) -> Option<f64> {
        let kib: f64 = self.kib(line)?.parse().ok()?;
        Some(kib / 1024.0)
    }

    fn kib(&self, line: &str) -> Option<String> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0)).ok()?;
        let value = status.lines().find_map(|found| found.strip_prefix(line))?;
        Some(value.trim().strip_suffix("kB")?.trim().to_owned())
    }

    fn stat(&self) -> Option<String> {
        fs::read_to_string(format!("/proc/{}/stat", self.0)).ok()
    }
}

/// A field by its number in proc(5). The name before may hold anything, a parenthesis too.
fn field(stat: &str, number: usize) -> Option<f64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(number - 3)?.parse().ok()
}

fn find(wanted: impl Fn(&Path) -> bool) -> io::Result<Option<Process>> {
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        let pid = path.file_name().and_then(|name| name.to_str()?.parse().ok());
        if let Some(pid) = pid.filter(|_| wanted(&path)) {
            return Ok(Some(Process(pid)));
        }
    }
    Ok(None)
}

/// The two processes that waiting may cost something.
pub struct Meter {
    /// The operator.
    pub operator: Process,
    /// The API server that it talks to.
    pub api_server: Process,
}

/// CPU time of both at one moment.
pub struct Reading {
    at: Instant,
    operator: Option<f64>,
    api_server: Option<f64>,
}

/// Shares of a core (%) between two moments. `None`: the process was gone at one of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Between the two (s).
    pub seconds: f64,
    /// Of the operator.
    pub operator: Option<f64>,
    /// Of the API server.
    pub api_server: Option<f64>,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |share: Option<f64>| share.map_or_else(|| "?".to_owned(), |share| format!("{share:.1} %"));
        let (operator, api_server) = (share(self.operator), share(self.api_server));
        write!(f, "{operator} of a core (operator) and {api_server} (API server)")
    }
}

impl Meter {
    /// Reads both.
    pub fn read(&self) -> Reading {
        Reading {
            at: Instant::now(),
            operator: self.operator.cpu_seconds(),
            api_server: self.api_server.cpu_seconds(),
        }
    }

    /// What both cost since an earlier reading.
    pub fn since(&self, before: &Reading) -> Cost {
        let now = self.read();
        let seconds = (now.at - before.at).as_secs_f64();
        let share = |from: Option<f64>, to: Option<f64>| Some((to? - from?) / seconds * 100.0);
        Cost {
            seconds,
            operator: share(before.operator, now.operator),
            api_server: share(before.api_server, now.api_server),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_process_may_hold_spaces_and_parentheses() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 9 0 12345 1000 200";
        assert_eq!(
            [14, 15, 22].map(|number| field(stat, number)),
            [Some(250.0), Some(50.0), Some(12345.0)]
        );
    }

    #[test]
    fn a_process_that_is_gone_costs_nothing_that_is_known() {
        let gone = Meter {
            operator: Process(u32::MAX),
            api_server: Process(std::process::id()),
        };
        let cost = gone.since(&gone.read());
        assert!(cost.operator.is_none() && cost.api_server.is_some(), "{cost:?}");
    }
}
