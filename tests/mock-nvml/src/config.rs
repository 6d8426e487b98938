//! What the simulated node has: defaults of a DGX H100, changed by a JSON file.

use std::path::PathBuf;
use std::{env, fs, io};

use serde::Deserialize;

/// The environment variable that names the JSON file; unset means [`Config::default`].
pub const CONFIG_ENV: &str = "MOCK_NVML_CONFIG";

const MAX_GPUS: u32 = 255;

/// The simulated GPUs of a node. All are alike; a field that the JSON file leaves out keeps its default.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// How many GPUs, at most 255 (one PCI bus each). Default 8.
    pub gpus: u32,
    /// Minor number of the first one, which its UUID contains too. Default 0.
    pub first: u32,
    /// Product name, as `nvidia-smi -L` shows it.
    pub product: String,
    /// Memory of each GPU in MiB. Default 81920.
    pub memory_mib: u64,
    /// Version of the kernel driver.
    pub driver_version: String,
    /// CUDA version of the driver, 1000 × major + 10 × minor. Default 13000.
    pub cuda_driver_version: i32,
    /// `NVML_DEVICE_ARCH_*`. Default 9, Hopper.
    pub architecture: u32,
    /// CUDA compute capability, major and minor. Default 9.0.
    pub compute_capability: (i32, i32),
}

impl Default for Config {
    fn default() -> Self {
        Self {
            gpus: 8,
            first: 0,
            product: "NVIDIA H100 80GB HBM3".to_owned(),
            memory_mib: 80 * 1024,
            driver_version: "580.82.07".to_owned(),
            cuda_driver_version: 13_000,
            architecture: 9,
            compute_capability: (9, 0),
        }
    }
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file named by [`CONFIG_ENV`] cannot be read.
    #[error("reading {CONFIG_ENV} {path}: {source}; unset it or name a readable file")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not JSON of [`Config`]'s shape.
    #[error("parsing {CONFIG_ENV} {path}: {source}; see `Config` for the fields")]
    Parse {
        /// The file.
        path: PathBuf,
        /// What the parser said.
        source: serde_json::Error,
    },
    /// More GPUs than PCI buses.
    #[error("{CONFIG_ENV} asks for {0} GPUs, at most {MAX_GPUS} can be simulated; lower `gpus`")]
    TooManyGpus(u32),
}

impl Config {
    /// Reads the file named by [`CONFIG_ENV`], or gives the defaults.
    pub fn load() -> Result<Self, Error> {
        match env::var_os(CONFIG_ENV) {
            Some(path) => Self::read(path.into()),
            None => Ok(Self::default()),
        }
    }

    fn read(path: PathBuf) -> Result<Self, Error> {
        let text = fs::read_to_string(&path).map_err(|source| Error::Read {
            path: path.clone(),
            source,
        })?;
        let config: Self = serde_json::from_str(&text).map_err(|source| Error::Parse { path, source })?;
        if config.gpus > MAX_GPUS {
            Err(Error::TooManyGpus(config.gpus))
        } else {
            Ok(config)
        }
    }
}
