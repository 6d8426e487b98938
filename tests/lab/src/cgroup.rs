//! One cgroup folder holds every pod of the lab, under cgroup v1 (one folder per hierarchy) and v2 (one folder).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{Error, FileResult as _};
use crate::paths::StateDir;

const MOUNT: &str = "/sys/fs/cgroup";
/// What the kubelet insists on below its root where the machine has it, and `io`.
const CONTROLLERS: &[&str] = &["cpuset", "cpu", "hugetlb", "io", "memory", "pids"];
/// Long enough for the kernel to let go of killed processes.
const REMOVAL_DEADLINE: Duration = Duration::from_secs(20);

/// Which cgroup API this machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// One hierarchy per controller; the kubelet calls it deprecated.
    V1,
    /// The unified hierarchy.
    V2,
}

/// Looks at what is mounted: the unified hierarchy has its controller list at the mount point.
pub fn version() -> Version {
    if Path::new(MOUNT).join("cgroup.controllers").is_file() {
        Version::V2
    } else {
        Version::V1
    }
}

/// The lab's folder in each hierarchy, named like its state folder; the kubelet's `cgroupRoot`.
pub fn name(state: &StateDir) -> String {
    state
        .root()
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The lab's folder in every hierarchy of this machine, whether it exists or not.
pub fn folders(state: &StateDir) -> Result<Vec<PathBuf>, Error> {
    named(&name(state))
}

fn named(name: &str) -> Result<Vec<PathBuf>, Error> {
    let mount = Path::new(MOUNT);
    if version() == Version::V2 {
        return Ok(vec![mount.join(name)]);
    }
    let hierarchies = fs::read_dir(mount)
        .file("list", mount)?
        .filter_map(Result::ok)
        .map(|entry| entry.path());
    Ok(hierarchies
        .filter(|folder| folder.join("cgroup.procs").is_file())
        .map(|folder| folder.join(name))
        .collect())
}

/// Makes a folder of the lab everywhere, ready to have children.
pub fn create(name: &str) -> Result<(), Error> {
    for folder in named(name)? {
        if version() == Version::V2 {
            enable_controllers(Path::new(MOUNT))?;
        }
        fs::create_dir_all(&folder).file("create", &folder)?;
        if version() == Version::V2 {
            enable_controllers(&folder)?;
        }
        inherit_cpuset(&folder)?;
        weigh(&folder)?;
    }
    Ok(())
}

/// Gives all pods together the weight that a node's pods have: 1024 for each CPU. The default of 1024 in all is that of one
/// busy thread beside them. Version 2 scales the same weights to 1 to 10000, 39 for a CPU.
fn weigh(folder: &Path) -> Result<(), Error> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    for (name, weight) in [("cpu.shares", cpus * 1024), ("cpu.weight", (cpus * 39).min(10_000))] {
        let file = folder.join(name);
        if file.is_file() {
            fs::write(&file, weight.to_string()).file("write", file)?;
        }
    }
    Ok(())
}

fn enable_controllers(folder: &Path) -> Result<(), Error> {
    let available = folder.join("cgroup.controllers");
    let available = fs::read_to_string(&available).file("read", &available)?;
    let control = folder.join("cgroup.subtree_control");
    for controller in available.split_whitespace().filter(|name| CONTROLLERS.contains(name)) {
        fs::write(&control, format!("+{controller}")).file("enable the controllers of", &control)?;
    }
    Ok(())
}

/// A v1 cpuset takes no process before it has processors and memory nodes.
fn inherit_cpuset(folder: &Path) -> Result<(), Error> {
    for name in ["cpuset.cpus", "cpuset.mems"] {
        let (own, parent) = (folder.join(name), folder.with_file_name(name));
        if version() == Version::V1 && own.is_file() {
            let value = fs::read_to_string(&parent).file("read", &parent)?;
            fs::write(&own, value).file("write", &own)?;
        }
    }
    Ok(())
}

/// Removes the lab's folders depth first. Their processes are dead or dying by now.
pub fn remove(state: &StateDir) -> Result<(), Error> {
    let started = Instant::now();
    loop {
        let left: Vec<PathBuf> = folders(state)?.into_iter().filter(|folder| folder.exists()).collect();
        let Some(first) = left.first() else { return Ok(()) };
        if started.elapsed() > REMOVAL_DEADLINE {
            let detail = first.display().to_string();
            return Err(Error::StillThere {
                what: "a cgroup",
                seconds: REMOVAL_DEADLINE.as_secs(),
                detail,
            });
        }
        for folder in &left {
            remove_tree(folder);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Best effort: a folder that is still busy is tried again by the caller.
fn remove_tree(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path());
        }
    }
    let _ = fs::remove_dir(folder);
}

/// The processes of every pod.
pub fn processes(state: &StateDir) -> Result<Vec<i32>, Error> {
    let mut processes = Vec::new();
    for folder in folders(state)?.iter().filter(|folder| folder.is_dir()) {
        collect_processes(folder, &mut processes)?;
    }
    processes.sort_unstable();
    processes.dedup();
    Ok(processes)
}

/// The processes of one container of a pod, as this process numbers them.
///
/// `container` is the id without its `containerd://`. The pause process lives in another folder and is not among them.
pub fn container_processes(state: &StateDir, container: &str) -> Result<Vec<i32>, Error> {
    for folder in folders(state)? {
        if let Some(found) = find(&folder, container) {
            let mut processes = Vec::new();
            collect_processes(&found, &mut processes)?;
            return Ok(processes);
        }
    }
    Ok(Vec::new())
}

/// Length of the kernel's accounting period (µs), its own default.
const CPU_PERIOD: f64 = 100_000.0;

/// Lets a container use at most so many CPUs from now on, as a limit in its pod would.
pub fn limit_cpu(state: &StateDir, container: &str, cpus: f64) -> Result<(), Error> {
    let quota = cpus * CPU_PERIOD;
    for folder in folders(state)? {
        let Some(found) = find(&folder, container) else {
            continue;
        };
        let (v1, v2) = (found.join("cpu.cfs_quota_us"), found.join("cpu.max"));
        if v1.is_file() {
            return fs::write(&v1, format!("{quota:.0}")).file("write", v1);
        }
        if v2.is_file() {
            return fs::write(&v2, format!("{quota:.0} {CPU_PERIOD:.0}")).file("write", v2);
        }
    }
    Err(Error::Usage(format!("container {container} has no CPU accounting")))
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let children = fs::read_dir(folder)
        .ok()?
        .filter_map(Result::ok)
        .map(|entry| entry.path());
    children.filter(|child| child.is_dir()).find_map(|child| {
        if child
            .file_name()
            .is_some_and(|found| found.to_string_lossy().contains(name))
        {
            return Some(child);
        }
        find(&child, name)
    })
}

fn collect_processes(folder: &Path, processes: &mut Vec<i32>) -> Result<(), Error> {
    let list = folder.join("cgroup.procs");
    let text = fs::read_to_string(&list).file("read", &list)?;
    processes.extend(
        text.lines()
            .filter_map(|line| line.parse::<i32>().ok())
            .filter(|process| *process > 0),
    );
    for entry in fs::read_dir(folder).file("list", folder)?.filter_map(Result::ok) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect_processes(&entry.path(), processes)?;
        }
    }
    Ok(())
}
