//! The `PerfValidation` resource: what a user writes and what the operator answers.
//!
//! The types here are the single source of the CRD, its defaults, its CEL rules and its documentation.
//! Nothing in this crate talks to a cluster.

#[cfg(feature = "admission")]
pub mod admission;
mod crd;
mod metric;
mod reason;
mod rules;
mod spec;
mod status;

pub mod meta;

pub use crd::{crd, crd_yaml};
pub use metric::{Metric, Statistic};
pub use reason::Reason;
pub use spec::*;
pub use status::*;
