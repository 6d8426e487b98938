//! Work of the workers during a trial, from their own metrics: the frontend has no per-worker in-flight gauge under
//! least-loaded routing.

mod drift;
mod measured;
mod pace;
mod series;
pub(crate) mod speed;
mod stillness;
mod summary;

pub use crate::number::MOST_PER_NODE;
pub use drift::Drift;
pub use measured::MeasuredPhase;
pub use pace::{Pace, Unit};
pub use series::{Engine, Reading, Sample, Scrape, Silence, WorkerSeries};
pub use speed::{AgainstPeers, WorkerSpeed};
pub use summary::{EngineWork, WorkerSummary, summarize};

/// Shortest standstill that is reported (s): the longest of a healthy worker on two busy cores was 1 s.
pub(crate) const STANDSTILL: i64 = 5;
