//! What the operator decides.
//!
//! Pure: no client, no runtime, no clock. [`machine::decide`] takes the object, what was seen of the cluster and the
//! time, and answers with the next status and the effects to carry out. Nothing here can touch the world.

pub mod aiperf;
pub mod build;
pub mod conclusion;
pub mod decision;
pub mod diagnosis;
pub mod environment;
pub mod frame;
pub mod gate;
mod history;
pub mod inventory;
pub mod job;
pub mod judge;
pub mod line;
pub mod machine;
pub mod names;
pub mod observed;
mod pass;
mod phase;
pub mod quantity;
pub mod readiness;
pub mod resource_api;
pub mod run;
pub mod seen;
pub mod settings;
pub mod sizing;
pub mod status;
mod sweep;
pub mod time;
pub mod trial;
pub mod trials;
pub mod version;
pub mod workers;

pub use decision::{Decision, Effect, Notice};
pub use observed::{Needs, Observed};
pub use run::Run;
pub use seen::Seen;
pub use settings::Settings;
