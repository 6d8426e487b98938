//! The exporter on the simulated driver, read as the runner reads NVIDIA's own. One test: it sets the environment of its
//! process.

use std::path::Path;
use std::{env, fs};

use gpu_exporter::{Gpus, driver};
use perfval_verdict::gpus::Field;
use perfval_verdict::gpus::dcgm::read;

#[test]
fn a_simulated_driver_is_read_like_a_real_one() {
    let config = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mock-nvml.json");
    fs::write(&config, r#"{"gpus": 2}"#).expect("a configuration");
    let faults = config.with_file_name(mock_nvml::FAULTS_FILE);
    fs::write(&faults, "{}").expect("no faults");
    // SAFETY: the only test of this binary, and no other thread runs yet.
    unsafe { env::set_var("MOCK_NVML_CONFIG", &config) };
    let library = env::current_exe()
        .expect("own path")
        .with_file_name("libmock_nvml.so");
    let nvml = driver(Some(&library)).expect("the simulated driver");
    let mut gpus = Gpus::of(&nvml, "gpu-node-1");

    let healthy = read(gpus.page().as_bytes()).expect("a page");
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
    assert_eq!(healthy[1].reading.busy_percent(), None, "nobody computes on it");

    fs::write(&faults, r#"{"1": {"throttled": true, "shared": true, "xid": 79}}"#).expect("faults");
    let faulty = read(gpus.page().as_bytes()).expect("a page");
    assert_eq!(faulty[0].reading.get(Field::Reasons), Some(4), "the other is as before");
    for (field, value) in [
        (Field::SmClock, 1155),
        (Field::Reasons, 0x48),
        (Field::Xid, 79),
        (Field::Utilisation, 100),
        (Field::MemoryUsed, 2048),
    ] {
        assert_eq!(faulty[1].reading.get(field), Some(value), "{field:?}");
    }
    let later = read(gpus.page().as_bytes()).expect("a page");
    assert_eq!(later[1].reading.get(Field::Xid), Some(79), "the last one stays");
}
