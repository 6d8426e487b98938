//! One file a phase: its reads, its step, its limit, and its message after the limit.

mod benchmarking;
mod cleaning_up;
mod completed;
mod definition;
mod deploying;
pub(crate) mod evaluating;
pub(crate) mod mixed_allocation;
mod pending;
mod signs;
mod sizing;
mod suspended;
mod waiting_for_ready;

use perfval_api::{PerfValidationSpec, PerfValidationStatus, Phase};

pub(crate) use benchmarking::record_last_crash;
pub(crate) use completed::leave;
pub(crate) use definition::Definition;
pub use pending::not_allowed;
pub(crate) use sizing::seldom_looked_at;
pub(crate) use waiting_for_ready::after_completion;

use crate::attendance::Limit;
use crate::status;

/// The table of phases.
pub(crate) fn definition(phase: Phase) -> &'static Definition {
    match phase {
        Phase::Pending => &pending::PHASE,
        Phase::Sizing => &sizing::PHASE,
        Phase::Deploying => &deploying::PHASE,
        Phase::WaitingForReady => &waiting_for_ready::PHASE,
        Phase::Benchmarking => &benchmarking::PHASE,
        Phase::Evaluating => &evaluating::PHASE,
        Phase::CleaningUp => &cleaning_up::PHASE,
        Phase::Completed => &completed::PHASE,
        Phase::Suspended => &suspended::PHASE,
    }
}

/// The limit of the wait that a run is in.
pub(crate) fn limit(spec: &PerfValidationSpec, status: &PerfValidationStatus) -> Option<Limit> {
    let timed = definition(status.phase?).timed.as_ref()?;
    (timed.limit)(spec, status, status::phase_started_at(status)?)
}
