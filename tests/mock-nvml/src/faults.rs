//! What is wrong with which GPU: a JSON file next to the configuration, read anew for every answer that depends on it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde::Deserialize;

use crate::config::CONFIG_ENV;

/// The file's name.
pub const FILE: &str = "gpu-faults.json";

/// What is wrong with one GPU. A healthy one has the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Faults {
    /// Too hot: the hardware holds its clocks down.
    pub throttled: bool,
    /// Something else works on it all the time, and holds 2 GiB of its memory.
    pub shared: bool,
    /// The last XID error.
    pub xid: Option<u64>,
    /// Double-bit ECC errors since the driver was loaded.
    pub double_bit_errors: u64,
    /// Its PCIe link runs on half of its lanes.
    pub narrow_link: bool,
    /// Rows of its memory that were replaced after uncorrectable errors.
    pub remapped_rows: u64,
    /// Packets that its NVLinks send again.
    pub nvlink_replays_per_second: u64,
}

impl Faults {
    /// Packets that its NVLinks sent again: a counter that begins with the last change of the file.
    pub(crate) fn nvlink_replays(&self) -> u64 {
        let changed = file().and_then(|file| fs::metadata(file).ok()?.modified().ok());
        let since = changed.and_then(|changed| changed.elapsed().ok()).unwrap_or_default();
        (since.as_secs() + 1) * self.nvlink_replays_per_second
    }

    /// Those of a GPU, by its index. Without a readable file there are none.
    pub(crate) fn of(index: u32) -> Self {
        read().and_then(|mut all| all.remove(&index)).unwrap_or_default()
    }
}

fn file() -> Option<PathBuf> {
    let config = env::var_os(CONFIG_ENV)?;
    Some(Path::new(&config).with_file_name(FILE))
}

fn read() -> Option<BTreeMap<u32, Faults>> {
    serde_json::from_slice(&fs::read(file()?).ok()?).ok()
}
