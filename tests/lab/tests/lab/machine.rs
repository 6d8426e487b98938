//! What a lab does to the machine it runs on.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cluster::STATE;

/// Processes whose command line names the lab's folder, numbered as outside.
fn lab_processes() -> Vec<i32> {
    let numbers = fs::read_dir("/proc")
        .expect("/proc is readable")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let command_line = |pid: i32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let is_labs = |pid: &i32| String::from_utf8_lossy(&command_line(*pid)).contains(STATE);
    numbers.filter(is_labs).collect()
}

/// Every process in the lab's pid namespace: the lab's own, shims, containers.
pub fn namespace_members(namespace: &Path) -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc")
        .expect("/proc is readable")
        .filter_map(|entry| Some(entry.ok()?.path()));
    processes
        .filter(|process| fs::read_link(process.join("ns/pid")).is_ok_and(|own| own == namespace))
        .collect()
}

/// The lab's pid namespace.
pub fn namespace_of_the_lab() -> PathBuf {
    let pids = lab_processes();
    let own = fs::read_link("/proc/self/ns/pid").expect("this process has a namespace");
    pids.iter()
        .filter_map(|pid| fs::read_link(format!("/proc/{pid}/ns/pid")).ok())
        .find(|ns| *ns != own)
        .expect("the lab has a namespace of its own")
}

fn names(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().display().to_string()).collect()
}

/// What a lab could leave on the machine, apart from processes.
pub fn traces() -> BTreeSet<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts are readable");
    let hierarchies = names("/sys/fs/cgroup");
    let cgroups = hierarchies
        .iter()
        .flat_map(|hierarchy| names(hierarchy))
        .chain(hierarchies.iter().cloned());
    let ours = cgroups.filter(|path| path.contains("perfval-lab-test") || path.contains("kubepods"));
    let sysctls = [
        "vm/overcommit_memory",
        "kernel/panic",
        "kernel/panic_on_oops",
        "net/ipv4/ip_forward",
    ]
    .map(|name| {
        format!(
            "{name} {}",
            fs::read_to_string(format!("/proc/sys/{name}")).unwrap_or_default()
        )
    });
    let folders = [
        "/sys/class/net",
        "/run",
        "/run/netns",
        "/var/lib",
        "/var/log",
        "/etc/cdi",
        "/etc/cni",
        "/opt",
    ];
    mounts
        .lines()
        .map(str::to_owned)
        .chain(ours)
        .chain(sysctls)
        .chain(folders.into_iter().flat_map(names))
        .collect()
}

/// The lab's own cgroup folders.
pub fn cgroup_folders() -> Vec<String> {
    traces()
        .into_iter()
        .filter(|trace| trace.starts_with("/sys/fs/cgroup") && trace.ends_with("perfval-lab-test"))
        .collect()
}
