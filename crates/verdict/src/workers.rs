//! What the workers did during a trial, from their own metrics: the frontend has no per-worker in-flight gauge under
//! least-loaded routing.

mod drift;
mod measured;
mod pace;
mod series;
mod stillness;
mod summary;

pub use drift::Drift;
pub use pace::{Pace, Unit};
pub use series::{Reading, Sample, Scrape, Silence, WorkerSeries};
pub use summary::{WorkerSummary, summarize};
