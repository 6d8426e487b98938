//! Obstacles that keep a run from measuring: found in pods, events and logs, each with its evidence and its remedy.

pub mod blame;
mod claims;
mod containers;
pub mod ended;
pub mod error_logs;
pub mod log;
pub mod pods;
pub mod race;
pub mod rejection;
mod scheduling;
mod sign;
pub mod surroundings;
