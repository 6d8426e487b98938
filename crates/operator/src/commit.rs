//! The second half of a pass, in steps: record → act → announce → report a blockade → remember → schedule.

use std::ops::ControlFlow;
use std::time::Duration;

use kube::api::ObjectMeta;
use kube::runtime::controller::Action;
use perfval_api::PerfValidation;
use perfval_cluster::{Class, Error, StatusWrite};
use perfval_run::{Decision, Run, teardown};
use tracing::warn;

use crate::blocked;
use crate::blocked::write::record_whether_blocked;
use crate::context::{Context, is_over};
use crate::decide;

/// Pause after a write of the operator; the watch brings it within milliseconds.
const SOON: Duration = Duration::from_millis(200);

/// Records a decision, then carries it out.
pub(crate) async fn commit(run: &Run<'_>, context: &Context, decision: &Decision) -> Result<Action, Error> {
    let written = match record(run, context, decision).await? {
        ControlFlow::Continue(written) => written,
        ControlFlow::Break(action) => return Ok(action),
    };
    // Later calls need the version that this write made.
    let current = Run::new(written.as_deref().unwrap_or(run.object), run.settings);
    let acted = context.cluster.act(&current, &decision.effects).await;
    announce(run, context, decision);
    record_whether_blocked(&current, context, acted.as_ref().err()).await;
    remember(&current, context, acted?);
    Ok(schedule(decision, written.is_some()))
}

/// Writes the status: the object as written, or nothing if the status did not change. A pass ends here if another client
/// wrote the object, or if the status of a leaving object cannot be written.
async fn record(
    run: &Run<'_>,
    context: &Context,
    decision: &Decision,
) -> Result<ControlFlow<Action, Option<Box<PerfValidation>>>, Error> {
    let recorded = context.cluster.record(run, &decision.status).await;
    let ends = !is_over(run.status()) && is_over(&decision.status);
    if ends && !matches!(recorded, Ok(StatusWrite::Written(_))) {
        // The answer may be lost, and the next pass finds the run over.
        context.measured.doubt();
    }
    match recorded {
        Ok(StatusWrite::Unchanged) => Ok(ControlFlow::Continue(None)),
        Ok(StatusWrite::Written(written)) => {
            context.recorded(run, decision, &written);
            Ok(ControlFlow::Continue(Some(written)))
        }
        Ok(StatusWrite::Conflict) => Ok(ControlFlow::Break(Action::requeue(context.setbacks.pause(run.uid())))),
        Err(error) => {
            // A status that cannot be written cannot show its own error.
            if error.class() == Class::Permanent {
                context.announce(run, [blocked::refused(&error, run.spec())]);
                // An older CRD may refuse every status that this version can write.
                if run.is_deleting() {
                    context.metrics.failed(error.change().name);
                    return Box::pin(remove(&run.object.metadata, context))
                        .await
                        .map(ControlFlow::Break);
                }
            }
            Err(error)
        }
    }
}

/// Publishes the Events of the decision, and the rights that the run lacks.
fn announce(run: &Run<'_>, context: &Context, decision: &Decision) {
    context.announce(run, decision.events.iter().cloned());
    if !is_over(&decision.status) {
        report_missing_rights(run, context);
    }
}

/// Keeps what the operator wrote until the watch shows it. Without it, a pass before the echo adds the finalizer again and is
/// refused (230 times for a thousand objects), or tears down once more what has gone (891 times).
fn remember(current: &Run<'_>, context: &Context, metadata: Option<ObjectMeta>) {
    if let Some(metadata) = metadata {
        context.own_writes.add_metadata(current.object, metadata);
    }
    context.setbacks.forget(current.uid());
}

/// The next pass. The echo of the operator's write comes first, unless the watch is silent.
fn schedule(decision: &Decision, written: bool) -> Action {
    let recheck = if written {
        Some(decision.recheck.map_or(SOON, |recheck| recheck.min(SOON)))
    } else {
        decision.recheck
    };
    recheck.map_or_else(Action::await_change, Action::requeue)
}

/// Removes what a deleted object has created, where its status cannot be read or not be written: the finalizer goes only
/// once everything is confirmed gone, as always.
pub(crate) async fn remove(metadata: &ObjectMeta, context: &Context) -> Result<Action, Error> {
    let object = match teardown::leaving(metadata) {
        Ok(object) => object,
        Err(error) => {
            warn!(error = &error as &dyn std::error::Error, "no teardown without a spec");
            return Ok(Action::await_change());
        }
    };
    let run = Run::new(&object, &context.settings);
    let (_, decision) = Box::pin(decide::decide(&run, &decide::needs(&run, context), context)).await;
    context.cluster.act(&run, &decision.effects).await?;
    context.setbacks.forget(run.uid());
    Ok(decision.recheck.map_or_else(Action::await_change, Action::requeue))
}

/// Publishes the rights that the run lacks.
pub(crate) fn report_missing_rights(run: &Run<'_>, context: &Context) {
    let event = context.rights.event_for(run);
    context.announce(run, event);
}
