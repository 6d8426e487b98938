//! Statistics over many nodes, and the order in which nodes are measured. Pure: no client, no clock.

pub mod measurement;
pub mod node;
mod running;
