//! The life of one run.
//!
//! Pure: no client, no runtime, no clock. [`machine::decide`] takes the object, the observation of the cluster and
//! the time, and returns the next status and the effects to carry out. Nothing here can touch the world.

mod attendance;
pub mod build;
pub mod decision;
pub mod diagnosis;
pub mod dynamo;
mod edit;
mod ending;
mod interruption;
pub mod job;
pub mod machine;
pub mod names;
mod norms;
pub mod observed;
pub mod obstacle;
mod pass;
mod patience;
mod phase;
pub mod preemption;
pub mod progress;
pub mod queue;
pub mod readiness;
pub mod run;
pub mod secret;
pub mod settings;
pub mod status;
pub mod strays;
pub mod teardown;
mod telemetry;
pub mod time;

pub use decision::{Decision, Effect, Event};
pub use observed::{Needs, Observed};
pub use phase::not_allowed;
pub use run::Run;
pub use settings::Settings;
