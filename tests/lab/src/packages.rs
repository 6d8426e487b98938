//! The programs the lab takes from the distribution, checked before anything is started.

use std::path::{Path, PathBuf};

use crate::error::Error;

/// Programs that must exist, and the Debian packages that bring them.
const CONTROL_PLANE: &[(&str, &str)] = &[
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("setpriv", "util-linux"),
    ("ip", "iproute2"),
];

const NODE: &[(&str, &str)] = &[
    ("runc", "runc"),
    ("iptables", "iptables"),
    ("conntrack", "conntrack"),
    ("ethtool", "ethtool"),
    ("socat", "socat"),
    ("modprobe", "kmod"),
];

/// Where distributions put the CNI plugins.
const CNI_DIRS: &[&str] = &["/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"];

/// Says with one command what is missing for a lab with or without a node.
pub fn check(with_node: bool) -> Result<(), Error> {
    let node = if with_node { NODE } else { &[] };
    let mut missing: Vec<&str> = Vec::new();
    let mut packages: Vec<&str> = Vec::new();
    for (program, package) in CONTROL_PLANE.iter().chain(node) {
        if find(program).is_none() {
            missing.push(program);
            packages.push(package);
        }
    }
    if with_node && cni_dir().is_none() {
        missing.push("CNI plugins");
        packages.push("containernetworking-plugins");
    }
    packages.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::MissingPrograms {
        missing: missing.join(", "),
        install: format!("apt-get install --no-install-recommends {}", packages.join(" ")),
    })
}

/// The folder with the CNI plugins `bridge` and `loopback`.
pub fn cni_dir() -> Option<PathBuf> {
    let holds_plugins = |dir: &&Path| dir.join("bridge").is_file() && dir.join("loopback").is_file();
    CNI_DIRS.iter().map(Path::new).find(holds_plugins).map(Path::to_owned)
}

/// A program in `PATH` or in the system's folders, which a user's `PATH` may lack.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin", "/usr/local/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(system)
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
}
