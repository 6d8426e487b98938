//! Suspended: the next run waits for `spec.suspend: false`.

use perfval_api::Trigger;

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
        return super::completed::leave(pass.run);
    }
    if pass.run.spec().suspend {
        return Step::Rest;
    }
    // Also for the first run: it was requested now, and not when the object was created.
    Step::Begin(Trigger::Resumed)
}
