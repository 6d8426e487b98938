//! What explains a trial: causes found in AIPerf's export and the workers' samples, each with its evidence and its remedy.

pub mod cause;
pub mod peers;
pub mod trial;
