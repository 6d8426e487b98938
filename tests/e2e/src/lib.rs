//! What the end-to-end tests and the demo share: the lab, an installed operator, one validation, the proof that nothing
//! is left, and the audit log.

mod audit;
pub mod documentation;
mod draw;
pub mod dynamo;
pub mod failures;
mod holder;
mod install;
mod lab;
mod leftovers;
pub mod oracle;
pub mod process;
pub mod rbac;
mod ready;
mod relay;
pub mod release;
pub mod soak;
mod spec;
pub mod takeover;
pub mod tls;
mod validation;
mod webhook;
pub mod worlds;

pub use audit::{Audit, AuditTail, Call, OPERATOR, Reactions};
pub use holder::Holder;
pub use install::{Operator, OutOfCluster};
pub use lab::{Lab, eventually};
pub use leftovers::{Gpus, leftovers, leftovers_of_all};
pub use ready::{DRA_PLUGIN, NODE, TAINT, config, ready};
pub use relay::Relay;
pub use spec::quick;
pub use validation::Validation;
pub use webhook::{Creation, Webhook};
