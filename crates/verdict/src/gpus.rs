//! Telemetry of the node's GPUs during a trial, by the metrics of NVIDIA's DCGM exporter.
//!
//! Everything here is evidence in addition to the workers' own numbers. A metric that is not exported, not readable
//! or not possible is absent, and absent is never a fault.

pub mod dcgm;

mod field;
mod record;
mod recorder;
mod series;
mod summary;

pub use field::{Field, GpuReading};
pub use record::{GpuRecord, GpuSummary, Mark};
pub use recorder::Recorder;
pub use series::{GpuSample, GpuSeries};
pub use summary::summarize;
