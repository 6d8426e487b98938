//! Without configuration the library is a node of eight H100s.

mod library;

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr;

use libloading::Library;
use library::{init, open, symbol};

type Device = *mut c_void;
type GetUint = extern "C" fn(Device, *mut c_uint) -> c_uint;
type GetText = extern "C" fn(Device, *mut c_char, c_uint) -> c_uint;
type Find = extern "C" fn(*const c_char, *mut Device) -> c_uint;

/// `nvmlPciInfo_t` as in `nvml.h`.
#[repr(C)]
struct PciInfo {
    bus_id_legacy: [c_char; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    pci_device_id: c_uint,
    pci_subsystem_id: c_uint,
    bus_id: [c_char; 32],
}

fn device(library: &Library, index: c_uint) -> Device {
    let mut device = ptr::null_mut();
    let by_index: extern "C" fn(c_uint, *mut Device) -> c_uint = *symbol(library, "nvmlDeviceGetHandleByIndex_v2");
    assert_eq!(by_index(index, &raw mut device), 0);
    device
}

fn number(library: &Library, name: &str, device: Device) -> c_uint {
    let mut value = 77;
    assert_eq!(symbol::<GetUint>(library, name)(device, &raw mut value), 0, "{name}");
    value
}

fn text(library: &Library, name: &str, device: Device) -> String {
    let mut buffer = [c_char::MAX; 96];
    assert_eq!(
        symbol::<GetText>(library, name)(device, buffer.as_mut_ptr(), 96),
        0,
        "{name}"
    );
    c_text(&buffer)
}

fn c_text(buffer: &[c_char]) -> String {
    // SAFETY: the calls that fill it end the text with NUL.
    unsafe { CStr::from_ptr(buffer.as_ptr()) }
        .to_str()
        .expect("UTF-8")
        .to_owned()
}

#[test]
fn every_symbol_go_nvml_binds_exists() {
    let library = open();
    let names: Vec<&str> = include_str!("../symbols.txt").lines().collect();
    assert_eq!(names.len(), 402);
    for name in names {
        symbol::<extern "C" fn() -> c_uint>(&library, name);
    }
}

#[test]
fn a_symbol_without_a_simulation_returns_not_supported() {
    let library = open();
    assert_eq!(init(&library), 0);
    for name in [
        "nvmlDeviceGetGpuInstanceProfileInfo",
        "nvmlDeviceGetAddressingMode",
        "nvmlUnitGetCount",
    ] {
        let call: extern "C" fn(Device, c_uint, *mut c_void) -> c_uint = *symbol(&library, name);
        assert_eq!(call(device(&library, 0), 0, ptr::null_mut()), 3, "{name}");
    }
}

#[test]
fn eight_h100s() {
    let library = open();
    assert_eq!(init(&library), 0);
    let mut count = 0;
    let get_count: extern "C" fn(*mut c_uint) -> c_uint = *symbol(&library, "nvmlDeviceGetCount_v2");
    assert_eq!((get_count(&raw mut count), count), (0, 8));

    for index in 0..8 {
        let device = device(&library, index);
        assert_eq!(number(&library, "nvmlDeviceGetIndex", device), index);
        assert_eq!(number(&library, "nvmlDeviceGetMinorNumber", device), index);
        assert_eq!(text(&library, "nvmlDeviceGetName", device), "NVIDIA H100 80GB HBM3");
        assert_eq!(
            text(&library, "nvmlDeviceGetUUID", device),
            format!("GPU-10de2330-0000-4000-8000-{index:012x}")
        );
        assert_eq!(number(&library, "nvmlDeviceGetBrand", device), 14);
        assert_eq!(number(&library, "nvmlDeviceGetArchitecture", device), 9);
        assert_eq!(number(&library, "nvmlDeviceGetPersistenceMode", device), 1);
        for zero in [
            "nvmlDeviceIsMigDeviceHandle",
            "nvmlDeviceGetVirtualizationMode",
            "nvmlDeviceGetMaxMigDeviceCount",
        ] {
            assert_eq!(number(&library, zero, device), 0, "{zero}");
        }
    }

    let past_the_end: extern "C" fn(c_uint, *mut Device) -> c_uint = *symbol(&library, "nvmlDeviceGetHandleByIndex_v2");
    assert_eq!(past_the_end(8, &mut ptr::null_mut()), 2);
    let not_a_handle = ptr::without_provenance_mut(4096);
    assert_eq!(
        symbol::<GetUint>(&library, "nvmlDeviceGetIndex")(not_a_handle, &raw mut count),
        2
    );
}

#[test]
fn memory_is_80_gib_in_both_layouts() {
    let library = open();
    assert_eq!(init(&library), 0);
    let device = device(&library, 3);
    let eighty_gib = 80 * 1024 * 1024 * 1024;

    let mut memory = [1_u64; 3];
    let v1: extern "C" fn(Device, *mut u64) -> c_uint = *symbol(&library, "nvmlDeviceGetMemoryInfo");
    assert_eq!(v1(device, memory.as_mut_ptr()), 0);
    assert_eq!(memory, [eighty_gib, eighty_gib, 0], "total, free, used");

    // version and its padding, then total, reserved, free, used
    let v2: extern "C" fn(Device, *mut u64) -> c_uint = *symbol(&library, "nvmlDeviceGetMemoryInfo_v2");
    let mut memory = [0x0200_0028, 1, 1, 1, 1];
    assert_eq!(v2(device, memory.as_mut_ptr()), 0);
    assert_eq!(memory[1..], [eighty_gib, 0, eighty_gib, 0]);
    assert_eq!(
        v2(device, [0, 1, 1, 1, 1].as_mut_ptr()),
        25,
        "a struct of another version"
    );
}

#[test]
fn found_again_by_uuid_and_by_bus_id() {
    let library = open();
    assert_eq!(init(&library), 0);
    let wanted = device(&library, 5);
    let pci_info: extern "C" fn(Device, *mut PciInfo) -> c_uint = *symbol(&library, "nvmlDeviceGetPciInfo_v3");
    // SAFETY: a plain struct of numbers.
    let mut pci: PciInfo = unsafe { std::mem::zeroed() };
    pci.bus_id = [c_char::MAX; 32];
    assert_eq!(pci_info(wanted, &raw mut pci), 0);
    assert_eq!((pci.domain, pci.bus, pci.device), (0, 6, 0));
    assert_eq!(pci.pci_device_id & 0xffff, 0x10de, "vendor");
    assert_eq!(
        (pci.pci_device_id >> 16, pci.pci_subsystem_id & 0xffff),
        (0x2330, 0x10de)
    );
    assert_eq!(c_text(&pci.bus_id), "00000000:06:00.0");
    assert_eq!(pci.bus_id[16..], [0; 16], "filled up to the struct's end");
    assert_eq!(c_text(&pci.bus_id_legacy), "0000:06:00.0");

    let uuid = text(&library, "nvmlDeviceGetUUID", wanted);
    let by_bus = "nvmlDeviceGetHandleByPciBusId_v2";
    let by_uuid = "nvmlDeviceGetHandleByUUID";
    for (by, name) in [
        (by_uuid, uuid.as_str()),
        (by_bus, "00000000:06:00.0"),
        (by_bus, "0000:06:00.0"),
    ] {
        let (mut found, name) = (ptr::null_mut(), CString::new(name).unwrap());
        assert_eq!(symbol::<Find>(&library, by)(name.as_ptr(), &raw mut found), 0, "{by}");
        assert_eq!(found, wanted, "{by}");
    }
    for by in [by_uuid, by_bus] {
        assert_eq!(
            symbol::<Find>(&library, by)(c"0000:77:00.0".as_ptr(), &mut ptr::null_mut()),
            6,
            "{by}"
        );
        assert_eq!(
            symbol::<Find>(&library, by)(ptr::null(), &mut ptr::null_mut()),
            2,
            "{by}"
        );
    }
}

#[test]
fn versions_and_capability() {
    let library = open();
    assert_eq!(init(&library), 0);
    let driver: extern "C" fn(*mut c_char, c_uint) -> c_uint = *symbol(&library, "nvmlSystemGetDriverVersion");
    let mut buffer = [c_char::MAX; 80];
    assert_eq!(driver(buffer.as_mut_ptr(), 80), 0);
    assert_eq!(c_text(&buffer), "580.82.07");
    assert_eq!(
        driver(buffer.as_mut_ptr(), 9),
        7,
        "nine characters and no room for the NUL"
    );

    let cuda: extern "C" fn(*mut c_int) -> c_uint = *symbol(&library, "nvmlSystemGetCudaDriverVersion_v2");
    let mut version = 0;
    assert_eq!((cuda(&raw mut version), version), (0, 13_000));

    let pair: extern "C" fn(Device, *mut c_int, *mut c_int) -> c_uint =
        *symbol(&library, "nvmlDeviceGetCudaComputeCapability");
    let (mut major, mut minor) = (77, 77);
    assert_eq!(pair(device(&library, 0), &raw mut major, &raw mut minor), 0);
    assert_eq!((major, minor), (9, 0));
    let mig: extern "C" fn(Device, *mut c_int, *mut c_int) -> c_uint = *symbol(&library, "nvmlDeviceGetMigMode");
    assert_eq!(mig(device(&library, 0), &raw mut major, &raw mut minor), 0);
    assert_eq!((major, minor), (0, 0), "MIG off, and nothing pending");

    let error: extern "C" fn(c_uint) -> *const c_char = *symbol(&library, "nvmlErrorString");
    // SAFETY: static texts.
    let texts = [3, 12345].map(|code| unsafe { CStr::from_ptr(error(code)) }.to_str().unwrap());
    assert_eq!(texts, ["Not Supported", "Unknown Error"]);
}
