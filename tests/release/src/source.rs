//! The sources as they are committed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tar::Archive;

use crate::command::{line, output};
use crate::{Result, archive};

/// The sources of one commit, unpacked.
pub struct Source {
    /// Where they are.
    pub root: PathBuf,
    /// The commit.
    pub commit: String,
    /// When it was made (seconds since 1970): the time of every file of the release.
    pub epoch: u64,
}

impl Source {
    /// Unpacks the commit that is checked out; what is not committed is no part of a release.
    pub fn unpack(folder: &Path) -> Result<Self> {
        let git = |arguments: &[&str]| line(Command::new("git").args(arguments));
        let changed = git(&["status", "--porcelain"])?;
        if !changed.is_empty() {
            eprintln!("not committed, and not in the release:\n{changed}");
        }
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
        let tar = output(Command::new("git").args(["archive", "--format=tar", "HEAD"]))?;
        let mut sources = Archive::new(tar.as_slice());
        // Cargo builds what is newer than its last build: with the commit's times it would ship the programs of another one.
        sources.set_preserve_mtime(false);
        sources.unpack(folder)?;
        Ok(Self {
            root: folder.canonicalize()?,
            commit: git(&["rev-parse", "HEAD"])?,
            epoch: git(&["log", "-1", "--format=%ct"])?.parse()?,
        })
    }

    /// A file of the sources.
    pub fn read(&self, path: &str) -> Result<Vec<u8>> {
        fs::read(self.root.join(path)).map_err(|error| format!("{path}: {error}").into())
    }

    /// A program that works on the sources, with the commit's time as the time of day where it asks for one.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.root)
            .env("SOURCE_DATE_EPOCH", self.epoch.to_string());
        command
    }

    /// Refuses a version that is not everywhere.
    pub fn check_version(&self, version: &str) -> Result<()> {
        let yaml = |path: &str| -> Result<Value> { Ok(serde_saphyr::from_slice(&self.read(path)?)?) };
        let chart = yaml("charts/perfvalidation-operator/Chart.yaml")?;
        let images = yaml("config/default/kustomization.yaml")?["images"].take();
        let operator = images
            .as_array()
            .into_iter()
            .flatten()
            .find(|image| image["name"] == "perfvalidation-operator");
        let metadata = output(
            self.command("cargo")
                .args(["metadata", "--no-deps", "--format-version=1"]),
        )?;
        let metadata: Value = serde_json::from_slice(&metadata)?;
        let found = [
            ("Cargo.toml", metadata["packages"][0]["version"].clone()),
            ("Chart.yaml version", chart["version"].clone()),
            ("Chart.yaml appVersion", chart["appVersion"].clone()),
        ];
        for (place, found) in found {
            if found != version {
                return Err(format!("{place} has version {found}, not {version}").into());
            }
        }
        let tag = operator.map_or(Value::Null, |image| image["newTag"].clone());
        if tag != format!("v{version}") {
            return Err(format!("config/default has tag {tag}, not v{version}").into());
        }
        Ok(())
    }

    /// Writes the files of an archive again, sorted and with the commit's time.
    pub fn repack(&self, archive: &[u8]) -> Result<Vec<u8>> {
        archive::write(&archive::read(archive)?, self.epoch)
    }
}
