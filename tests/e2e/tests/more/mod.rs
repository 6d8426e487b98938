//! Tests that take long: maintainers run them by `just e2e-all`.

pub mod edits;
pub mod model_cache;
pub mod node_cpu;
pub mod outage;
pub mod pipelines;
pub mod preemption;
pub mod readiness;
pub mod round_robin;
pub mod several_gpus;
pub mod sharing;
pub mod soak;
pub mod telemetry;
pub mod tenant;
