//! What NVML gives by number: replaced rows of memory, and the errors of all NVLinks together.

use std::ffi::{c_int, c_longlong, c_uint, c_ulonglong};

use crate::device::Device;
use crate::faults::Faults;
use crate::out::{Return, code};

/// `NVML_FI_DEV_NVLINK_…_ERROR_COUNT_TOTAL`: flits and data with a wrong checksum, replays, recoveries.
const NVLINK_ERRORS: [c_uint; 4] = [38, 45, 52, 59];
const NVLINK_REPLAYS: c_uint = 52;
/// `NVML_FI_DEV_REMAPPED_…`: for correctable and uncorrectable errors, pending, failed.
const REMAPPED: [c_uint; 4] = [142, 143, 144, 145];
const REMAPPED_UNCORRECTABLE: c_uint = 143;
/// `NVML_VALUE_TYPE_UNSIGNED_LONG_LONG`
const WHOLE: c_uint = 3;

/// `nvmlFieldValue_t`
#[repr(C)]
pub struct FieldValue {
    field: c_uint,
    scope: c_uint,
    timestamp: c_longlong,
    latency: c_longlong,
    kind: c_uint,
    answer: c_uint,
    /// A union; its unsigned 64-bit integer.
    value: c_ulonglong,
}

/// Each field has an answer of its own.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetFieldValues(device: Device, count: c_int, values: *mut FieldValue) -> Return {
    code(device.index().and_then(|index| {
        let count = usize::try_from(count).map_err(|_| Return::InvalidArgument)?;
        if values.is_null() {
            return Err(Return::InvalidArgument);
        }
        // SAFETY: NVML's contract is that `values` points to `count` of them; null was refused above.
        let values = unsafe { std::slice::from_raw_parts_mut(values, count) };
        let faults = Faults::of(index);
        for field in values {
            (field.kind, field.answer, field.value) = match of(&faults, field.field) {
                Some(value) => (WHOLE, Return::Success as c_uint, value),
                None => (WHOLE, Return::NotSupported as c_uint, 0),
            };
        }
        Ok(())
    }))
}

fn of(faults: &Faults, field: c_uint) -> Option<u64> {
    match field {
        NVLINK_REPLAYS => Some(faults.nvlink_replays()),
        REMAPPED_UNCORRECTABLE => Some(faults.remapped_rows),
        field if NVLINK_ERRORS.contains(&field) || REMAPPED.contains(&field) => Some(0),
        _ => None,
    }
}
