//! Everything specific to Dynamo: its deployment and the deployment's status, its versions, the texts of its logs,
//! and the names that it gives. A second back end gets a folder like this one.

pub mod compatibility;
mod deployment;
pub mod log;
pub mod names;
pub mod reported;
pub mod version;

pub use deployment::deployment;
