//! `lab down`: ends a lab, running, broken or dead, and removes every trace but the cache.

use std::{fs, io};

use crate::error::{Error, FileResult as _};
use crate::paths::StateDir;
use crate::{cgroup, namespace};

/// Ends the lab of a state folder. Without one there is nothing to do.
pub fn down(state: &StateDir) -> Result<(), Error> {
    if !nix::unistd::geteuid().is_root() {
        return Err(Error::NotRoot);
    }
    if let Some(init) = namespace::find(state) {
        init.kill()?;
    }
    cgroup::remove(state)?;
    match fs::remove_dir_all(state.root()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).file("remove", state.root()),
        _ => Ok(()),
    }
}
