//! Statistics over many nodes, and the order in which nodes are measured. Pure: no client, no clock.
//!
//! All comparisons are between logarithms of speeds within one stratum: nodes with the same environment digest. Start with
//! [`findings::assess`].

pub mod baseline;
pub mod baselines;
pub mod calibration;
mod candidate;
pub mod centre;
mod comparison;
mod condition;
pub mod detectable;
pub mod discovery;
mod evidence;
pub mod findings;
mod first_runs;
pub mod margin;
pub mod measurement;
pub mod node;
pub mod numbers;
pub mod past;
pub mod peers;
pub mod policy;
pub mod prior;
pub mod reading;
mod running;
pub mod scale;
mod shared;
pub mod shift;
mod strata;
pub mod tail;
