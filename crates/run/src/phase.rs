//! One file a phase: what it checks, what it does, when it ends.

pub(crate) mod benchmarking;
pub(crate) mod cleaning_up;
pub(crate) mod completed;
pub(crate) mod deploying;
pub(crate) mod evaluating;
pub(crate) mod mixed_allocation;
mod pending;
pub(crate) mod sizing;
mod suspended;
pub(crate) mod waiting_for_ready;

use perfval_api::Phase;

use crate::pass::{Pass, Step};

/// Runs the current phase's code.
pub(crate) fn step(pass: &mut Pass<'_>, current: Phase) -> Step {
    match current {
        Phase::Pending => pending::step(pass),
        Phase::Sizing => sizing::step(pass),
        Phase::Deploying => deploying::step(pass),
        Phase::WaitingForReady => waiting_for_ready::step(pass),
        Phase::Benchmarking => benchmarking::step(pass),
        Phase::Evaluating => evaluating::step(pass),
        Phase::CleaningUp => cleaning_up::step(pass),
        Phase::Completed => completed::step(pass),
        Phase::Suspended => suspended::step(pass),
    }
}
