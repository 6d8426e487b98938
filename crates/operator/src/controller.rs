//! **Read this page first.** One pass over one object: observe → decide → record → act.
//!
//! Only `decide` is clever, and it is pure. The status write is the commit: effects of a phase run only in passes that
//! start in it, so a crash anywhere repeats an idempotent step and never skips one.
//!
//! The [planner](crate::planner) moves the runs in the queue: one look serves all of them.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use kube::api::ObjectMeta;
use kube::core::error_boundary::InvalidObject;
use kube::runtime::controller::Action;
use kube::runtime::reflector::ObjectRef;
use perfval_api::{PerfValidationSpec, PerfValidationStatus, Phase};
use perfval_cluster::Class;
use perfval_run::{Run, machine};
use tokio::time::{Instant, timeout};
use tracing::{Instrument, debug, error, info_span, warn};

use crate::blocked::write::{block, record_blocked};
use crate::boundary::{Panicked, catch};
use crate::commit::{commit, remove, report_missing_rights};
use crate::context::Context;
use crate::decide;
use crate::event_words::{PANICKED, SET_ASIDE};
use crate::stored::Stored;
use crate::{blocked, resting, store_limits, unreadable};

/// A pass that takes longer is given up and starts again; every call in it has its own, shorter limit.
const PASS_LIMIT: Duration = Duration::from_mins(4);
/// Pause after an error that may be gone by then; the client has already retried.
const TRANSIENT: Duration = Duration::from_secs(5);
/// Pause after an error that a user has to fix.
const PERMANENT: Duration = Duration::from_secs(30);
/// Pause while results of other runs are read; each takes about a second.
const ROOM: Duration = Duration::from_millis(500);

/// One pass. It never fails towards the `Controller`: what went wrong is in the object, the log and the metrics.
pub async fn reconcile(object: Arc<Stored>, context: Arc<Context>) -> Result<Action, Infallible> {
    let newer = context.own_writes.newer(&*object);
    let newest = newer.as_ref().unwrap_or(&object);
    // Before it is unpacked: thousands wait.
    if let Some(pause) = context.newcomers.pause(newest) {
        return Ok(Action::requeue(pause));
    }
    let object = match newest.unpack() {
        Ok(object) => object,
        Err(invalid) => return Ok(Box::pin(pass_unreadable(&invalid, newest.lacks_room(), &context)).await),
    };
    let run = Run::new(&object, &context.settings);
    if context.suspects.is_set_aside(&run.object.metadata) {
        context.newcomers.forget(run.object);
        Box::pin(report_set_aside(&run, &context)).await;
        return Ok(Action::await_change());
    }
    if machine::is_queued(&run) {
        context.queue.expects(&run);
        report_missing_rights(&run, &context);
        return Ok(Action::await_change());
    }
    // The operator has just released it, and the watch has not shown that yet. An object whose finalizer others
    // removed is torn down.
    if newer.is_some() && run.is_deleting() && !run.has_finalizer() {
        return Ok(Action::await_change());
    }
    // A pause after a burst of changes would hold up the first trial, so a completion has its pass at once. A refusal
    // waits: it may have another text each time, and the next probe follows it.
    let pause = context.pace.take(&run);
    if let Some(pause) = pause.filter(|_| !context.cluster.has_completion(&run)) {
        return Ok(Action::requeue(pause));
    }
    let phase = run.status().phase.map_or("", Phase::as_str);
    let span = info_span!(
        "pass",
        namespace = run.namespace(),
        name = run.name(),
        run = run.id(),
        phase
    );
    // On the heap: 24 kB, which a stream would move around.
    Ok(Box::pin(bounded_pass(&run, &context)).instrument(span).await)
}

/// A pass over an object that is reduced to its metadata. `lacks_room`: bytes for which the store has no room.
async fn pass_unreadable(invalid: &InvalidObject, lacks_room: Option<usize>, context: &Context) -> Action {
    let object = &invalid.metadata;
    let (limits, cluster) = (&context.store_limits, &context.cluster);
    let again = match lacks_room.filter(|_| limits.is_reported(object)) {
        Some(bytes) if limits.reserve(object, bytes) => unreadable::take_back(object, cluster).await,
        Some(_) => Some(store_limits::TRY_AGAIN),
        None => {
            let again = unreadable::report(invalid, cluster, &context.metrics).await;
            if again.is_none() && lacks_room.is_some() {
                limits.report(object);
            }
            again.or(lacks_room.map(|_| store_limits::TRY_AGAIN))
        }
    };
    let action = again.map_or_else(Action::await_change, Action::requeue);
    if object.deletion_timestamp.is_none() || context.suspects.is_set_aside(object) {
        return action;
    }
    let removed = Box::pin(remove(object, context));
    bounded(context, object, None, removed).await.0
}

async fn bounded_pass(run: &Run<'_>, context: &Context) -> Action {
    let (object, passed) = (&run.object.metadata, Box::pin(pass(run, context)));
    let (action, panicked) = bounded(context, object, Some(run.spec()), passed).await;
    if let Some(Panicked(said)) = panicked {
        // One best effort, too.
        let _ = catch(Box::pin(block(run, context, blocked::panicked(&said, run.spec())))).await;
    }
    action
}

async fn bounded(
    context: &Context,
    object: &ObjectMeta,
    spec: Option<&PerfValidationSpec>,
    pass: impl Future<Output = Result<Action, perfval_cluster::Error>> + Send,
) -> (Action, Option<Panicked>) {
    let uid = object.uid.as_deref().unwrap_or_default();
    let _under_way = context.suspects.begin(object).await;
    let began = Instant::now();
    let mut panicked = None;
    let passed = timeout(PASS_LIMIT, catch(pass)).await;
    let (outcome, action) = match passed {
        Ok(Ok(Ok(action))) => ("ok", action),
        Ok(Ok(Err(error))) => failed(context, uid, spec, &error),
        Ok(Err(panic)) => {
            let said = blocked::redacted(&panic.0, spec);
            error!(said, "pass panicked; trying again");
            context.metrics.failed(PANICKED.name);
            panicked = Some(panic);
            ("panic", Action::requeue(context.setbacks.pause(uid)))
        }
        Err(_) => {
            warn!(limit = ?PASS_LIMIT, "pass given up");
            context.metrics.failed("PassTimeout");
            // The write of a run's end may be on its way.
            context.measured.doubt();
            ("timeout", Action::requeue(TRANSIENT))
        }
    };
    context.metrics.reconciled(outcome, began.elapsed());
    context.metrics.calls(context.cluster.counts());
    (action, panicked)
}

async fn pass(run: &Run<'_>, context: &Context) -> Result<Action, perfval_cluster::Error> {
    let needs = decide::needs(run, context);
    let Some(_room) = context.room.take(&needs) else {
        // This pass may have been for a change of a Job.
        let object = ObjectRef::<Stored>::new(run.name()).within(run.namespace());
        context.pace.expect_job(&object);
        return Ok(Action::requeue(ROOM));
    };
    let (seen, decision) = Box::pin(decide::decide(run, &needs, context)).await;
    if decision.is_rest(run.status()) || !resting::is_reduced(run.object) {
        let committed = commit(run, context, &decision).await;
        // Behind a status that is recorded already only an effect can fail, and that is no outage.
        if committed.is_ok() || run.object.status.as_ref() == Some(&decision.status) {
            context.looks.record(run, &seen);
        }
        return committed;
    }
    match Box::pin(context.cluster.whole(run)).await {
        Ok(Some(whole)) => {
            let run = Run::new(&whole, run.settings);
            let decision = machine::decide(&run, &seen, context.cluster.now());
            commit(&run, context, &decision).await
        }
        Ok(None) => Ok(Action::await_change()),
        Err(failure) => {
            let failure = blocked::redacted(&failure.to_string(), Some(run.spec()));
            warn!(failure, "the whole object could not be read; trying again");
            Ok(Action::requeue(TRANSIENT))
        }
    }
}

/// Reports why the operator does not act on an object any more. It does not repeat a report in which the process died.
async fn report_set_aside(run: &Run<'_>, context: &Context) {
    let (event, now) = (blocked::set_aside(), context.cluster.now());
    let change = |current: &PerfValidationStatus| blocked::because_of(current, &event, now);
    let object = &run.object.metadata;
    if change(run.status()).is_none() || context.suspects.is_untouchable(object) {
        return;
    }
    let _under_way = context.suspects.begin(object).await;
    context.metrics.failed(SET_ASIDE.name);
    record_blocked(run, context, change, Some(event.clone())).await;
}

fn failed(
    context: &Context,
    uid: &str,
    spec: Option<&PerfValidationSpec>,
    error: &perfval_cluster::Error,
) -> (&'static str, Action) {
    let (reason, class) = (error.change().name, error.class());
    context.metrics.failed(reason);
    let error = blocked::redacted(&error.to_string(), spec);
    match class {
        Class::Conflict => {
            debug!(reason, error, "another client wrote; looking again");
            ("conflict", Action::requeue(context.setbacks.pause(uid)))
        }
        Class::Transient => {
            warn!(reason, error, "pass failed; trying again");
            ("transient", Action::requeue(TRANSIENT))
        }
        Class::Permanent => {
            warn!(reason, error, "pass failed; a user has to act");
            ("permanent", Action::requeue(PERMANENT))
        }
    }
}
