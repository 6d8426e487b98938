//! Commands that the operator's program and the kubectl plug-in have in common. They decide nothing: `judge` uses the
//! code that judges a run, `size` the code that sizes it.

pub mod answer;
pub mod args;
pub mod input;
pub mod judge;
pub mod manifest;
pub mod size;
