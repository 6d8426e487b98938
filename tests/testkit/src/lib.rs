//! Builders and test equipment without a cluster: for tests only.

pub mod admission;
pub mod api_server;
pub mod environment;
pub mod fuzz;
pub mod golden;
pub mod inventory;
pub mod memory;
pub mod odds;
pub mod random;
pub mod stored;
pub mod trial;
pub mod world;
