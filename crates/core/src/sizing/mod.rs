//! How many GPUs of which node are really free.

/// `placement.allocation` of a run that asks for GPUs by `ResourceClaim`s.
pub const DRA: &str = "DRA";
/// `placement.allocation` of a run that asks for a device plugin's extended resource.
pub const DEVICE_PLUGIN: &str = "DevicePlugin";
