//! A real driver in place of the simulated one: its libraries, its `nvidia-smi`, and the device nodes of this machine.

use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::{fs, io};

use nix::sys::stat::{major, minor};
use serde::{Deserialize, Serialize};

use super::NVIDIA_MAJOR;
use crate::error::{Error, FileResult as _};

/// Where a driver's folder may have its libraries.
const LIBRARIES: [&str; 5] = [
    "usr/lib64",
    "lib64",
    "usr/lib/x86_64-linux-gnu",
    "lib/x86_64-linux-gnu",
    ".",
];
const SONAME: &str = "libnvidia-ml.so.1";
/// How the names of a driver's own libraries begin: its folder may be the one of all libraries of the system.
const OWN: [&str; 5] = [
    "libnvidia-",
    "libcuda.so",
    "libcudadebugger.so",
    "libnvcuvid.so",
    "libnvoptix.so",
];

/// A device node: which major a driver's module gets differs from machine to machine (238 and 510 were seen for UVM).
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub name: String,
    pub major: u64,
    pub minor: u64,
}

/// The driver's device nodes in a folder such as `/dev`, sorted by name.
pub(super) fn nodes(dev: &Path) -> Result<Vec<Node>, Error> {
    let mut nodes = Vec::new();
    for entry in fs::read_dir(dev).file("read", dev)? {
        let entry = entry.file("read", dev)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let meta = entry.metadata().file("read", entry.path())?;
        if name.starts_with("nvidia") && meta.file_type().is_char_device() {
            let (major, minor) = (major(meta.rdev()), minor(meta.rdev()));
            nodes.push(Node { name, major, minor });
        }
    }
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(nodes)
}

/// How many of the nodes are GPUs.
pub(super) fn gpus(nodes: &[Node]) -> u32 {
    let number = |node: &&Node| {
        let number = node.name.strip_prefix("nvidia").unwrap_or_default();
        node.major == NVIDIA_MAJOR && number.parse::<u32>().is_ok()
    };
    u32::try_from(nodes.iter().filter(number).count()).unwrap_or(u32::MAX)
}

/// Copies the libraries of a driver's folder, links as links. The stubs of a CUDA toolkit lie in a folder of their own and
/// are left out.
pub(super) fn copy_libraries(from: &Path, to: &Path) -> Result<(), Error> {
    let folder = LIBRARIES.iter().map(|folder| from.join(folder));
    let Some(folder) = folder.into_iter().find(|folder| folder.join(SONAME).exists()) else {
        return Err(Error::Usage(format!(
            "{} holds no driver: no {SONAME} in any of {}",
            from.display(),
            LIBRARIES.join(", ")
        )));
    };
    for entry in fs::read_dir(&folder).file("read", &folder)? {
        let path = entry.file("read", &folder)?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let own = |name: &String| name.contains(".so") && OWN.iter().any(|own| name.starts_with(own));
        if let Some(name) = name.filter(own) {
            copy(&path, &to.join(name))?;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    match fs::read_link(from) {
        // A link to a name beside it; one that leads elsewhere becomes what it leads to.
        Ok(target) if target.components().count() == 1 => symlink(target, to).file("link", to),
        _ => fs::copy(from, to).map(drop).file("copy to", to),
    }
}

/// The driver's own `nvidia-smi`, where its folder has one.
pub(super) fn nvidia_smi(from: &Path) -> Option<PathBuf> {
    let places = ["usr/bin/nvidia-smi", "bin/nvidia-smi", "nvidia-smi"];
    places.iter().map(|place| from.join(place)).find(|path| path.is_file())
}

/// The nodes that were recorded when the root was made.
pub(super) fn recorded(file: &Path) -> Result<Option<Vec<Node>>, Error> {
    match fs::read(file) {
        Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|source| Error::Json {
            what: "the driver's device nodes".to_owned(),
            source,
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).file("read", file),
    }
}
