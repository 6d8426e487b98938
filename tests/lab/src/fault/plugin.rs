//! The DRA plugin that forgets its devices, and that comes back.

use std::fs;
use std::path::PathBuf;

use super::{gpu_count, within};
use crate::driver_root::DriverRoot;
use crate::error::{Error, FileResult as _};
use crate::paths::StateDir;
use crate::supervisor::client;
use crate::{namespace, node};

/// Starts the plugin again without devices, which it does not look for a second time.
pub fn make_stale(state: &StateDir) -> Result<(), Error> {
    let root = DriverRoot::at(&node::driver_root_path(state), gpu_count(state)?);
    fs::write(stale_mark(state), "").file("write", stale_mark(state))?;
    root.remove_devices()?;
    restart_process(state)?;
    root.restore_devices()
}

/// Starts the plugin again with its devices.
pub fn restart(state: &StateDir) -> Result<(), Error> {
    DriverRoot::at(&node::driver_root_path(state), gpu_count(state)?).restore_devices()?;
    restart_process(state)?;
    let mark = stale_mark(state);
    if mark.exists() {
        fs::remove_file(&mark).file("remove", mark)
    } else {
        Ok(())
    }
}

fn restart_process(state: &StateDir) -> Result<(), Error> {
    client::stop(state, node::GPU_PLUGIN)?;
    registered(state, || client::start(state, node::GPU_PLUGIN))
}

/// Starts the plugin. Returns when it has looked at its devices, and the kubelet is connected to it: before that, the
/// kubelet fails a new claim and tries it again a minute later.
pub fn registered(state: &StateDir, start: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    let registration = state.join("kubelet/plugins_registry/gpu.nvidia.com-reg.sock");
    if registration.exists() {
        fs::remove_file(&registration).file("remove", &registration)?;
    }
    start()?;
    within("the DRA plugin to register", || Ok(registration.exists()))?;
    let init = namespace::find(state).ok_or(Error::NotUp)?;
    let sockets = PathBuf::from(format!("/proc/{}/net/unix", init.pid));
    within("the kubelet to connect to the DRA plugin", || {
        let sockets = fs::read_to_string(&sockets).file("read", &sockets)?;
        Ok(has_connection(&sockets, "/gpu.nvidia.com/dra.sock"))
    })
}

/// Whether a process is connected to the socket whose path ends so, by the kernel's list of Unix sockets.
fn has_connection(sockets: &str, path: &str) -> bool {
    const CONNECTED: &str = "03";
    let is_connection = |line: &str| line.split_whitespace().nth(5) == Some(CONNECTED) && line.ends_with(path);
    sockets.lines().any(is_connection)
}

/// The file that is there while the plugin is stale.
pub fn stale_mark(state: &StateDir) -> PathBuf {
    state.join("dra-plugin-is-stale")
}

#[cfg(test)]
mod tests {
    use super::has_connection;

    #[test]
    fn a_socket_that_listens_has_no_connection_yet() {
        let path = "/gpu.nvidia.com/dra.sock";
        let listens = "000000004d16febf: 00000002 00000000 00010000 0001 01 854251 /plugins/gpu.nvidia.com/dra.sock";
        let connected = "00000000f26af204: 00000003 00000000 00000000 0001 03 854315 /plugins/gpu.nvidia.com/dra.sock";
        assert!(!has_connection(listens, path));
        assert!(has_connection(&format!("{listens}\n{connected}\n"), path));
        assert!(!has_connection(connected, "/other/dra.sock"));
    }
}
