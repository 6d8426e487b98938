//! Test equipment: a real Kubernetes cluster on a bare Linux machine, without GPUs, Docker, systemd or internet.
//!
//! `lab up` builds the programs, makes one private namespace and starts everything in it under a supervisor;
//! `lab down` ends it and removes its files. Nothing that ships depends on this crate.
//!
//! | to change | go to |
//! |---|---|
//! | commands | `cli` |
//! | the way up and down | `up`, `down`; who may take it down: `holder` |
//! | what is built beforehand, and beside what | `prepare` |
//! | which process gets which flags | `control_plane`, `node` |
//! | versions and builds of programs | `programs` and the folder `programs/` |
//! | starting, stopping, noticing deaths | `supervisor` |
//! | what is private to the lab | `namespace`, `cgroup` |
//! | faults on demand | `fault` |
//! | simulated driver | `driver_root` and the crate mock-nvml |
//! | container images | `images` and the folder `images/` |
//! | stand-in for Dynamo's operator | `dynamo` |

pub mod cgroup;
pub mod cli;
pub mod command;
pub mod control_plane;
pub mod down;
pub mod driver_root;
pub mod dynamo;
pub mod enter;
pub mod error;
pub mod fault;
pub mod holder;
pub mod images;
pub mod namespace;
pub mod node;
pub mod options;
pub mod packages;
pub mod paths;
pub mod pki;
pub mod prepare;
pub mod programs;
pub mod supervisor;
pub mod up;
