//! Types of the resources: the specs that a user writes and the statuses that the operator reports.
//!
//! These types are the single source of the CRD, its defaults, its CEL rules and its documentation. This crate does not
//! communicate with a cluster.

#[cfg(feature = "admission")]
pub mod admission;
pub mod condition;
mod crd;
mod defaults;
mod enum_words;
mod field_defaults;
pub mod fleet;
mod metric;
mod reason;
mod rules;
mod spec;
mod status;

pub mod meta;
pub mod quantity;
pub mod text;

pub use crd::{UNSEEN, baseline_crd, crd, crds, policy_crd, printer_cell};
pub use metric::{GateOperator, Latency, Metric, MetricNoise, MetricSource, Statistic};
pub use reason::{Reason, Why, Word};
pub use spec::*;
pub use status::*;
