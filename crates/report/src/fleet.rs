//! Page about many nodes: how fast each of their GPUs is, which stand out, and which were never measured.
//!
//! Pure as the report of a run: the same objects at the same time give the same bytes.

mod data;
mod difference;
mod outliers;
mod page;

pub use data::FleetReport;
