//! The page, as NVIDIA's exporter writes it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::{Device, EventSet, Nvml};

use crate::gpu;

/// The GPUs of a driver.
pub struct Gpus<'nvml> {
    nvml: &'nvml Nvml,
    hostname: String,
    /// Reports XIDs; absent where the driver has no events.
    events: Option<EventSet<'nvml>>,
    /// The last XID of each GPU, by its index.
    xids: BTreeMap<u32, u64>,
}

impl<'nvml> Gpus<'nvml> {
    /// Those that the driver counts now. XIDs are known from now on.
    pub fn of(nvml: &'nvml Nvml, hostname: &str) -> Self {
        Self {
            nvml,
            hostname: hostname.to_owned(),
            events: listen(nvml),
            xids: BTreeMap::new(),
        }
    }

    /// All metrics, read now.
    pub fn page(&mut self) -> String {
        self.take_events();
        // By name, as on the exporter's page; NVML is asked GPU by GPU.
        let mut series: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for device in devices(self.nvml) {
            let Some((index, labels)) = self.labels(&device) else {
                continue;
            };
            let mut values = gpu::read(&device);
            if self.events.is_some() {
                let xid = self.xids.get(&index).copied().unwrap_or_default();
                values.push(("XID_ERRORS", f64::from(u32::try_from(xid).unwrap_or(u32::MAX))));
            }
            for (name, value) in values {
                let line = format!("DCGM_FI_DEV_{name}{{{labels}}} {value}\n");
                series.entry(name).or_default().push(line);
            }
        }
        let mut page = String::new();
        for (name, lines) in series {
            let _ = write!(page, "# TYPE DCGM_FI_DEV_{name} gauge\n{}", lines.concat()); // a String takes every write
        }
        page
    }

    fn labels(&self, device: &Device<'_>) -> Option<(u32, String)> {
        let (index, uuid) = (device.index().ok()?, device.uuid().ok()?);
        let (model, host) = (device.name().unwrap_or_default(), &self.hostname);
        let labels = format!(
            "gpu=\"{index}\",UUID=\"{uuid}\",device=\"nvidia{index}\",modelName=\"{model}\",Hostname=\"{host}\""
        );
        Some((index, labels))
    }

    /// Takes the events that came since the last page; it does not wait for any.
    fn take_events(&mut self) {
        let Some(events) = &self.events else { return };
        while let Ok(event) = events.wait(0) {
            let xid = match event.event_data {
                Some(XidError::Value(xid)) => xid,
                Some(XidError::Unknown) | None => continue,
            };
            if let Ok(index) = event.device.index() {
                self.xids.insert(index, xid);
            }
        }
    }
}

fn devices(nvml: &Nvml) -> impl Iterator<Item = Device<'_>> {
    let count = nvml.device_count().unwrap_or_default();
    (0..count).filter_map(|index| nvml.device_by_index(index).ok())
}

fn listen(nvml: &Nvml) -> Option<EventSet<'_>> {
    let mut set = nvml.create_event_set().ok()?;
    for device in devices(nvml) {
        // A set that could not take a device is released by the wrapper.
        set = device.register_events(EventTypes::CRITICAL_XID_ERROR, set).ok()?;
    }
    Some(set)
}
