//! What explains a trial: causes found in AIPerf's export and the workers' samples, and what the node lacks, each with its evidence and its remedy.

pub mod cause;
pub mod missing;
pub mod peers;
pub mod trial;
