//! containerd's store with a node's images in it, made once: importing Dynamo's took 38 of the 50 s of every `up`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use walkdir::WalkDir;

use super::cache;
use crate::command;
use crate::error::{Error, FileResult as _};

/// Imports archives by a containerd of its own: `$1` is the folder it works in, the rest are the archives. It runs in a pid
/// and mount namespace of its own, which ends with it and takes containerd along.
const IMPORT: &str = include_str!("store.sh");

/// Puts the images of these archives where a containerd of the lab will have its root; makes the store if the cache has none.
///
/// # Errors
/// If containerd does not start or refuses an archive, with what it said; if files cannot be written.
pub fn fill(root: &Path, programs: &Path, archives: &[PathBuf], say: &mut dyn FnMut(&str)) -> Result<(), Error> {
    let store = make(programs, archives, say)?;
    copy(&store, root)
}

/// Makes the store of these images unless the cache has it, by the containerd in the folder `programs`.
///
/// # Errors
/// As [`fill`].
pub fn make(programs: &Path, archives: &[PathBuf], say: &mut dyn FnMut(&str)) -> Result<PathBuf, Error> {
    let stems: Vec<&str> = archives
        .iter()
        .filter_map(|archive| archive.file_stem().and_then(OsStr::to_str))
        .collect();
    let containerd = fs::canonicalize(programs.join("containerd")).file("find", programs)?;
    let inputs = stems
        .iter()
        .copied()
        .chain([IMPORT, containerd.to_str().unwrap_or_default()]);
    let names: Vec<&str> = stems.iter().filter_map(|stem| stem.split('@').next()).collect();
    let target = cache::cached_folder(
        &format!("store-{}", names.join("+")),
        &cache::key(inputs.map(str::as_bytes)),
    );
    if target.exists() {
        return Ok(target);
    }

    let _lock = cache::lock(say)?;
    if target.exists() {
        return Ok(target);
    }
    say(&format!("importing {}", names.join(", ")));
    let work = cache::unfinished_folder()?;
    let script = work.path().join("import.sh");
    fs::write(&script, IMPORT).file("write", &script)?;
    let path = std::env::var("PATH").unwrap_or_default();
    command::output(
        Command::new("unshare")
            .args(["--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "--", "sh"])
            .args([&script, work.path()])
            .args(archives)
            .env("PATH", format!("{}:{path}", programs.display())),
    )?;
    cache::keep(&work.path().join("root"), &target)?;
    Ok(target)
}

/// Hard links for blobs and layers, which are never written again, and copies of databases, which containerd changes.
/// Where the cache is on another disk, all are copies.
fn copy(store: &Path, root: &Path) -> Result<(), Error> {
    let cp = |how: &str| {
        command::output(
            Command::new("cp")
                .args(["--archive", how, "--no-target-directory"])
                .args([store, root]),
        )
    };
    if cp("--link").is_err() {
        return cp("--reflink=auto").map(drop);
    }
    let files = WalkDir::new(root).max_depth(2).into_iter().filter_map(Result::ok);
    for database in files.filter(|file| file.path().extension() == Some(OsStr::new("db"))) {
        let own = database.path();
        let original = store.join(own.strip_prefix(root).unwrap_or(own));
        fs::remove_file(own).file("unlink", own)?;
        fs::copy(&original, own).file("copy to", own)?;
    }
    Ok(())
}
