//! Text of the cause of an error, without secrets.

pub use perfval_cluster::cause::{WRONG_TOKEN, fault, innermost, without_secrets};
