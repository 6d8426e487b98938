//! The API group of Dynamic Resource Allocation. Kubernetes serves `v1` from 1.34 on.

/// The API group.
pub const GROUP: &str = "resource.k8s.io";
/// The version that we read.
pub const VERSION: &str = "v1";
