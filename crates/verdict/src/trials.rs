//! From trials to a verdict.
//!
//! `Sequential` is Wald's sequential probability ratio test on pass/miss: after each trial the likelihood of a healthy
//! deployment is weighed against that of a degraded one, and the run ends as soon as either is clear. Near a gate on an
//! average a second one, on the distance from it, has to agree ([`averages`]). What a pass rules out is a [`Claim`].

pub mod averages;
mod claim;
mod failing;
mod finished;
mod noise;
mod of_a_run;
mod path;
mod rule;
mod wald;

pub use claim::{Claim, claim};
pub use finished::{Finished, NEAR, finished};
pub use noise::EARLIER_RUNS;
pub use of_a_run::{mean_near_gate, ruling, soak_is_next};
pub use path::{Path, PathStep, path};
pub use rule::rule;
pub use wald::{DEGRADED_PASS_RATE, HEALTHY_PASS_RATE, Ruling};
