//! The private pid, mount and network namespace that holds the whole lab.
//!
//! `lab init` is its process 1: when that ends, however it ends, the kernel ends every process, mount, bridge and
//! address inside. The machine's own sysctls, firewall, `/run`, `/var/log` and `/var/lib/kubelet` stay untouched.

pub mod mounts;
pub mod network;

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::wait;
use nix::unistd::{Pid, setsid};

use crate::error::{Error, FileResult as _};
use crate::paths::StateDir;

pub use network::{BRIDGE, BRIDGE_ADDRESS, SERVICE_ADDRESS};

const KILL_DEADLINE: Duration = Duration::from_secs(30);

/// Process 1 of a running lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Init {
    /// Its number as this process sees it.
    pub pid: i32,
    /// The identity of its pid namespace, e.g. `pid:[4026532301]`.
    namespace: PathBuf,
}

/// Starts `lab init` in new namespaces. It outlives the caller. Returns its parent, which ends with it.
pub fn launch(state: &StateDir) -> Result<Child, Error> {
    // The lab's copy, because cargo may have replaced this program since it started.
    let program = state.bin().join("lab");
    let log = state.log("supervisor");
    let out = fs::File::create(&log).file("create", &log)?;
    let errors = out.try_clone().file("open", &log)?;
    Command::new("unshare")
        .args([
            "--pid",
            "--mount",
            "--net",
            "--fork",
            "--mount-proc",
            "--propagation",
            "private",
            "--",
        ])
        .arg(program)
        .arg("init")
        .arg(state.root())
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(errors)
        .spawn()
        .map_err(|source| Error::Start {
            program: "unshare".to_owned(),
            source,
        })
}

/// The body of process 1: starts the supervisor, buries orphans, and ends with the supervisor.
pub fn init(state: &StateDir) -> Result<(), Error> {
    setsid().map_err(|source| Error::System {
        doing: "start a session".to_owned(),
        source,
    })?;
    mounts::prepare(state)?;
    network::prepare()?;
    let program = std::env::current_exe().file("find", "/proc/self/exe")?;
    let supervisor = Command::new(program)
        .arg("supervise")
        .arg(state.root())
        .spawn()
        .map_err(|source| Error::Start {
            program: "lab supervise".to_owned(),
            source,
        })?;
    loop {
        match wait() {
            Ok(ended)
                if ended
                    .pid()
                    .is_some_and(|pid| u32::try_from(pid.as_raw()) == Ok(supervisor.id())) =>
            {
                return Ok(());
            }
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(source) => {
                return Err(Error::System {
                    doing: "wait for children".to_owned(),
                    source,
                });
            }
        }
    }
}

/// Finds the lab of a state folder by its process 1.
pub fn find(state: &StateDir) -> Option<Init> {
    processes().find_map(|pid| {
        let command_line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let mut words = command_line.split(|byte| *byte == 0).skip(1);
        let is_init =
            words.next() == Some(b"init") && words.next() == Some(state.root().as_os_str().as_encoded_bytes());
        let namespace = fs::read_link(format!("/proc/{pid}/ns/pid")).ok()?;
        (is_init && is_process_one(pid)).then_some(Init { pid, namespace })
    })
}

/// `NSpid` lists a process's numbers from the outer to its own namespace.
fn is_process_one(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let numbers = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))
        .unwrap_or_default();
    numbers.split_whitespace().last() == Some("1")
}

fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()))
}

impl Init {
    /// Every process inside, as this process numbers them.
    pub fn members(&self) -> Vec<i32> {
        let inside = |pid: &i32| fs::read_link(format!("/proc/{pid}/ns/pid")).is_ok_and(|ns| ns == self.namespace);
        processes().filter(inside).collect()
    }

    /// Ends process 1 and with it everything inside; returns when all of it is gone.
    pub fn kill(&self) -> Result<(), Error> {
        match kill(Pid::from_raw(self.pid), Signal::SIGKILL) {
            Ok(()) | Err(nix::Error::ESRCH) => {}
            Err(source) => {
                return Err(Error::System {
                    doing: format!("kill process {}", self.pid),
                    source,
                });
            }
        }
        let started = Instant::now();
        loop {
            let left = self.members();
            if left.is_empty() {
                return Ok(());
            }
            if started.elapsed() > KILL_DEADLINE {
                let detail = format!("processes {left:?}");
                return Err(Error::StillThere {
                    what: "the namespace",
                    seconds: KILL_DEADLINE.as_secs(),
                    detail,
                });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
