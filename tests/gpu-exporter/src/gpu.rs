//! Values that NVML reports for one GPU. Values that a driver or a product does not know are left out.

use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::{Clock, EccCounter, MemoryError, PerformancePolicy, TemperatureSensor};
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::sys_exports::field_id;

/// Names without `DCGM_FI_DEV_`, with their values.
pub type Values = Vec<(&'static str, f64)>;

/// The names of the values that NVML gives by number.
const FIELDS: [(&str, u32); 9] = [
    ("MEMORY_TEMP", field_id::NVML_FI_DEV_MEMORY_TEMP),
    ("UNCORRECTABLE_REMAPPED_ROWS", field_id::NVML_FI_DEV_REMAPPED_UNC),
    ("CORRECTABLE_REMAPPED_ROWS", field_id::NVML_FI_DEV_REMAPPED_COR),
    ("ROW_REMAP_FAILURE", field_id::NVML_FI_DEV_REMAPPED_FAILURE),
    ("ROW_REMAP_PENDING", field_id::NVML_FI_DEV_REMAPPED_PENDING),
    (
        "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
        field_id::NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL,
    ),
    (
        "NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
        field_id::NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL,
    ),
    (
        "NVLINK_REPLAY_ERROR_COUNT_TOTAL",
        field_id::NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL,
    ),
    (
        "NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
        field_id::NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL,
    ),
];

const MIB: f64 = 1024.0 * 1024.0;

/// Everything that is known of a GPU now, but for its XIDs.
pub fn read(device: &Device<'_>) -> Values {
    let mut values = Values::new();
    let mut add = |name, value: Option<f64>| values.extend(value.map(|value| (name, value)));
    let number = |value: Option<u32>| value.map(f64::from);
    add("SM_CLOCK", number(device.clock_info(Clock::SM).ok()));
    add("MEM_CLOCK", number(device.clock_info(Clock::Memory).ok()));
    add("GPU_TEMP", number(device.temperature(TemperatureSensor::Gpu).ok()));
    add(
        "POWER_USAGE",
        number(device.power_usage().ok()).map(|milliwatts| milliwatts / 1000.0),
    );
    add("PCIE_REPLAY_COUNTER", number(device.pcie_replay_counter().ok()));
    add("PCIE_LINK_GEN", number(device.current_pcie_link_gen().ok()));
    add("PCIE_LINK_WIDTH", number(device.current_pcie_link_width().ok()));
    let busy = device.utilization_rates().ok();
    add("GPU_UTIL", busy.as_ref().map(|busy| f64::from(busy.gpu)));
    add("MEM_COPY_UTIL", busy.as_ref().map(|busy| f64::from(busy.memory)));
    let reasons = device.current_throttle_reasons().ok();
    add("CLOCKS_EVENT_REASONS", reasons.map(|reasons| large(reasons.bits())));
    let memory = device.memory_info().ok();
    add(
        "FB_USED",
        memory.as_ref().map(|memory| (large(memory.used) / MIB).round()),
    );
    add(
        "FB_FREE",
        memory.as_ref().map(|memory| (large(memory.free) / MIB).round()),
    );
    for (name, kind) in [
        ("ECC_DBE_VOL_TOTAL", MemoryError::Uncorrected),
        ("ECC_SBE_VOL_TOTAL", MemoryError::Corrected),
    ] {
        let count = device.total_ecc_errors(kind, EccCounter::Volatile).ok();
        add(name, count.map(large));
    }
    for (name, policy) in [
        ("POWER_VIOLATION", PerformancePolicy::Power),
        ("THERMAL_VIOLATION", PerformancePolicy::Thermal),
        ("BOARD_LIMIT_VIOLATION", PerformancePolicy::BoardLimit),
        ("RELIABILITY_VIOLATION", PerformancePolicy::Reliability),
    ] {
        let held = device.violation_status(policy).ok();
        add(name, held.map(|held| large(held.violation_time)));
    }
    let fields = FIELDS.map(|(_, id)| FieldId(id));
    let samples = device.field_values_for(&fields).unwrap_or_default();
    for ((name, _), sample) in FIELDS.iter().zip(samples) {
        let value = sample.ok().and_then(|sample| sample.value.ok());
        add(name, value.as_ref().map(as_number));
    }
    values
}

fn as_number(value: &SampleValue) -> f64 {
    match *value {
        SampleValue::F64(number) => number,
        SampleValue::U32(number) => number.into(),
        SampleValue::U64(number) => large(number),
        SampleValue::I64(number) => large(number.unsigned_abs()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "the page's numbers are floating-point too")]
fn large(number: u64) -> f64 {
    number as f64
}
