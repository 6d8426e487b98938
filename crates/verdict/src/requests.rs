//! Times of single requests, by AIPerf's own record of each: `profile_export.jsonl`.
//!
//! They judge nothing, they are drawn: AIPerf's export has their quantiles over the whole trial only, and a stall of a few
//! seconds is not seen in them. However many there are, a trial keeps a few kilobytes of them.

mod bins;
mod line;
mod sketch;
mod times;

pub(crate) use times::if_understood;
pub use times::{CdfPoint, Distribution, Quantiles, RequestTimes};
