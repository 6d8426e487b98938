//! The lab's network: one bridge, no way out.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use crate::command;
use crate::error::{Error, FileResult as _};

/// The node's own address on the pod bridge; also the cluster DNS.
pub const BRIDGE_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 1);
/// The `kubernetes` Service.
pub const SERVICE_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);
/// The pod bridge.
pub const BRIDGE: &str = "lab0";

/// End of the cable on a further node.
const UPLINK: &str = "up0";

/// Makes this process's network namespace fit for a cluster.
pub fn prepare() -> Result<(), Error> {
    // Built into some kernels. Without the first, answers of a Service's pods bypass the firewall's translation; without the
    // second, kube-proxy has no sysctl to set and ends (seen on Debian's kernel with cgroup v2).
    for module in ["br_netfilter", "nf_conntrack"] {
        let _ = Command::new("modprobe").arg(module).output();
    }
    bridge(BRIDGE_ADDRESS)
}

/// Makes this process's network namespace that of a further node: its bridge is connected with the lab's by a cable with this name.
pub fn join(cable: &str, address: Ipv4Addr) -> Result<(), Error> {
    bridge(address)?;
    // Process 1 is in the lab's network.
    ip(&[
        "link", "add", UPLINK, "type", "veth", "peer", "name", cable, "netns", "1",
    ])?;
    ip(&["link", "set", UPLINK, "master", BRIDGE, "up"])?;
    let outside = [
        "--net=/proc/1/ns/net",
        "ip",
        "link",
        "set",
        cable,
        "master",
        BRIDGE,
        "up",
    ];
    command::output(Command::new("nsenter").args(outside)).map(drop)
}

fn ip(arguments: &[&str]) -> Result<(), Error> {
    command::output(Command::new("ip").args(arguments)).map(drop)
}

fn bridge(own: Ipv4Addr) -> Result<(), Error> {
    let (address, gateway) = (format!("{own}/24"), BRIDGE_ADDRESS.to_string());
    for arguments in [
        &["link", "set", "lo", "up"][..],
        &["link", "add", BRIDGE, "type", "bridge"],
        &["address", "add", &address, "dev", BRIDGE],
        &["link", "set", BRIDGE, "up"],
        // Leads nowhere; programs that look for "the" address of the machine need one.
        &["route", "add", "default", "via", &gateway],
    ] {
        ip(arguments)?;
    }
    for name in ["ipv4/ip_forward", "bridge/bridge-nf-call-iptables"] {
        let setting = Path::new("/proc/sys/net").join(name);
        fs::write(&setting, "1").file("write", &setting)?;
    }
    Ok(())
}
