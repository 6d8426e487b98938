//! Writes an obstacle into the status of its object.

use perfval_api::PerfValidationStatus;
use perfval_cluster::{Class, StatusWrite};
use perfval_run::{Event, Run};
use tracing::warn;

use super::{because_of, no_longer, redacted, refused};
use crate::context::Context;
use crate::resting;

/// Reports in the status the error that keeps the operator from acting, and withdraws it once it can: a user is never
/// left with a silent status. One best effort: the error itself is handled by the caller.
pub(crate) async fn record_whether_blocked(run: &Run<'_>, context: &Context, error: Option<&perfval_cluster::Error>) {
    match error {
        Some(error) if error.class() == Class::Permanent => {
            block(run, context, refused(error, run.spec())).await;
        }
        Some(_) => {}
        None => {
            let now = context.cluster.now();
            record_blocked(run, context, |current| no_longer(current, now), None).await;
        }
    }
}

/// Writes the obstacle of an object with the text of an Event, and publishes it, unless it is there already.
pub(crate) async fn block(run: &Run<'_>, context: &Context, event: Event) {
    let now = context.cluster.now();
    let change = |current: &PerfValidationStatus| because_of(current, &event, now);
    record_blocked(run, context, change, Some(event.clone())).await;
}

/// Writes a changed status, and publishes the Event with it; of an object that the store reduced, the whole one is read first.
pub(crate) async fn record_blocked(
    run: &Run<'_>,
    context: &Context,
    change: impl Fn(&PerfValidationStatus) -> Option<PerfValidationStatus>,
    event: Option<Event>,
) {
    let Some(changed) = change(run.status()) else { return };
    if !resting::is_reduced(run.object) {
        return write_blocked(run, context, &changed, event).await;
    }
    // What the store left out would be removed from the object.
    match Box::pin(context.cluster.whole(run)).await {
        Ok(Some(whole)) => {
            let run = Run::new(&whole, run.settings);
            if let Some(changed) = change(run.status()) {
                write_blocked(&run, context, &changed, event).await;
            }
        }
        Ok(None) => {}
        Err(failure) => {
            let failure = redacted(&failure.to_string(), Some(run.spec()));
            warn!(failure, "the whole object could not be read");
        }
    }
}

async fn write_blocked(run: &Run<'_>, context: &Context, status: &PerfValidationStatus, event: Option<Event>) {
    match Box::pin(context.cluster.record(run, status)).await {
        Ok(StatusWrite::Written(written)) => {
            context.own_writes.add(run.object, *written);
            context.announce(run, event);
        }
        Ok(StatusWrite::Unchanged | StatusWrite::Conflict) => {}
        Err(error) => {
            let error = redacted(&error.to_string(), Some(run.spec()));
            warn!(error, "the obstacle could not be written into the status");
        }
    }
}
