//! Kinds about many nodes.

mod node_performance;

pub use node_performance::{
    GpuPerformance, NodePerformance, NodePerformanceSpec, NodePerformanceStatus, ValidationReference,
};
