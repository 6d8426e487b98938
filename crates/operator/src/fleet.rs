//! Tasks of the leader about many nodes.

pub(crate) mod measured;
pub mod nodes;
