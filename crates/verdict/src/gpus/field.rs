use serde::{Deserialize, Serialize};

/// Declares the fields of a GPU, with the series that hold them and the factor to the whole unit.
macro_rules! fields {
    ($($(#[doc = $doc:literal])+ $name:ident: [$($series:literal),+] * $factor:literal;)+) => {
        /// Fields that are read of a GPU. Recordings depend on the order: from the first release on a new field
        /// goes to the end.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Field { $($(#[doc = $doc])+ $name,)+ }

        impl Field {
            /// All, in their order.
            pub const ALL: [Self; [$(stringify!($name)),+].len()] = [$(Self::$name,)+];

            /// The field of a series, and what its value is multiplied by.
            pub(super) fn from_series(name: &str) -> Option<(Self, f64)> {
                match name {
                    $($($series)|+ => Some((Self::$name, $factor)),)+
                    _ => None,
                }
            }
        }
    };
}

// A default installation exports only a part: no throttle reasons, no violations, no PCIe link, no ECC
// (etc/default-counters.csv and dcp-metrics-included.csv of NVIDIA/dcgm-exporter).
fields! {
    /// Clock of the multiprocessors (MHz).
    SmClock: ["DCGM_FI_DEV_SM_CLOCK"] * 1.0;
    /// Clock of the memory (MHz).
    MemoryClock: ["DCGM_FI_DEV_MEM_CLOCK"] * 1.0;
    /// Reasons why the clocks are not higher: NVML's bit mask.
    Reasons: ["DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"] * 1.0;
    /// Power (mW).
    Power: ["DCGM_FI_DEV_POWER_USAGE"] * 1000.0;
    /// Temperature of the GPU (°C).
    Temperature: ["DCGM_FI_DEV_GPU_TEMP"] * 1.0;
    /// Part of the time in which any kernel ran (percent).
    Utilisation: ["DCGM_FI_DEV_GPU_UTIL"] * 1.0;
    /// Memory in use (MiB).
    MemoryUsed: ["DCGM_FI_DEV_FB_USED"] * 1.0;
    /// The last XID error; 0: none.
    Xid: ["DCGM_FI_DEV_XID_ERRORS"] * 1.0;
    /// Double-bit ECC errors since the driver was loaded.
    DoubleBitErrors: ["DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"] * 1.0;
    /// Rows of memory that were replaced after uncorrectable errors.
    RemappedRows: ["DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"] * 1.0;
    /// 1: a row could not be replaced.
    RemapFailure: ["DCGM_FI_DEV_ROW_REMAP_FAILURE"] * 1.0;
    /// Packets that PCIe sent again.
    PcieReplays: ["DCGM_FI_DEV_PCIE_REPLAY_COUNTER"] * 1.0;
    /// Generation at which the PCIe link runs.
    PcieGeneration: ["DCGM_FI_DEV_PCIE_LINK_GEN"] * 1.0;
    /// Lanes on which the PCIe link runs.
    PcieWidth: ["DCGM_FI_DEV_PCIE_LINK_WIDTH"] * 1.0;
    /// Flits with a wrong checksum on all NVLinks.
    NvlinkFlitErrors: ["DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"] * 1.0;
    /// Data with a wrong checksum on all NVLinks.
    NvlinkDataErrors: ["DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL"] * 1.0;
    /// Packets that all NVLinks sent again.
    NvlinkReplays: ["DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"] * 1.0;
    /// Times that NVLinks were trained again.
    NvlinkRecoveries: ["DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"] * 1.0;
    /// Time with clocks held down for heat (ns; some versions of the exporter have µs in their help text and mean
    /// ns).
    ThermalViolation: ["DCGM_FI_DEV_THERMAL_VIOLATION"] * 1.0;
    /// Time with clocks held down for the board's limits (ns).
    BoardLimitViolation: ["DCGM_FI_DEV_BOARD_LIMIT_VIOLATION"] * 1.0;
    /// Time with clocks held down for reliability (ns).
    ReliabilityViolation: ["DCGM_FI_DEV_RELIABILITY_VIOLATION"] * 1.0;
    /// Part of the time in which the graphics or compute engine was active (percent).
    EngineActive: ["DCGM_FI_PROF_GR_ENGINE_ACTIVE"] * 100.0;
}

const FIELDS: usize = Field::ALL.len();

/// Fields of one GPU on one page; a JSON array in the order of [`Field`], without the `null`s at its end.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(from = "Values", into = "Vec<Option<i64>>")]
pub struct GpuReading([Option<i64>; FIELDS]);

/// A reading as it is written.
#[derive(Deserialize)]
struct Values(#[serde(deserialize_with = "crate::number::bounded")] Vec<Option<i64>>);

impl GpuReading {
    /// A value, where it is known.
    pub fn get(&self, field: Field) -> Option<i64> {
        self.0[field as usize]
    }

    /// Puts a value in.
    pub fn set(&mut self, field: Field, value: i64) {
        self.0[field as usize] = Some(value);
    }

    /// Part of the time in which the GPU was busy (percent), from the first series that has it.
    pub fn busy_percent(&self) -> Option<i64> {
        self.get(Field::Utilisation).or(self.get(Field::EngineActive))
    }
}

impl From<Values> for GpuReading {
    /// More values are those of a later version.
    fn from(Values(values): Values) -> Self {
        let mut reading = Self::default();
        for (slot, value) in reading.0.iter_mut().zip(values) {
            *slot = value;
        }
        reading
    }
}

impl From<GpuReading> for Vec<Option<i64>> {
    fn from(reading: GpuReading) -> Self {
        let known = reading.0.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        reading.0[..known].to_vec()
    }
}
