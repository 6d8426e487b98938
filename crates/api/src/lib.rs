//! The `PerfValidation` resource: what a user writes and what the operator answers.
//!
//! The types here are the single source of the CRD, its defaults, its CEL rules and its documentation.
//! Nothing in this crate talks to a cluster.

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
pub use reason::{Reason, Why};
pub use spec::*;
pub use status::*;
