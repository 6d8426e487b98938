//! What the simulated driver says is wrong with its GPUs.

use std::{fs, io};

use serde_json::{Map, Value, json};

use crate::driver_root::DriverRoot;
use crate::error::{Error, FileResult as _};
use crate::node;
use crate::paths::StateDir;
use crate::supervisor::client;

/// Adds a fault to a GPU.
pub(super) fn set(state: &StateDir, gpu: u32, fault: &str, value: Value) -> Result<(), Error> {
    let root = DriverRoot::at(&node::driver_root_path(state), 0..0);
    if !root.path().exists() {
        return Err(Error::NoNode);
    }
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
    use serde_json::{Map, json};

    use super::with;

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
