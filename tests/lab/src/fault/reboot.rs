//! A node that loses its power.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::error::Error;
use crate::node::Node;
use crate::paths::StateDir;
use crate::supervisor::client;
use crate::{cgroup, command, enter, namespace, node};

/// What runs on a node and not on the control plane, in the order in which it starts.
const NODE_PROCESSES: [&str; 3] = ["containerd", KUBELET, node::GPU_PLUGIN];
const KUBELET: &str = "kubelet";
/// The parent of a pod's processes; it outlives containerd unless it is killed.
const SHIM: &str = "containerd-shim";

/// Ends everything of the node, without a word to anybody, and starts it again. The kernel stays, so its boot id does too.
pub fn node(state: &StateDir) -> Result<(), Error> {
    if Node::all(state).count() > 1 {
        return Err(Error::Usage(
            "only the node of a lab with one node can be reset".to_owned(),
        ));
    }
    for process in NODE_PROCESSES.into_iter().rev() {
        client::stop(state, process)?;
    }
    let shims = shims(state);
    for process in cgroup::processes(state)?.into_iter().chain(shims) {
        match kill(Pid::from_raw(process), Signal::SIGKILL) {
            Ok(()) | Err(nix::Error::ESRCH) => {}
            Err(source) => {
                let doing = format!("end process {process}");
                return Err(Error::System { doing, source });
            }
        }
    }
    let [containerd, kubelet, plugin] = NODE_PROCESSES;
    client::start(state, containerd)?;
    client::start(state, kubelet)?;
    super::within("the kubelet to serve", || serves(state))?;
    // A kubelet forgets the devices of a plugin that registered before it.
    super::plugin::registered(state, || client::start(state, plugin))
}

/// Whether the kubelet is there again. One that finds containerd unready ends, and systemd starts it again on a real node.
fn serves(state: &StateDir) -> Result<bool, Error> {
    let report = client::status(state)?;
    if report.is_some_and(|report| report.has_ended(KUBELET)) {
        client::start(state, KUBELET)?;
    }
    let path = format!("/api/v1/nodes/{}/proxy/healthz", node::NODE_NAME);
    let asked = command::output(&mut enter::kubectl(state, &["get", "--raw", &path])?);
    Ok(asked.is_ok())
}

/// The shims of this lab: the machine may have others.
fn shims(state: &StateDir) -> Vec<i32> {
    let is_shim = |number: &i32| {
        let words = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let program = words.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(program).contains(SHIM)
    };
    let members = namespace::find(state).map_or_else(Vec::new, |init| init.members());
    members.into_iter().filter(is_shim).collect()
}
