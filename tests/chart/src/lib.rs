//! Two ways to install the operator, one truth: the chart's files that are made from others, and what tests need to render
//! the chart and the folders under `config/`.

pub mod files;
pub mod object;
pub mod render;
pub mod values;
