//! Share of right verdicts: recorded runs of others, and runs of the lab under every fault, judged by the operator's
//! own code next to what one trial with a plain gate says.

mod alone;
pub mod corpus;
pub mod correlation;
pub mod fault;
mod forced;
mod frontend;
mod goals;
pub mod lab_run;
pub mod load;
pub mod matrix;
pub mod page;
pub mod published;
mod recorded;
pub mod rejudged;
pub mod setting;
mod silicon;
pub mod simulated;
mod trials;
pub mod whole;
