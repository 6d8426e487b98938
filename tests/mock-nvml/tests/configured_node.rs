//! A JSON file changes the node. One test, for it sets the environment of its process.

mod library;

use std::ffi::{CStr, c_char, c_uint, c_void};
use std::path::Path;
use std::{env, fs};

use libloading::Library;
use library::{init, open, symbol};

fn configure(file: &Path) {
    // SAFETY: the only test of this binary, and nothing else of it runs meanwhile.
    unsafe { env::set_var("MOCK_NVML_CONFIG", file) };
}

#[test]
fn the_node_matches_the_file() {
    let library = open();
    let mut count: c_uint = 77;
    let get_count: extern "C" fn(*mut c_uint) -> c_uint = *symbol(&library, "nvmlDeviceGetCount_v2");
    let shutdown: extern "C" fn() -> c_uint = *symbol(&library, "nvmlShutdown");
    assert_eq!((get_count(&raw mut count), count), (1, 77), "not initialised");
    assert_eq!(shutdown(), 1, "not initialised");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mock-nvml.json");
    configure(&file.with_extension("missing"));
    assert_eq!(init(&library), 999, "no such file");
    fs::write(&file, r#"{"gpu": 2}"#).unwrap();
    configure(&file);
    assert_eq!(init(&library), 999, "an unknown field");
    fs::write(&file, r#"{"gpus": 256}"#).unwrap();
    assert_eq!(init(&library), 999, "more GPUs than buses");

    fs::write(
        &file,
        r#"{"gpus": 2, "first": 8, "product": "NVIDIA A100-SXM4-40GB", "memoryMib": 40960, "architecture": 7}"#,
    )
    .unwrap();
    assert_eq!(init(&library), 0);
    assert_eq!((get_count(&raw mut count), count), (0, 2));

    let mut device: *mut c_void = std::ptr::null_mut();
    let by_index: extern "C" fn(c_uint, *mut *mut c_void) -> c_uint =
        *symbol(&library, "nvmlDeviceGetHandleByIndex_v2");
    assert_eq!(by_index(2, &raw mut device), 2, "past the end");
    assert_eq!(by_index(1, &raw mut device), 0);
    let mut minor: c_uint = 77;
    let get_minor: extern "C" fn(*mut c_void, *mut c_uint) -> c_uint = *symbol(&library, "nvmlDeviceGetMinorNumber");
    assert_eq!((get_minor(device, &raw mut minor), minor), (0, 9));
    let mut uuid: [c_char; 96] = [0; 96];
    let get_uuid: extern "C" fn(*mut c_void, *mut c_char, c_uint) -> c_uint = *symbol(&library, "nvmlDeviceGetUUID");
    assert_eq!(get_uuid(device, uuid.as_mut_ptr(), 96), 0);
    // SAFETY: filled by the call before.
    let uuid = unsafe { CStr::from_ptr(uuid.as_ptr()) };
    assert_eq!(uuid, c"GPU-10de2330-0000-4000-8000-000000000009");
    let mut name: [c_char; 96] = [0; 96];
    let get_name: extern "C" fn(*mut c_void, *mut c_char, c_uint) -> c_uint = *symbol(&library, "nvmlDeviceGetName");
    assert_eq!(get_name(device, name.as_mut_ptr(), 96), 0);
    // SAFETY: filled by the call before.
    assert_eq!(unsafe { CStr::from_ptr(name.as_ptr()) }, c"NVIDIA A100-SXM4-40GB");
    let mut memory = [0_u64; 3];
    let get_memory: extern "C" fn(*mut c_void, *mut u64) -> c_uint = *symbol(&library, "nvmlDeviceGetMemoryInfo");
    assert_eq!(
        (get_memory(device, memory.as_mut_ptr()), memory[0]),
        (0, 40_960 * 1024 * 1024)
    );

    faults_are_read_again(&library, &file, device);

    assert_eq!(init(&library), 0, "counted: two inits need two shutdowns");
    assert_eq!((shutdown(), get_count(&raw mut count)), (0, 0));
    assert_eq!((shutdown(), get_count(&raw mut count)), (0, 1));
}

fn faults_are_read_again(library: &Library, config: &Path, device: *mut c_void) {
    let faults = config.with_file_name("gpu-faults.json");
    let get_reasons: extern "C" fn(*mut c_void, *mut u64) -> c_uint =
        *symbol(library, "nvmlDeviceGetCurrentClocksThrottleReasons");
    let get_clock: extern "C" fn(*mut c_void, c_uint, *mut c_uint) -> c_uint =
        *symbol(library, "nvmlDeviceGetClockInfo");
    let get_utilization: extern "C" fn(*mut c_void, *mut [c_uint; 2]) -> c_uint =
        *symbol(library, "nvmlDeviceGetUtilizationRates");
    let wait: extern "C" fn(usize, *mut [u64; 4], c_uint) -> c_uint = *symbol(library, "nvmlEventSetWait_v2");
    let (mut reasons, mut mhz, mut busy, mut event) = (0, 0, [0; 2], [0; 4]);

    assert_eq!(
        (get_reasons(device, &raw mut reasons), reasons),
        (0, 0x4),
        "healthy: the power cap"
    );
    assert_eq!(get_utilization(device, &raw mut busy), 3, "unknown");
    assert_eq!(wait(1, &raw mut event, 0), 10, "no XID");

    fs::write(
        &faults,
        r#"{"1": {"throttled": true, "shared": true, "xid": 79}, "0": {}}"#,
    )
    .expect("faults");
    assert_eq!((get_reasons(device, &raw mut reasons), reasons), (0, 0x48));
    assert_eq!((get_clock(device, 1, &raw mut mhz), mhz), (0, 1155));
    assert_eq!((get_utilization(device, &raw mut busy), busy[0]), (0, 100));
    assert_eq!((wait(1, &raw mut event, 0), event[1], event[2]), (0, 8, 79));
    assert_eq!(wait(1, &raw mut event, 0), 10, "once");

    fs::remove_file(&faults).expect("no faults");
    assert_eq!((get_reasons(device, &raw mut reasons), reasons), (0, 0x4));
}
