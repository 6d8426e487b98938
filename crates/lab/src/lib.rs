//! Test equipment: a real Kubernetes cluster on a bare Linux machine, without GPUs, Docker, systemd or internet.
//!
//! `lab up` builds the programs, makes one private namespace and starts everything in it under a supervisor;
//! `lab down` ends it without a trace. Nothing that ships depends on this crate.

pub mod cli;
pub mod driver_root;
pub mod dynamo;
pub mod error;
