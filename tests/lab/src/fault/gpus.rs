//! What the simulated driver says is wrong with its GPUs.

use std::{fs, io};

use serde_json::{Map, Value, json};

use super::gpu_numbers;
use crate::driver_root::DriverRoot;
use crate::error::{Error, FileResult as _};
use crate::node;
use crate::paths::StateDir;
use crate::supervisor::client;

/// Adds a fault to a GPU of the first node.
pub(super) fn set(state: &StateDir, gpu: u32, fault: &str, value: Value) -> Result<(), Error> {
    let numbers = gpu_numbers(state)?;
    if !numbers.contains(&gpu) {
        return Err(Error::Usage(format!(
            "no GPU {gpu}: the node has {}, from 0",
            numbers.end
        )));
    }
    let root = DriverRoot::at(&node::driver_root_path(state), numbers);
    let current = match fs::read(root.faults()) {
        Ok(text) => serde_json::from_slice(&text).map_err(|source| Error::Json {
            what: "the faults of the GPUs".to_owned(),
            source,
        })?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Map::new(),
        Err(error) => return Err(error).file("read", root.faults()),
    };
    let text = Value::Object(with(current, gpu, fault, value)).to_string();
    // Renamed into place: the driver may read it at any moment.
    let new = root.faults().with_extension("new");
    fs::write(&new, text).file("write", &new)?;
    fs::rename(&new, root.faults()).file("rename", new)
}

/// All GPUs are healthy again. The exporter starts anew: it would remember their XIDs, as NVIDIA's does.
pub(super) fn clear(state: &StateDir) -> Result<(), Error> {
    let faults = DriverRoot::at(&node::driver_root_path(state), 0..0).faults();
    match fs::remove_file(&faults) {
        Ok(()) => {
            client::stop(state, node::GPU_EXPORTER)?;
            client::start(state, node::GPU_EXPORTER)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).file("remove", faults),
    }
}

fn with(mut faults: Map<String, Value>, gpu: u32, fault: &str, value: Value) -> Map<String, Value> {
    let of_gpu = faults.entry(gpu.to_string()).or_insert_with(|| json!({}));
    of_gpu[fault] = value;
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_for_a_gpu_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::at(folder.path());
        let driver = node::driver_root_path(&state);
        assert!(matches!(set(&state, 1, "xid", json!(79)), Err(Error::NoNode)));
        fs::create_dir(&driver).unwrap();
        fs::write(driver.join("mock-nvml.json"), r#"{"gpus": 2}"#).unwrap();
        let error = set(&state, 2, "xid", json!(79)).unwrap_err().to_string();
        assert_eq!(error, "no GPU 2: the node has 2, from 0");
        set(&state, 1, "xid", json!(79)).unwrap();
        let faults = fs::read_to_string(DriverRoot::at(&driver, 0..2).faults()).unwrap();
        assert_eq!(faults, r#"{"1":{"xid":79}}"#);
    }

    #[test]
    fn faults_of_a_gpu_add_up() {
        let one = with(Map::new(), 3, "throttled", json!(true));
        let two = with(one, 3, "xid", json!(79));
        let three = with(two, 5, "shared", json!(true));
        assert_eq!(
            json!(three),
            json!({"3": {"throttled": true, "xid": 79}, "5": {"shared": true}})
        );
    }
}
