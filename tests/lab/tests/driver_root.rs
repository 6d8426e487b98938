//! The driver root has what NVIDIA's plugin looks for. Needs root, for the device nodes.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

use perfval_lab::driver_root::{DriverRoot, Gpus};

/// Name, major and minor of every node in `dev`, sorted; they must be character devices open to everyone.
fn nodes(root: &Path) -> Vec<(String, u64, u64)> {
    let mut nodes: Vec<_> = fs::read_dir(root.join("dev"))
        .expect("dev")
        .map(|entry| {
            let entry = entry.expect("entry");
            let meta = entry.metadata().expect("metadata");
            assert!(meta.file_type().is_char_device(), "{entry:?}");
            assert_eq!(meta.permissions().mode() & 0o777, 0o666, "{entry:?}");
            let name = entry.file_name().into_string().expect("UTF-8");
            (
                name,
                nix::sys::stat::major(meta.rdev()),
                nix::sys::stat::minor(meta.rdev()),
            )
        })
        .collect();
    nodes.sort();
    nodes
}

#[test]
#[ignore = "needs root: just lab-test"]
fn two_gpus_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("driver");
    let root = DriverRoot::make(
        &path,
        &Gpus {
            count: 2,
            ..Gpus::default()
        },
    )
    .unwrap();

    let all = [
        ("nvidia-uvm", 510, 0),
        ("nvidia-uvm-tools", 510, 1),
        ("nvidia0", 195, 0),
        ("nvidia1", 195, 1),
        ("nvidiactl", 195, 255),
    ]
    .map(|(name, major, minor)| (name.to_owned(), major, minor));
    assert_eq!(nodes(&path), all);
    assert!(
        Command::new(path.join("usr/bin/nvidia-smi"))
            .status()
            .unwrap()
            .success()
    );
    assert!(path.join("usr/lib64/libnvidia-ml.so.1").exists());
    let (variable, config) = root.env();
    assert_eq!(variable, "MOCK_NVML_CONFIG");
    let config: serde_json::Value = serde_json::from_slice(&fs::read(config).unwrap()).unwrap();
    assert_eq!(
        config,
        serde_json::json!({"gpus": 2, "product": "NVIDIA H100 80GB HBM3", "memoryMib": 81920})
    );

    root.remove_devices().unwrap();
    assert_eq!(nodes(&path), []);
    root.remove_devices().unwrap();
    DriverRoot::at(&path, 2).restore_devices().unwrap();
    assert_eq!(nodes(&path), all);

    DriverRoot::make(
        &path,
        &Gpus {
            count: 1,
            ..Gpus::default()
        },
    )
    .unwrap();
    assert_eq!(nodes(&path).len(), 4, "a root made again forgets the old one");
}
