//! What explains an outcome: causes found in pods, events and samples, each with its evidence and its remedy.

pub mod cause;
pub mod pods;
pub mod trial;
