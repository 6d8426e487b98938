//! Suspended: the next run waits for `spec.suspend: false`.

use perfval_api::{Phase, Trigger};

use super::definition::Definition;
use crate::observed::Needs;
use crate::pass::{Pass, Step};

pub(super) const PHASE: Definition = Definition {
    needs: |_| Needs::default(),
    step,
    timed: None,
};

fn step(pass: &mut Pass<'_>) -> Step {
    if pass.run.is_deleting() {
        return super::completed::leave(pass);
    }
    if pass.run.spec().suspend {
        return Step::Rest;
    }
    debug_assert_eq!(pass.status.phase, Some(Phase::Suspended));
    Step::Begin(if pass.status.run.is_some() {
        Trigger::Resumed
    } else {
        Trigger::Created
    })
}
