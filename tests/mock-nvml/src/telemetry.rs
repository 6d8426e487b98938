//! What a simulated GPU says of its state: the numbers of an H100 under load, and those of its faults.
//!
//! Nothing computes on it, so it cannot say how busy it is: only a GPU that is shared with something else does.

use std::collections::BTreeMap;
use std::ffi::{c_uint, c_ulonglong, c_void};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::device::Device;
use crate::faults::Faults;
use crate::out::{Out, Return, code, put};

/// `NVML_CLOCK_MEM`
const MEMORY_CLOCK: c_uint = 2;
/// Highest of `nvmlClockType_t`.
const LAST_CLOCK: c_uint = 3;
/// `nvmlClocksEventReasonSwPowerCap`, normal under load.
const POWER_CAP: c_ulonglong = 0x4;
/// `nvmlClocksThrottleReasonHwSlowdown | nvmlClocksThrottleReasonHwThermalSlowdown`
const TOO_HOT: c_ulonglong = 0x8 | 0x40;
/// `NVML_MEMORY_ERROR_TYPE_UNCORRECTED`
const UNCORRECTED: c_uint = 1;
/// `nvmlEventTypeXidCriticalError`
const XID_EVENT: c_ulonglong = 0x8;

/// `nvmlUtilization_t`, percent.
#[repr(C)]
pub struct Utilization {
    /// Time in which a kernel ran.
    pub gpu: c_uint,
    /// Time in which memory was read or written.
    pub memory: c_uint,
}

/// `nvmlEventData_t`
#[repr(C)]
pub struct EventData {
    /// Where it happened.
    pub device: Device,
    /// `nvmlEventType…`
    pub kind: c_ulonglong,
    /// The XID.
    pub data: c_ulonglong,
    /// MIG.
    pub gpu_instance_id: c_uint,
    /// MIG.
    pub compute_instance_id: c_uint,
}

/// XIDs that were handed out as events, by index.
static REPORTED: Mutex<BTreeMap<c_uint, u64>> = Mutex::new(BTreeMap::new());

fn answer<T>(device: Device, out: Out<T>, value: impl FnOnce(&Faults) -> Result<T, Return>) -> Return {
    code(device.index().and_then(|index| put(out, value(&Faults::of(index))?)))
}

/// Changes every few milliseconds, and from one second to the next: a real GPU never draws the same power twice, and who
/// looks once a second must not see the same each time.
fn jitter(below: c_uint) -> c_uint {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    c_uint::try_from((now.as_millis() / 7) % u128::from(below)).unwrap_or(0)
}

/// Clocks in MHz; all but the memory's are that of the multiprocessors.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetClockInfo(device: Device, clock: c_uint, mhz: Out<c_uint>) -> Return {
    answer(device, mhz, |faults| match clock {
        MEMORY_CLOCK => Ok(2619),
        0..=LAST_CLOCK if faults.throttled => Ok(1155),
        0..=LAST_CLOCK => Ok(1905 + jitter(20)),
        _ => Err(Return::InvalidArgument),
    })
}

/// Why the clocks are not higher.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetCurrentClocksEventReasons(device: Device, reasons: Out<c_ulonglong>) -> Return {
    answer(device, reasons, |faults| {
        Ok(if faults.throttled { TOO_HOT } else { POWER_CAP })
    })
}

/// The old name of [`nvmlDeviceGetCurrentClocksEventReasons`].
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetCurrentClocksThrottleReasons(device: Device, reasons: Out<c_ulonglong>) -> Return {
    nvmlDeviceGetCurrentClocksEventReasons(device, reasons)
}

/// Power in mW.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetPowerUsage(device: Device, milliwatts: Out<c_uint>) -> Return {
    answer(device, milliwatts, |faults| {
        let watts = if faults.throttled { 380 } else { 640 };
        Ok(watts * 1000 + jitter(140) * 71)
    })
}

/// Temperature in °C; there is one sensor.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetTemperature(device: Device, sensor: c_uint, celsius: Out<c_uint>) -> Return {
    answer(device, celsius, |faults| match sensor {
        0 => Ok(if faults.throttled { 92 } else { 58 }),
        _ => Err(Return::InvalidArgument),
    })
}

/// How busy it is, where that is known.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetUtilizationRates(device: Device, utilization: Out<Utilization>) -> Return {
    answer(device, utilization, |faults| {
        let busy = Utilization { gpu: 100, memory: 40 };
        faults.shared.then_some(busy).ok_or(Return::NotSupported)
    })
}

/// ECC errors.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetTotalEccErrors(
    device: Device,
    kind: c_uint,
    _counter: c_uint,
    count: Out<c_ulonglong>,
) -> Return {
    answer(device, count, |faults| {
        Ok(if kind == UNCORRECTED {
            faults.double_bit_errors
        } else {
            0
        })
    })
}

/// Packets that PCIe sent again.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetPcieReplayCounter(device: Device, count: Out<c_uint>) -> Return {
    answer(device, count, |_| Ok(0))
}

/// PCIe 5.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetCurrPcieLinkGeneration(device: Device, generation: Out<c_uint>) -> Return {
    answer(device, generation, |_| Ok(5))
}

/// Lanes.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetCurrPcieLinkWidth(device: Device, width: Out<c_uint>) -> Return {
    answer(device, width, |faults| Ok(if faults.narrow_link { 8 } else { 16 }))
}

/// A set of events; all sets are alike.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlEventSetCreate(set: Out<usize>) -> Return {
    code(put(set, 1))
}

/// Every set hears of every XID.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceRegisterEvents(device: Device, _events: c_ulonglong, _set: *mut c_void) -> Return {
    code(device.index().map(drop))
}

/// Nothing to free.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlEventSetFree(_set: *mut c_void) -> Return {
    Return::Success
}

/// An XID that this process has not been given yet. It never waits.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlEventSetWait_v2(_set: *mut c_void, event: Out<EventData>, _milliseconds: c_uint) -> Return {
    code(next_xid().and_then(|(device, xid)| {
        put(
            event,
            EventData {
                device,
                kind: XID_EVENT,
                data: xid,
                gpu_instance_id: 0,
                compute_instance_id: 0,
            },
        )
    }))
}

fn next_xid() -> Result<(Device, u64), Return> {
    let mut reported = REPORTED.lock().unwrap_or_else(PoisonError::into_inner);
    for index in 0..crate::system::config()?.gpus {
        let Some(xid) = Faults::of(index).xid else {
            reported.remove(&index);
            continue;
        };
        if reported.insert(index, xid) != Some(xid) {
            return Ok((Device::at(index)?, xid));
        }
    }
    Err(Return::Timeout)
}

/// Memory (MiB) that something else holds.
pub(crate) fn used_mib(index: c_uint) -> u64 {
    if Faults::of(index).shared { 2048 } else { 0 }
}
