//! One of the targets, by `PERFVAL_FUZZ_TARGET`, on what libFuzzer makes up.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use perfval_fuzz::{TARGETS, Target};

static CHOSEN: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("PERFVAL_FUZZ_TARGET").unwrap_or_default();
    let found = TARGETS.iter().find(|target| target.name == name);
    found.unwrap_or_else(|| panic!("PERFVAL_FUZZ_TARGET={name} is no target"))
});

fuzz_target!(|input: &[u8]| {
    (CHOSEN.run)(input);
});
