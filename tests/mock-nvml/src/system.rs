//! Starting, stopping, and what belongs to the node as a whole.

use std::ffi::{c_char, c_int, c_uint};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::config::Config;
use crate::out::{Out, Return, code, put, put_text};

/// How many `nvmlInit` are not yet undone by an `nvmlShutdown`; NVML counts them too.
static INITS: AtomicU32 = AtomicU32::new(0);
static CONFIG: OnceLock<Config> = OnceLock::new();

/// The configuration, once the library is initialised.
pub(crate) fn config() -> Result<&'static Config, Return> {
    if INITS.load(Ordering::Acquire) == 0 {
        return Err(Return::Uninitialized);
    }
    CONFIG.get().ok_or(Return::Uninitialized)
}

/// Reads the configuration and starts the library.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> Return {
    if CONFIG.get().is_none() {
        match Config::load() {
            Ok(config) => drop(CONFIG.set(config)),
            Err(error) => {
                eprintln!("mock-nvml: {error}");
                return Return::Unknown;
            }
        }
    }
    INITS.fetch_add(1, Ordering::AcqRel);
    Return::Success
}

/// The old name of [`nvmlInit_v2`].
#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit() -> Return {
    nvmlInit_v2()
}

/// [`nvmlInit_v2`]; no flag changes anything here.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> Return {
    nvmlInit_v2()
}

/// Undoes one `nvmlInit`.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> Return {
    let undone = INITS.fetch_update(Ordering::AcqRel, Ordering::Acquire, |inits| inits.checked_sub(1));
    code(undone.map(drop).map_err(|_| Return::Uninitialized))
}

/// The text of a return code. It takes an integer, not [`Return`]: the caller may pass any number.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlErrorString(result: c_uint) -> *const c_char {
    let text = match result {
        0 => c"Success",
        1 => c"Uninitialized",
        2 => c"Invalid Argument",
        3 => c"Not Supported",
        6 => c"Not Found",
        7 => c"Insufficient Size",
        10 => c"Timeout",
        25 => c"Argument Version Mismatch",
        _ => c"Unknown Error",
    };
    text.as_ptr()
}

/// Version of the kernel driver, such as `580.82.07`.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlSystemGetDriverVersion(version: *mut c_char, length: c_uint) -> Return {
    code(config().and_then(|config| put_text(version, length, &config.driver_version)))
}

/// CUDA version of the driver, 1000 × major + 10 × minor.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlSystemGetCudaDriverVersion_v2(version: Out<c_int>) -> Return {
    code(config().and_then(|config| put(version, config.cuda_driver_version)))
}

/// The old name of [`nvmlSystemGetCudaDriverVersion_v2`].
#[unsafe(no_mangle)]
pub extern "C" fn nvmlSystemGetCudaDriverVersion(version: Out<c_int>) -> Return {
    nvmlSystemGetCudaDriverVersion_v2(version)
}
