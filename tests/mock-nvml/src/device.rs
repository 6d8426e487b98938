//! One simulated GPU: how it is found, and what it says of itself.

use std::ffi::{CStr, c_char, c_int, c_uint};

use crate::out::{Out, Return, code, put, put_text, text_field};
use crate::system::config;
use crate::telemetry::used_mib;

const MIB: u64 = 1024 * 1024;
/// `NVML_BRAND_NVIDIA`, what data centre GPUs report.
const BRAND_NVIDIA: c_uint = 14;
/// Device 2330, H100 SXM, vendor 10DE.
const PCI_DEVICE_ID: c_uint = 0x2330_10DE;
const PCI_SUBSYSTEM_ID: c_uint = 0x16C1_10DE;
/// `NVML_STRUCT_VERSION(Memory, 2)`: the size of the struct, with the version in the top byte.
const MEMORY_V2: c_uint = 0x28 | 2 << 24;
const _: () = assert!(size_of::<MemoryV2>() == 0x28);

/// `nvmlDevice_t`, opaque to the caller: the index plus one, so that null is no device.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Device(usize);

impl Device {
    pub(crate) fn at(index: c_uint) -> Result<Self, Return> {
        if index >= config()?.gpus {
            return Err(Return::InvalidArgument);
        }
        usize::try_from(index)
            .map(|index| Self(index + 1))
            .map_err(|_| Return::InvalidArgument)
    }

    fn find(says: impl Fn(c_uint) -> bool) -> Result<Self, Return> {
        (0..config()?.gpus)
            .find(|index| says(*index))
            .map_or(Err(Return::NotFound), Self::at)
    }

    pub(crate) fn index(self) -> Result<c_uint, Return> {
        let index = self.0.checked_sub(1).and_then(|index| c_uint::try_from(index).ok());
        let gpus = config()?.gpus;
        index.filter(|index| *index < gpus).ok_or(Return::InvalidArgument)
    }
}

/// Minor number of a GPU.
fn minor_number(index: c_uint) -> Result<c_uint, Return> {
    Ok(config()?.first + index)
}

/// Stable per minor number, in the form of a real one.
fn uuid(index: c_uint) -> Result<String, Return> {
    Ok(format!("GPU-10de2330-0000-4000-8000-{:012x}", minor_number(index)?))
}

/// Each GPU sits alone on its bus, from bus 1 on.
fn bus(index: c_uint) -> c_uint {
    index + 1
}

fn bus_id(index: c_uint) -> String {
    format!("00000000:{:02X}:00.0", bus(index))
}

/// `nvmlPciInfo_t`
#[repr(C)]
#[derive(Debug)]
pub struct PciInfo {
    /// Bus id with a domain of four digits.
    pub bus_id_legacy: [u8; 16],
    /// PCI domain.
    pub domain: c_uint,
    /// PCI bus.
    pub bus: c_uint,
    /// Device on the bus.
    pub device: c_uint,
    /// Device id in the high half, vendor id in the low half.
    pub pci_device_id: c_uint,
    /// Subsystem id.
    pub pci_subsystem_id: c_uint,
    /// Bus id with a domain of eight digits.
    pub bus_id: [u8; 32],
}

/// `nvmlMemory_t`, bytes.
#[repr(C)]
pub struct Memory {
    /// All there is.
    pub total: u64,
    /// Not allocated.
    pub free: u64,
    /// Allocated.
    pub used: u64,
}

/// `nvmlMemory_v2_t`, bytes.
#[repr(C)]
pub struct MemoryV2 {
    /// Set by the caller: size of the struct | 2 << 24.
    pub version: c_uint,
    /// All there is.
    pub total: u64,
    /// Kept by the driver.
    pub reserved: u64,
    /// Not allocated.
    pub free: u64,
    /// Allocated.
    pub used: u64,
}

/// How many GPUs the node has.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetCount_v2(count: Out<c_uint>) -> Return {
    code(config().and_then(|config| put(count, config.gpus)))
}

/// The GPU with this index.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: Out<Device>) -> Return {
    code(Device::at(index).and_then(|found| put(device, found)))
}

/// The GPU with this UUID, `GPU-…`.
///
/// # Safety
/// `wanted` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByUUID(wanted: *const c_char, device: Out<Device>) -> Return {
    // SAFETY: the caller's promise above.
    let wanted = unsafe { c_string(wanted) };
    code(wanted.and_then(|wanted| {
        put(
            device,
            Device::find(|index| uuid(index).is_ok_and(|uuid| uuid.as_bytes() == wanted.to_bytes()))?,
        )
    }))
}

/// The GPU at this PCI address; a domain of four or eight digits is understood.
///
/// # Safety
/// `wanted` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByPciBusId_v2(wanted: *const c_char, device: Out<Device>) -> Return {
    // SAFETY: the caller's promise above.
    let wanted = unsafe { c_string(wanted) };
    code(wanted.and_then(|wanted| {
        let wanted = wanted.to_bytes();
        let here = |index| {
            let id = bus_id(index);
            [&id[..], &id[4..]]
                .iter()
                .any(|id| id.as_bytes().eq_ignore_ascii_case(wanted))
        };
        put(device, Device::find(here)?)
    }))
}

unsafe fn c_string<'a>(text: *const c_char) -> Result<&'a CStr, Return> {
    if text.is_null() {
        return Err(Return::InvalidArgument);
    }
    // SAFETY: not null, and the caller promises a C string.
    Ok(unsafe { CStr::from_ptr(text) })
}

/// Index, as in the handle's making.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetIndex(device: Device, index: Out<c_uint>) -> Return {
    code(device.index().and_then(|own| put(index, own)))
}

/// N of `/dev/nvidiaN`: `first` + index.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMinorNumber(device: Device, minor: Out<c_uint>) -> Return {
    code(device.index().and_then(minor_number).and_then(|own| put(minor, own)))
}

/// UUID, stable per minor number.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetUUID(device: Device, text: *mut c_char, length: c_uint) -> Return {
    code(
        device
            .index()
            .and_then(uuid)
            .and_then(|own| put_text(text, length, &own)),
    )
}

/// Product name.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetName(device: Device, name: *mut c_char, length: c_uint) -> Return {
    code(device.index().and_then(|_| put_text(name, length, &config()?.product)))
}

/// Where the GPU sits on the PCI bus.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetPciInfo_v3(device: Device, pci: Out<PciInfo>) -> Return {
    code(device.index().and_then(|index| {
        let id = bus_id(index);
        let info = PciInfo {
            bus_id_legacy: text_field(&id[4..])?,
            domain: 0,
            bus: bus(index),
            device: 0,
            pci_device_id: PCI_DEVICE_ID,
            pci_subsystem_id: PCI_SUBSYSTEM_ID,
            bus_id: text_field(&id)?,
        };
        put(pci, info)
    }))
}

/// Memory in bytes, all of it free unless something else holds some.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMemoryInfo(device: Device, memory: Out<Memory>) -> Return {
    code(device.index().and_then(|index| {
        let (total, used) = (config()?.memory_mib * MIB, used_mib(index) * MIB);
        put(
            memory,
            Memory {
                total,
                free: total.saturating_sub(used),
                used,
            },
        )
    }))
}

/// Memory in bytes, all of it free unless something else holds some; the caller says which version of the struct it holds.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: Device, memory: Out<MemoryV2>) -> Return {
    code(device.index().and_then(|index| {
        let memory = memory.ok_or(Return::InvalidArgument)?;
        if memory.version != MEMORY_V2 {
            return Err(Return::ArgumentVersionMismatch);
        }
        let (total, used) = (config()?.memory_mib * MIB, used_mib(index) * MIB);
        *memory = MemoryV2 {
            version: MEMORY_V2,
            total,
            reserved: 0,
            free: total.saturating_sub(used),
            used,
        };
        Ok(())
    }))
}

/// `NVML_BRAND_NVIDIA`.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetBrand(device: Device, brand: Out<c_uint>) -> Return {
    answer(device, brand, BRAND_NVIDIA)
}

/// `NVML_DEVICE_ARCH_*`.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetArchitecture(device: Device, architecture: Out<c_uint>) -> Return {
    code(device.index().and_then(|_| put(architecture, config()?.architecture)))
}

/// CUDA compute capability.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetCudaComputeCapability(device: Device, major: Out<c_int>, minor: Out<c_int>) -> Return {
    code(device.index().and_then(|_| {
        let capability = config()?.compute_capability;
        let (major, minor) = major.zip(minor).ok_or(Return::InvalidArgument)?;
        (*major, *minor) = capability;
        Ok(())
    }))
}

/// MIG is off and stays off.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMigMode(device: Device, current: Out<c_uint>, pending: Out<c_uint>) -> Return {
    code(device.index().and_then(|_| {
        let (current, pending) = current.zip(pending).ok_or(Return::InvalidArgument)?;
        (*current, *pending) = (0, 0);
        Ok(())
    }))
}

/// No MIG devices.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMaxMigDeviceCount(device: Device, count: Out<c_uint>) -> Return {
    answer(device, count, 0)
}

/// A whole GPU. It must succeed: else the plugin fails with "failed to construct device spec generators".
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceIsMigDeviceHandle(device: Device, is_mig: Out<c_uint>) -> Return {
    answer(device, is_mig, 0)
}

/// Bare metal.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetVirtualizationMode(device: Device, mode: Out<c_uint>) -> Return {
    answer(device, mode, 0)
}

/// On.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetPersistenceMode(device: Device, mode: Out<c_uint>) -> Return {
    answer(device, mode, 1)
}

fn answer(device: Device, out: Out<c_uint>, value: c_uint) -> Return {
    code(device.index().and_then(|_| put(out, value)))
}
