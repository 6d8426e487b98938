//! Test equipment: a `libnvidia-ml.so.1` that makes NVIDIA's DRA kubelet plugin see GPUs that are not there.
//!
//! What the plugin (0.4.1) asks on its way to a `ResourceSlice` and a prepared claim is answered from
//! [`Config`]; every other symbol that go-nvml 0.13.1 binds (`symbols.txt`) exists and returns
//! [`Return::NotSupported`], because go-nvml crashes the process on a missing one.
//! The list is made from go-nvml's `pkg/nvml`: `grep -oP 'C\.\Knvml\w+(?=\()' nvml.go | sort -u > symbols.txt`.
//! Signatures and layouts are those of `nvml.h`. A `Return` other than success leaves every output untouched.
#![allow(non_snake_case, reason = "the names are NVML's")]

mod config;
mod device;
mod faults;
mod fields;
mod out;
mod system;
mod telemetry;

pub use config::Config;
pub use faults::{FILE as FAULTS_FILE, Faults};
pub use out::Return;

mod not_supported {
    use crate::Return;
    include!(concat!(env!("OUT_DIR"), "/not_supported.rs"));
}
