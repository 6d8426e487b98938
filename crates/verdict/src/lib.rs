//! Meaning of a measurement.
//!
//! Pure: no client, no runtime, no clock. AIPerf's export and the samples of the workers become a judged trial,
//! trials become a verdict, with the causes that explain it. The operator, the runner and `judge` share it.

pub mod aiperf;
pub mod close;
pub mod conclusion;
pub mod diagnosis;
pub mod difference;
pub mod dynamo;
mod earlier;
pub mod environment;
mod exposition;
pub mod frame;
pub mod gate;
pub mod generator;
pub mod gpus;
pub mod history;
mod in_run;
pub mod judge;
pub mod node_cpu;
pub mod node_facts;
pub mod norms;
mod number;
pub mod progress;
mod quantile;
pub mod rejudge;
pub mod requests;
pub mod saved;
pub mod spec_digests;
mod stats;
pub mod trial;
pub mod trials;
pub mod workers;
