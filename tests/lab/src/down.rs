//! `lab down`: ends a lab, running, broken or dead, and removes every trace but the cache.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fs, io};

use crate::error::{Error, FileResult as _};
use crate::paths::StateDir;
use crate::{cgroup, namespace};

/// File that `up` makes first. It marks a lab's folder: `PERFVAL_LAB_DIR` may be another one.
pub const MARK: &str = ".perfval-lab";

/// Ends the lab of a state folder. Without one there is nothing to do.
pub fn down(state: &StateDir) -> Result<(), Error> {
    match namespace::find(state) {
        Some(init) => init.kill()?,
        None if state.root().exists() && !is_lab(state.root()) => {
            return Err(Error::Usage(format!(
                "{} is not the folder of a lab: set PERFVAL_LAB_DIR to a new folder, or remove this one yourself",
                state.root().display()
            )));
        }
        None => {}
    }
    cgroup::remove(state)?;
    if let Some(folder) = std::env::var_os("PERFVAL_AUDIT_KEEP").filter(|folder| !folder.is_empty()) {
        keep_audit_logs(state, Path::new(&folder))?;
    }
    match remove(state.root()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).file("remove", state.root()),
        _ => Ok(()),
    }
}

/// Returns true if a folder is a lab's, or empty because `up` was killed at once.
fn is_lab(root: &Path) -> bool {
    root.join(MARK).exists() || fs::read_dir(root).is_ok_and(|mut entries| entries.next().is_none())
}

/// Removes a lab's folder. Its mark goes last, so that an interrupted `down` can be repeated.
fn remove(root: &Path) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else if entry.file_name() != MARK {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_dir_all(root)
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
        let is_log = path.extension().is_some_and(|extension| extension == "log");
        if name.starts_with("audit") && is_log {
            fs::copy(&path, folder.join(format!("{lab}-{now}-{name}"))).file("copy", &path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_no_lab_stays() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::at(folder.path());
        for name in ["photos/2026", "bin", "logs"] {
            fs::create_dir_all(state.join(name)).unwrap();
        }
        let error = down(&state).unwrap_err().to_string();
        assert!(error.contains("set PERFVAL_LAB_DIR to a new folder"), "{error}");
        assert!(state.join("photos/2026").is_dir());
    }

    #[test]
    fn the_folder_of_a_lab_that_died_goes() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("lab");
        fs::create_dir(&root).unwrap();
        assert!(is_lab(&root), "killed at once");
        for name in ["bin", "logs", "containerd/io.containerd.content.v1.content"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for name in ["plan.json", MARK] {
            fs::write(root.join(name), "{}").unwrap();
        }
        assert!(is_lab(&root));
        remove(&root).unwrap();
        assert!(!root.exists());
    }

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
