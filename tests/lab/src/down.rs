//! `lab down`: ends a lab, running, broken or dead, and removes every trace but the cache.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
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
    if let Some(folder) = std::env::var_os("PERFVAL_AUDIT_KEEP").filter(|folder| !folder.is_empty()) {
        keep_audit_logs(state, Path::new(&folder))?;
    }
    match fs::remove_dir_all(state.root()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).file("remove", state.root()),
        _ => Ok(()),
    }
}

/// Copies the API server's audit log, with the parts that it moved aside, to where the logs of all labs are collected: which
/// rights the operator uses is seen in all of them together (`just rbac FOLDER`).
fn keep_audit_logs(state: &StateDir, folder: &Path) -> Result<(), Error> {
    let Ok(entries) = fs::read_dir(state.root()) else {
        return Ok(());
    };
    fs::create_dir_all(folder).file("create", folder)?;
    let lab = state
        .root()
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("audit") && name.ends_with(".log") {
            fs::copy(&path, folder.join(format!("{lab}-{now}-{name}"))).file("copy", &path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_audit_logs_of_every_lab_are_kept() {
        let (root, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for lab in ["one", "two"] {
            let state = StateDir::at(root.path().join(lab));
            fs::create_dir_all(state.root()).unwrap();
            for name in ["audit.log", "audit-2026-11-21T10-00-00.000.log", "audit-policy.yaml"] {
                fs::write(state.join(name), lab).unwrap();
            }
            keep_audit_logs(&state, &kept.path().join("all")).unwrap();
        }
        keep_audit_logs(&StateDir::at(root.path().join("none")), &kept.path().join("all")).unwrap();
        assert_eq!(fs::read_dir(kept.path().join("all")).unwrap().count(), 4);
    }
}
