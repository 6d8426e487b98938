//! The DRA plugin that forgets its devices, and that comes back.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{gpu_numbers, within};
use crate::driver_root::DriverRoot;
use crate::error::{Error, FileResult as _};
use crate::paths::StateDir;
use crate::supervisor::client;
use crate::{namespace, node};

/// Starts the plugin again without devices. It looks for them only at its start.
pub fn make_stale(state: &StateDir) -> Result<(), Error> {
    let root = DriverRoot::at(&node::driver_root_path(state), gpu_numbers(state)?);
    fs::write(stale_mark(state), "").file("write", stale_mark(state))?;
    root.remove_devices()?;
    let restarted = restart_process(state);
    root.restore_devices()?;
    restarted
}

/// Starts the plugin again with its devices.
pub fn restart(state: &StateDir) -> Result<(), Error> {
    DriverRoot::at(&node::driver_root_path(state), gpu_numbers(state)?).restore_devices()?;
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

/// Within a second the kubelet forgets a plugin that has gone. Until then its old client may connect to the new process.
const SETTLED: Duration = Duration::from_millis(2500);

/// Starts the plugin. Returns when it has looked at its devices, and the kubelet stays connected to it. Before that, the
/// kubelet fails a new claim. It tries the claim again after a minute or more.
pub fn registered(state: &StateDir, start: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    let registration = state.join("kubelet/plugins_registry/gpu.nvidia.com-reg.sock");
    if registration.exists() {
        fs::remove_file(&registration).file("remove", &registration)?;
    }
    start()?;
    within("the DRA plugin to register", || Ok(registration.exists()))?;
    let init = namespace::find(state).ok_or(Error::NotUp)?;
    let sockets = PathBuf::from(format!("/proc/{}/net/unix", init.pid));
    let (mut connected, mut since) = (None, Instant::now());
    within("the kubelet to connect to the DRA plugin", || {
        // Names of sockets may hold any bytes.
        let sockets = fs::read(&sockets).file("read", &sockets)?;
        let now = connection(&String::from_utf8_lossy(&sockets), "/gpu.nvidia.com/dra.sock");
        if now != connected {
            (connected, since) = (now, Instant::now());
        }
        Ok(connected.is_some() && since.elapsed() > SETTLED)
    })
}

/// Inode of an accepted connection to a socket whose path ends in `path`; `sockets` is the kernel's list of Unix sockets.
fn connection(sockets: &str, path: &str) -> Option<u64> {
    /// State of an accepted connection. A socket that listens has 01.
    const CONNECTED: &str = "03";
    sockets.lines().find_map(|line| {
        let mut columns = line.split_whitespace().skip(5);
        let (state, inode, name) = (columns.next()?, columns.next()?, columns.next()?);
        (state == CONNECTED && name.ends_with(path)).then_some(inode.parse().ok()?)
    })
}

/// The file that is there while the plugin is stale.
pub fn stale_mark(state: &StateDir) -> PathBuf {
    state.join("dra-plugin-is-stale")
}

#[cfg(test)]
mod tests {
    use super::connection;

    #[test]
    fn a_socket_that_listens_has_no_connection_yet() {
        let path = "/gpu.nvidia.com/dra.sock";
        let listens = "000000004d16febf: 00000002 00000000 00010000 0001 01 854251 /plugins/gpu.nvidia.com/dra.sock";
        let connected = "00000000f26af204: 00000003 00000000 00000000 0001 03 854315 /plugins/gpu.nvidia.com/dra.sock";
        let nameless = "00000000f26af205: 00000003 00000000 00000000 0001 03 854316";
        assert_eq!(connection(listens, path), None);
        let all = format!("{nameless}\n{listens}\n{connected}\n");
        assert_eq!(connection(&all, path), Some(854_315));
        assert_eq!(connection(connected, "/other/dra.sock"), None);
    }
}
