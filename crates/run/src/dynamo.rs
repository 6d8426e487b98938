//! Everything specific to Dynamo: its deployment and the deployment's status, its versions and the texts of its logs. The
//! names that it gives are in [`crate::names::dynamo`]. A second back end gets a folder like this one.

pub mod compatibility;
mod deployment;
pub mod log;
pub mod reported;
pub mod version;

pub use deployment::deployment;
