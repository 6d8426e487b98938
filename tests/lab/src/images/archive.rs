//! Writing layers and docker-archives. The bytes depend on the content alone: entries are sorted, times and owners fixed.

use std::env::consts;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType, Header, HeaderMode};
use walkdir::WalkDir;

use crate::error::{Error, FileResult as _};

/// This file, which every archive is made by.
pub(super) const SOURCE: &[u8] = include_bytes!("archive.rs");

const STICKY: u32 = 0o1000;

/// The OCI image configuration around `User`, `Env`, `Entrypoint` and `Cmd`; the layers are added by [`write`].
pub(super) fn config(config: &Value) -> Value {
    let architecture = match consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    json!({ "architecture": architecture, "os": "linux", "config": config })
}

/// Writes the folder as an uncompressed layer: everything belongs to root, nothing is setuid, and all may read it.
pub(super) fn write_layer(target: &Path, root: &Path) -> Result<(), Error> {
    let mut tar = Builder::new(BufWriter::new(File::create(target).file("create", target)?));
    for entry in WalkDir::new(root).min_depth(1).sort_by_file_name() {
        let entry = entry.map_err(io::Error::from).file("walk", root)?;
        let name = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let kind = entry.file_type();
        // A container gets its own devices, and sockets and pipes mean nothing in an image.
        if kind.is_char_device() || kind.is_block_device() || kind.is_fifo() || kind.is_socket() {
            continue;
        }

        let meta = entry
            .metadata()
            .map_err(io::Error::from)
            .file("look at", entry.path())?;
        let mut header = Header::new_gnu();
        header.set_metadata_in_mode(&meta, HeaderMode::Deterministic);
        if kind.is_dir() && meta.permissions().mode() & STICKY != 0 {
            header.set_mode(0o1777);
        }
        let written = if kind.is_symlink() {
            header.set_entry_type(EntryType::Symlink);
            header.set_size(0);
            fs::read_link(entry.path()).and_then(|link| tar.append_link(&mut header, name, link))
        } else if kind.is_dir() {
            tar.append_data(&mut header, name, io::empty())
        } else {
            File::open(entry.path()).and_then(|file| tar.append_data(&mut header, name, file))
        };
        written.file("add to a layer", entry.path())?;
    }
    tar.into_inner().and_then(|mut file| file.flush()).file("write", target)
}

/// Writes a docker-archive of one image: the layers, its configuration and a manifest that names both.
pub(super) fn write(target: &Path, reference: &str, mut config: Value, layers: &[PathBuf]) -> Result<(), Error> {
    let mut tar = Builder::new(BufWriter::new(File::create(target).file("create", target)?));
    let (mut names, mut diff_ids) = (Vec::new(), Vec::new());
    for layer in layers {
        let digest = digest(layer)?;
        let name = format!("{digest}.tar");
        let size = fs::metadata(layer).file("look at", layer)?.len();
        let file = File::open(layer).file("read", layer)?;
        tar.append_data(&mut header(size), &name, file)
            .file("add a layer to", target)?;
        diff_ids.push(format!("sha256:{digest}"));
        names.push(name);
    }

    config["rootfs"] = json!({ "type": "layers", "diff_ids": diff_ids });
    let config = config.to_string();
    let config_name = format!("{:x}.json", Sha256::digest(&config));
    let manifest = json!([{ "Config": config_name, "RepoTags": [reference], "Layers": names }]).to_string();
    for (name, text) in [(config_name.as_str(), config), ("manifest.json", manifest)] {
        tar.append_data(&mut header(text.len() as u64), name, text.as_bytes())
            .file("write", target)?;
    }
    tar.into_inner().and_then(|mut file| file.flush()).file("write", target)
}

fn header(size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o644);
    header
}

/// SHA-256 of a file, in hexadecimal.
fn digest(path: &Path) -> Result<String, Error> {
    let mut hash = Sha256::new();
    File::open(path)
        .and_then(|mut file| io::copy(&mut file, &mut hash))
        .file("read", path)?;
    Ok(format!("{:x}", hash.finalize()))
}
