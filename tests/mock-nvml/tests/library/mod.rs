//! The built library, opened as NVIDIA's plugin opens it: with dlopen, by symbol name.

use std::env;
use std::ffi::c_uint;
use std::path::PathBuf;

use libloading::{Library, Symbol};

/// The shared object cargo built next to the test binary, in `target/<profile>/deps`.
fn path() -> PathBuf {
    env::current_exe().expect("own path").with_file_name("libmock_nvml.so")
}

/// Loads the library. It is one per process: tests of one binary share its state.
pub fn open() -> Library {
    // SAFETY: loading our own library runs no code of its own.
    unsafe { Library::new(path()).expect("the shared object next to the test") }
}

/// A function of the library under the type the test gives it, which is that of `nvml.h`.
pub fn symbol<'a, F>(library: &'a Library, name: &str) -> Symbol<'a, F> {
    // SAFETY: the tests spell the types out from nvml.h.
    unsafe {
        library
            .get(name.as_bytes())
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

/// Calls `nvmlInit_v2` and gives its code.
pub fn init(library: &Library) -> c_uint {
    symbol::<extern "C" fn() -> c_uint>(library, "nvmlInit_v2")()
}
