//! The first half of a pass: observe → decide, until the decision lacks no read.

use perfval_run::{Decision, Needs, Observed, Run, machine};

use crate::context::Context;

/// Times that a decision may request further reads.
const MORE: usize = 4;

/// Reads with which a pass begins.
pub(crate) fn needs(run: &Run<'_>, context: &Context) -> Needs {
    if context.cluster.has_completion(run) {
        machine::needs_with_completion(run)
    } else {
        machine::needs(run)
    }
}

/// Reads what a pass needs, and decides.
pub(crate) async fn decide(run: &Run<'_>, needs: &Needs, context: &Context) -> (Observed, Decision) {
    let cluster = &context.cluster;
    let mut seen = cluster.observe(run, needs).await;
    seen.looked_before = context.looks.last(run);
    let mut decision = machine::decide(run, &seen, cluster.now());
    // Copies may be old: a pass that acts on them reads everything again.
    if seen.rests_on_copies && !decision.may_rest_on_copies(run.status()) {
        cluster.observe_again(run, needs, &mut seen).await;
        decision = machine::decide(run, &seen, cluster.now());
    }
    // Each adds a part that was not read.
    for _ in 0..MORE {
        if decision.reads.is_empty() {
            break;
        }
        cluster.observe_more(run, &decision.reads, &mut seen).await;
        decision = machine::decide(run, &seen, cluster.now());
    }
    (seen, decision)
}
