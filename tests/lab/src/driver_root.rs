//! The folder NVIDIA's DRA kubelet plugin takes for the root of an installed driver: the simulated
//! `libnvidia-ml.so.1`, an `nvidia-smi`, and device nodes with the majors a real driver gets. Or a real driver in its place.

mod real;

use std::ops::Range;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use serde::Serialize;
use serde_json::json;

use crate::error::{Error, FileResult as _};

/// The variable by which the simulated library knows where its configuration is.
const CONFIG_ENV: &str = "MOCK_NVML_CONFIG";
/// Named as of the driver version that mock-nvml reports by default.
const LIBRARY: &str = "libnvidia-ml.so.580.82.07";
const NVIDIA_MAJOR: u64 = 195;
const NVIDIACTL_MINOR: u64 = 255;
const UVM_MAJOR: u64 = 510;

/// What the simulated node holds; the other properties are those of an H100 (see the crate mock-nvml).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gpus {
    /// How many.
    #[serde(rename = "gpus")]
    pub count: u32,
    /// Minor number of the first one: no two nodes of a lab have a GPU with the same number.
    pub first: u32,
    /// Product name.
    pub product: String,
    /// Memory of each in MiB.
    pub memory_mib: u64,
    /// Folder of a real driver, which takes the place of the simulated one.
    #[serde(skip)]
    pub driver: Option<PathBuf>,
}

impl Default for Gpus {
    fn default() -> Self {
        Self {
            count: 8,
            first: 0,
            product: "NVIDIA H100 80GB HBM3".to_owned(),
            memory_mib: 80 * 1024,
            driver: None,
        }
    }
}

impl Gpus {
    /// Their minor numbers.
    pub fn numbers(&self) -> Range<u32> {
        self.first..self.first + self.count
    }

    /// Those of this machine, with the driver whose folder this is.
    pub fn real(driver: &Path) -> Result<Self, Error> {
        let count = real::gpus(&real::nodes(Path::new("/dev"))?);
        if count == 0 {
            return Err(Error::Usage(
                "this machine has no NVIDIA GPU: no /dev/nvidia0".to_owned(),
            ));
        }
        Ok(Self {
            count,
            driver: Some(driver.to_owned()),
            ..Self::default()
        })
    }
}

/// A driver root on disk.
#[derive(Debug)]
pub struct DriverRoot {
    path: PathBuf,
    /// Numbers of its GPUs.
    gpus: Range<u32>,
}

impl DriverRoot {
    /// Makes the driver root at `path`, in place of what was there.
    pub fn make(path: &Path, gpus: &Gpus) -> Result<Self, Error> {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error).file("remove", path),
            _ => {}
        }
        let root = Self::at(path, gpus.numbers());
        if let Some(driver) = &gpus.driver {
            root.take(driver, Path::new("/dev"))?;
            return Ok(root);
        }
        for folder in ["usr/lib64", "usr/bin", "dev"] {
            fs::create_dir_all(path.join(folder)).file("make", path.join(folder))?;
        }

        // The plugin looks for the library by the driver's version, all others by its soname.
        let library = path.join("usr/lib64").join(LIBRARY);
        fs::copy(built_library()?, &library).file("copy the simulated NVML to", &library)?;
        let soname = library.with_file_name("libnvidia-ml.so.1");
        symlink(LIBRARY, &soname).file("link", soname)?;

        // The plugin looks it up and runs it for what is not simulated; it must be there and succeed.
        Self::write_nvidia_smi(&path.join("usr/bin/nvidia-smi"))?;

        let config = serde_json::to_vec(gpus).map_err(|source| Error::Json {
            what: "the GPUs".to_owned(),
            source,
        })?;
        fs::write(root.config(), config).file("write", root.config())?;
        root.restore_devices()?;
        Ok(root)
    }

    /// Fills the root with a real driver and with device nodes like those in `dev`.
    pub fn take(&self, driver: &Path, dev: &Path) -> Result<(), Error> {
        for folder in ["usr/lib64", "usr/bin", "dev"] {
            fs::create_dir_all(self.path.join(folder)).file("make", self.path.join(folder))?;
        }
        real::copy_libraries(driver, &self.path.join("usr/lib64"))?;
        let nvidia_smi = self.path.join("usr/bin/nvidia-smi");
        match real::nvidia_smi(driver) {
            Some(own) => fs::copy(own, &nvidia_smi).map(drop).file("copy to", &nvidia_smi)?,
            None => Self::write_nvidia_smi(&nvidia_smi)?,
        }
        let nodes = real::nodes(dev)?;
        // Only its number of GPUs is read of it.
        let config = json!({ "gpus": real::gpus(&nodes) }).to_string();
        fs::write(self.config(), config).file("write", self.config())?;
        let text = json!(nodes).to_string();
        fs::write(self.recorded(), text).file("write", self.recorded())?;
        self.restore_devices()
    }

    /// A driver root made before.
    pub fn at(path: &Path, gpus: Range<u32>) -> Self {
        Self {
            path: path.to_owned(),
            gpus,
        }
    }

    /// Where it is; `NVIDIA_DRIVER_ROOT` and `DRIVER_ROOT_CTR_PATH` of the plugin.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The driver's library, by the name that everybody looks for.
    pub fn library(&self) -> PathBuf {
        self.path.join("usr/lib64/libnvidia-ml.so.1")
    }

    /// What is wrong with which GPU; the simulated driver reads it anew for every answer.
    pub fn faults(&self) -> PathBuf {
        self.path.join("gpu-faults.json")
    }

    /// What the plugin's environment needs in addition, so that the library finds its configuration.
    pub fn env(&self) -> (&'static str, PathBuf) {
        (CONFIG_ENV, self.config())
    }

    /// Removes every device node. A plugin started now publishes its slice all the same, but keeps failing each
    /// claim with "empty device edits", also after [`Self::restore_devices`], until it is restarted.
    pub fn remove_devices(&self) -> Result<(), Error> {
        for (name, _, _) in self.devices()? {
            let node = self.path.join("dev").join(name);
            match fs::remove_file(&node) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error).file("remove", node),
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes every device node that is not there.
    pub fn restore_devices(&self) -> Result<(), Error> {
        for (name, major, minor) in self.devices()? {
            let node = self.path.join("dev").join(name);
            if !node.exists() {
                let everyone = Mode::from_bits_truncate(0o666);
                mknod(&node, SFlag::S_IFCHR, everyone, makedev(major, minor)).map_err(|source| Error::System {
                    doing: format!("make the device node {} (it needs root)", node.display()),
                    source,
                })?;
                // mknod obeys the umask, containers run as any user.
                fs::set_permissions(&node, fs::Permissions::from_mode(0o666)).file("open to everyone", node)?;
            }
        }
        Ok(())
    }

    fn write_nvidia_smi(path: &Path) -> Result<(), Error> {
        fs::write(path, "#!/bin/sh\nexit 0\n").file("write", path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).file("make executable", path)
    }

    /// The device nodes of a real driver.
    fn recorded(&self) -> PathBuf {
        self.path.join("device-nodes.json")
    }

    fn config(&self) -> PathBuf {
        self.path.join("mock-nvml.json")
    }

    fn devices(&self) -> Result<Vec<(String, u64, u64)>, Error> {
        if let Some(nodes) = real::recorded(&self.recorded())? {
            let nodes = nodes.into_iter().map(|node| (node.name, node.major, node.minor));
            return Ok(nodes.collect());
        }
        let gpus = self
            .gpus
            .clone()
            .map(|gpu| (format!("nvidia{gpu}"), NVIDIA_MAJOR, u64::from(gpu)));
        let shared = [
            ("nvidiactl", NVIDIA_MAJOR, NVIDIACTL_MINOR),
            ("nvidia-uvm", UVM_MAJOR, 0),
            ("nvidia-uvm-tools", UVM_MAJOR, 1),
        ];
        Ok(gpus
            .chain(shared.map(|(name, major, minor)| (name.to_owned(), major, minor)))
            .collect())
    }
}

/// The crate mock-nvml's shared object, which cargo puts next to this program.
fn built_library() -> Result<PathBuf, Error> {
    let library = env::current_exe()
        .file("find", "this program")?
        .with_file_name("libmock_nvml.so");
    if library.exists() {
        return Ok(library);
    }
    Err(Error::MissingPrograms {
        missing: library.display().to_string(),
        install: "cargo build -p mock-nvml (with the profile of this program)".to_owned(),
    })
}
