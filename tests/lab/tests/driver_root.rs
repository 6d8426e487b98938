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
        serde_json::json!({"gpus": 2, "first": 0, "product": "NVIDIA H100 80GB HBM3", "memoryMib": 81920})
    );

    root.remove_devices().unwrap();
    assert_eq!(nodes(&path), []);
    root.remove_devices().unwrap();
    DriverRoot::at(&path, 0..2).restore_devices().unwrap();
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

#[test]
#[ignore = "needs root: just lab-test"]
fn a_real_driver_takes_the_place_of_the_simulated_one() {
    use nix::sys::stat::{Mode, SFlag, makedev, mknod};

    let folder = tempfile::tempdir().unwrap();
    let (driver, dev) = (folder.path().join("nvidia"), folder.path().join("dev"));
    fs::create_dir_all(driver.join("lib64/stubs")).unwrap();
    fs::create_dir_all(driver.join("bin")).unwrap();
    fs::create_dir_all(&dev).unwrap();
    fs::write(driver.join("lib64/libnvidia-ml.so.580.159.04"), "nvml").unwrap();
    std::os::unix::fs::symlink("libnvidia-ml.so.580.159.04", driver.join("lib64/libnvidia-ml.so.1")).unwrap();
    fs::write(driver.join("lib64/stubs/libcuda.so"), "a stub").unwrap();
    fs::write(driver.join("lib64/libssl.so.3"), "of the system").unwrap();
    fs::write(driver.join("bin/nvidia-smi"), "smi").unwrap();
    fs::write(dev.join("null"), "").unwrap();
    let real = [("nvidia-uvm", 238, 0), ("nvidia0", 195, 0), ("nvidiactl", 195, 255)];
    for (name, major, minor) in real {
        mknod(&dev.join(name), SFlag::S_IFCHR, Mode::empty(), makedev(major, minor)).unwrap();
    }

    let path = folder.path().join("root");
    let root = DriverRoot::at(&path, 0..1);
    root.take(&driver, &dev).unwrap();
    let real = real.map(|(name, major, minor)| (name.to_owned(), major, minor));
    assert_eq!(nodes(&path), real, "the majors of this machine");
    assert_eq!(fs::read_to_string(root.library()).unwrap(), "nvml");
    assert_eq!(
        fs::read_dir(path.join("usr/lib64")).unwrap().count(),
        2,
        "no stubs, and nothing of the system"
    );
    assert_eq!(fs::read_to_string(path.join("usr/bin/nvidia-smi")).unwrap(), "smi");
    root.remove_devices().unwrap();
    DriverRoot::at(&path, 0..8).restore_devices().unwrap();
    assert_eq!(nodes(&path), real, "also after the plugin was made stale");

    let refused = root.take(&dev, &dev).expect_err("no driver");
    assert!(refused.to_string().contains("holds no driver"), "{refused}");
}
