//! The exporter on the simulated driver, read as the runner reads NVIDIA's own.

use std::process::Command;
use std::{env, fs};

use perfval_verdict::gpus::Field;
use perfval_verdict::gpus::dcgm::{ScrapedGpu, read};

/// What the exporter says of a node with two GPUs and these faults.
fn gpus(faults: &str) -> Vec<ScrapedGpu> {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("mock-nvml.json");
    fs::write(&config, r#"{"gpus": 2}"#).expect("a configuration");
    fs::write(config.with_file_name(mock_nvml::FAULTS_FILE), faults).expect("faults");
    let library = env::current_exe().expect("own path").with_file_name("libmock_nvml.so");
    let answer = Command::new(env!("CARGO_BIN_EXE_gpu-exporter"))
        .args(["--once", "--library"])
        .arg(library)
        .env("MOCK_NVML_CONFIG", &config)
        .output()
        .expect("the exporter");
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    read(answer.stdout.as_slice()).expect("a page")
}

#[test]
fn a_simulated_driver_is_read_like_a_real_one() {
    let healthy = gpus("{}");
    assert_eq!(healthy.len(), 2);
    assert_eq!(healthy[1].uuid, "GPU-10de2330-0000-4000-8000-000000000001");
    assert_eq!(healthy[1].index, Some(1));
    for (field, value) in [
        (Field::MemoryClock, 2619),
        (Field::Reasons, 4),
        (Field::Temperature, 58),
        (Field::Xid, 0),
        (Field::DoubleBitErrors, 0),
        (Field::PcieWidth, 16),
        (Field::MemoryUsed, 0),
    ] {
        assert_eq!(healthy[1].reading.get(field), Some(value), "{field:?}");
    }
    assert_eq!(healthy[1].reading.busy_percent(), None, "nothing computes on it");

    for field in [
        Field::RemappedRows,
        Field::RemapFailure,
        Field::NvlinkReplays,
        Field::NvlinkRecoveries,
    ] {
        assert_eq!(healthy[1].reading.get(field), Some(0), "{field:?}");
    }

    let faulty = gpus(
        r#"{"1": {"throttled": true, "shared": true, "xid": 79, "narrowLink": true, "doubleBitErrors": 2, "remappedRows": 3, "nvlinkReplaysPerSecond": 20}}"#,
    );
    assert_eq!(faulty[0].reading.get(Field::Reasons), Some(4), "the other is as before");
    for (field, value) in [
        (Field::SmClock, 1155),
        (Field::Reasons, 0x48),
        (Field::Xid, 79),
        (Field::Utilisation, 100),
        (Field::MemoryUsed, 2048),
        (Field::PcieWidth, 8),
        (Field::DoubleBitErrors, 2),
        (Field::RemappedRows, 3),
        (Field::RemapFailure, 0),
    ] {
        assert_eq!(faulty[1].reading.get(field), Some(value), "{field:?}");
    }
    // It began with the fault.
    let replays = faulty[1].reading.get(Field::NvlinkReplays).unwrap_or(0);
    assert!((20..20_000).contains(&replays), "{replays}");
}
