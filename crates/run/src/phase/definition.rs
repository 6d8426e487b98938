//! Parts that the machine needs of a phase.

use std::time::Duration;

use chrono::{DateTime, Utc};
use perfval_api::{PerfValidationSpec, PerfValidationStatus, Reason, Verdict, Why};

use crate::attendance::Limit;
use crate::observed::Needs;
use crate::pass::{Pass, Step};
use crate::run::Run;

/// Creating four objects, and writing one ConfigMap: seconds. The API server's own retries fit in.
pub(super) const QUICK: Duration = Duration::from_mins(2);

/// A phase: each defines one in its file.
pub(crate) struct Definition {
    /// Its reads.
    pub(crate) needs: fn(&Run<'_>) -> Needs,
    /// Its step in one pass.
    pub(crate) step: fn(&mut Pass<'_>) -> Step,
    /// Longest time that it may wait; `None` for phases that wait for the user.
    pub(crate) timed: Option<Timed>,
}

/// The time limit of a phase.
pub(crate) struct Timed {
    /// The limit of the current wait, of a phase that began at this time; `None` while it waits without one.
    pub(crate) limit: fn(&PerfValidationSpec, &PerfValidationStatus, DateTime<Utc>) -> Option<Limit>,
    /// Step after a wait that has lasted too long.
    pub(crate) expired: fn(&mut Pass<'_>, &Why) -> Step,
}

/// The end of a run that waited too long: what it waited for, what kept the operator from acting, which limit to raise.
pub(super) fn give_up(pass: &Pass<'_>, reason: Reason, why: &Why, limit: &str) -> Step {
    let blocked = pass.status.state.blocked.as_ref().map_or(String::new(), |blocked| {
        format!("; {}: {}", blocked.reason, blocked.message)
    });
    // Progress is no reason for an end.
    let reason = match reason {
        Reason::Running => Reason::DeadlineExceeded,
        reason => reason,
    };
    let message = format!("{}{blocked} (gave up: {limit} passed)", why.message);
    Step::End(Verdict::Error, Why::new(reason, message))
}
