use std::fs;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;

use crate::error::Error;

/// Makes orphaned grandchildren children of the runner, as they are for PID 1 anyway.
pub fn adopt_orphans() -> Result<(), Error> {
    prctl::set_child_subreaper(true).map_err(|errno| Error::Process {
        what: "become the reaper of AIPerf's processes",
        source: errno.into(),
    })
}

pub fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX))
}

/// Returns once the process has ended. Its status and its number stay until the parent reaps it.
pub fn wait_without_reaping(pid: Pid) {
    while waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) == Err(Errno::EINTR) {}
}

/// Kills and reaps every process that is left, also those that made a session of their own.
pub fn reap_orphans(patience: Duration) {
    let deadline = Instant::now() + patience;
    while Instant::now() < deadline {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Err(Errno::ECHILD) => return,
            Ok(WaitStatus::StillAlive) => {
                for pid in children() {
                    let _ = kill(pid, Signal::SIGKILL); // it may just have ended
                }
                thread::sleep(Duration::from_millis(5));
            }
            _ => {}
        }
    }
}

/// Children of any thread of this process.
fn children() -> Vec<Pid> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let lists: Vec<String> = lists.collect();
    let pids = lists.iter().flat_map(|list| list.split_whitespace());
    pids.filter_map(|pid| pid.parse().ok()).map(Pid::from_raw).collect()
}
