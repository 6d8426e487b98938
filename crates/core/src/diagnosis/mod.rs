//! What explains an outcome: causes found in pods, events, logs and samples, each with its evidence and its remedy.

pub mod cause;
pub mod log;
pub mod missing;
pub mod obstacle;
pub mod peers;
pub mod pods;
pub mod race;
pub mod secret;
pub mod trial;
