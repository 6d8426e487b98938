//! The folder of layers and archives: one file per name, named by the hash of what it is made of.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::error::{Error, FileResult as _};
use crate::paths;

/// How the names of half-made layers and archives begin.
pub(super) const UNFINISHED: &str = "unfinished-";

/// Lets one process at a time make images, and removes what an interrupted one left half made.
pub(super) fn lock(say: &mut dyn FnMut(&str)) -> Result<File, Error> {
    let folder = folder();
    fs::create_dir_all(&folder).file("make", &folder)?;
    let path = folder.join("lock");
    let lock = File::create(&path).file("create", &path)?;
    if lock.try_lock().is_err() {
        say("waiting for another `lab` that makes an image");
        lock.lock().file("lock", path)?;
    }
    for entry in fs::read_dir(&folder).file("list", &folder)? {
        let path = entry.file("list", &folder)?.path();
        if path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(UNFINISHED))
        {
            remove(&path).file("remove the unfinished", path)?;
        }
    }
    Ok(lock)
}

/// Writes a copy next to `target` first, so that it is whole or absent, then removes what it supersedes.
pub(super) fn replace(target: &Path, write: impl FnOnce(&Path) -> Result<(), Error>) -> Result<(), Error> {
    let folder = folder();
    let part = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempfile_in(&folder)
        .file("make a file in", &folder)?
        .into_temp_path();
    write(&part)?;
    part.persist(target)
        .map_err(|error| error.error)
        .file("move into place", target)?;

    remove_superseded(target)
}

/// A folder for what becomes whole in many steps; it is gone with the value, unless [`keep`] took something out of it.
pub(super) fn unfinished_folder() -> Result<tempfile::TempDir, Error> {
    let folder = folder();
    tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempdir_in(&folder)
        .file("make a folder in", folder)
}

/// Moves what is whole to its place, then removes what it supersedes.
pub(super) fn keep(made: &Path, target: &Path) -> Result<(), Error> {
    fs::rename(made, target).file("move into place", target)?;
    remove_superseded(target)
}

fn remove_superseded(target: &Path) -> Result<(), Error> {
    let same_name = |path: &Path| {
        name_and_key(path)
            .zip(name_and_key(target))
            .is_some_and(|(a, b)| a.0 == b.0)
    };
    let folder = folder();
    for entry in fs::read_dir(&folder).file("list", &folder)? {
        let path = entry.file("list", &folder)?.path();
        if path != target && same_name(&path) {
            remove(&path).file("remove the superseded", path)?;
        }
    }
    Ok(())
}

fn remove(path: &Path) -> std::io::Result<()> {
    if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}

/// Where they are.
pub(super) fn folder() -> PathBuf {
    paths::cache().join("images")
}

/// The file of this name and key, there or not.
pub(super) fn cached(name: &str, key: &str) -> PathBuf {
    folder().join(format!("{name}@{key}.tar"))
}

/// The folder of this name and key, there or not.
pub(super) fn cached_folder(name: &str, key: &str) -> PathBuf {
    folder().join(format!("{name}@{key}"))
}

fn name_and_key(path: &Path) -> Option<(&str, &str)> {
    path.file_name()?.to_str()?.split_once('@')
}

/// The hash of several inputs, each with its length, so that none runs into the next.
pub(super) fn key<'a>(inputs: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for input in inputs {
        hash.update(input.len().to_le_bytes());
        hash.update(input);
    }
    format!("{:x}", hash.finalize())[..16].to_owned()
}
