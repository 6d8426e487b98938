//! Types of the `PerfValidation` resource: the spec that a user writes and the status that the operator reports.
//!
//! These types are the single source of the CRD, its defaults, its CEL rules and its documentation. This crate does not
//! communicate with a cluster.

#[cfg(feature = "admission")]
pub mod admission;
pub mod condition;
mod crd;
mod metric;
mod reason;
mod rules;
mod spec;
mod status;

pub mod meta;
pub mod quantity;
pub mod text;

pub use crd::{UNSEEN, crd, crd_yaml};
pub use metric::{GateOperator, Metric, Statistic};
pub use reason::{Help, Reason, Why};
pub use spec::*;
pub use status::*;
