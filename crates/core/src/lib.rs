//! What the operator decides.
//!
//! Pure: no client, no runtime, no clock. [`machine::decide`] takes the object, what was seen of the cluster and the
//! time, and answers with the next status and the effects to carry out. Nothing here can touch the world.

pub mod build;
pub mod decision;
pub mod names;
pub mod observed;
pub mod run;
pub mod seen;
pub mod settings;
pub mod sizing;

pub use decision::{Decision, Effect, Notice};
pub use observed::{Needs, Observed};
pub use run::Run;
pub use seen::Seen;
pub use settings::Settings;
