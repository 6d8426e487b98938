//! A JSON file changes the node. One test, for it sets the environment of its process.

mod library;

use std::ffi::{CStr, c_char, c_uint, c_void};
use std::path::Path;
use std::{env, fs};

use library::{init, open, symbol};

fn configure(file: &Path) {
    // SAFETY: the only test of this binary, and nothing else of it runs meanwhile.
    unsafe { env::set_var("MOCK_NVML_CONFIG", file) };
}

#[test]
fn the_node_is_what_the_file_says() {
    let library = open();
    let mut count: c_uint = 77;
    let get_count: extern "C" fn(*mut c_uint) -> c_uint = *symbol(&library, "nvmlDeviceGetCount_v2");
    let shutdown: extern "C" fn() -> c_uint = *symbol(&library, "nvmlShutdown");
    assert_eq!((get_count(&raw mut count), count), (1, 77), "not initialised");
    assert_eq!(shutdown(), 1, "not initialised");

    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mock-nvml.json");
    configure(&file.with_extension("missing"));
    assert_eq!(init(&library), 999, "no such file");
    fs::write(&file, r#"{"gpu": 2}"#).unwrap();
    configure(&file);
    assert_eq!(init(&library), 999, "an unknown field");
    fs::write(&file, r#"{"gpus": 256}"#).unwrap();
    assert_eq!(init(&library), 999, "more GPUs than buses");

    fs::write(
        &file,
        r#"{"gpus": 2, "product": "NVIDIA A100-SXM4-40GB", "memoryMib": 40960, "architecture": 7}"#,
    )
    .unwrap();
    assert_eq!(init(&library), 0);
    assert_eq!((get_count(&raw mut count), count), (0, 2));

    let mut device: *mut c_void = std::ptr::null_mut();
    let by_index: extern "C" fn(c_uint, *mut *mut c_void) -> c_uint =
        *symbol(&library, "nvmlDeviceGetHandleByIndex_v2");
    assert_eq!(by_index(2, &raw mut device), 2, "past the end");
    assert_eq!(by_index(1, &raw mut device), 0);
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

    assert_eq!(init(&library), 0, "counted: two inits need two shutdowns");
    assert_eq!((shutdown(), get_count(&raw mut count)), (0, 0));
    assert_eq!((shutdown(), get_count(&raw mut count)), (0, 1));
}
