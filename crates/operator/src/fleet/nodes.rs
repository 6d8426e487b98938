//! The newest measurement of each node: one task of the leader writes it into its `NodePerformance` after a run.
//!
//! A run never waits for it: the pass leaves the measurement here, and a task of the leader writes it and tries again until
//! it is written. A leader that starts looks at all finished validations first, because the one before may have died in between. It
//! does so again after a write of a run's end without an answer.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt as _;
use kube::runtime::reflector::{ObjectRef, Store};
use perfval_api::fleet::NodePerformance;
use perfval_api::{PerfValidation, Phase};
use perfval_fleet::measurement::{Measurement, is_measured};
use perfval_fleet::node::{self, NodeChange};
use perfval_run::Run;
use perfval_sizing::Seen;
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use crate::context::Context;

/// Pause before another attempt.
const AGAIN: Duration = Duration::from_secs(5);
/// Longest pause between two attempts: the kind may not be installed.
const RARELY: Duration = Duration::from_mins(5);
/// Time-out of the first list of validations.
const LIST: Duration = Duration::from_mins(2);

/// Writes measurements as they come.
pub(super) async fn record(context: &Context, store: &Store<NodePerformance>) {
    if store.wait_until_ready().await.is_err() {
        return;
    }
    catch_up(context, store).await;
    // Own writes, until the watch brings them.
    let mut own: HashMap<String, NodePerformance> = HashMap::new();
    let mut pause = AGAIN;
    loop {
        if context.measured.take_doubt() {
            // Until the watch shows that write.
            sleep(AGAIN).await;
            catch_up(context, store).await;
        }
        for measured in context.measured.list() {
            write(context, store, &mut own, &measured).await;
        }
        if context.measured.list().is_empty() {
            pause = AGAIN;
            context.measured.added().await;
        } else {
            tokio::select! {
                () = context.measured.added() => {}
                () = sleep(pause) => pause = (pause * 2).min(RARELY),
            }
        }
    }
}

/// Looks for the newest finished run of each node, if its object does not show that run yet.
async fn catch_up(context: &Context, store: &Store<NodePerformance>) {
    if timeout(LIST, context.objects.wait_until_listed()).await.is_err() {
        debug!("not all validations are listed; later runs are recorded all the same");
    }
    let mut newest: BTreeMap<String, (Measurement, PerfValidation)> = BTreeMap::new();
    for stored in context
        .objects
        .readable()
        .filter(|stored| stored.phase() == Some(Phase::Completed))
    {
        let Ok(object) = stored.unpack() else { continue };
        let Some(measured) = object
            .status
            .as_ref()
            .and_then(|status| Measurement::read(&object, status))
        else {
            continue;
        };
        let later = newest
            .get(&measured.node)
            .is_none_or(|(other, _)| node::is_preferred(&measured, other));
        if later {
            newest.insert(measured.node.clone(), (measured, object));
        }
    }
    newest.retain(|name, (measured, _)| {
        let shown = store.get(&ObjectRef::new(name));
        node::is_news(shown.as_ref().and_then(|object| object.status.as_ref()), measured)
    });
    for (_, object) in newest.into_values() {
        // The store keeps a part of a finished object.
        match Box::pin(context.cluster.whole(&Run::new(&object, &context.settings))).await {
            Ok(Some(whole)) => {
                if let Some(status) = whole.status.as_ref().filter(|status| is_measured(status)) {
                    context.measured.add(&whole, status);
                }
            }
            Ok(None) => {}
            Err(failure) => {
                warn!(%failure, "a finished validation could not be read; its node keeps the earlier numbers");
            }
        }
    }
}

async fn write(
    context: &Context,
    store: &Store<NodePerformance>,
    own: &mut HashMap<String, NodePerformance>,
    measured: &Measurement,
) {
    let identity = match context.cluster.node_identity(&measured.node).await {
        Seen::Present(identity) => identity,
        // Its owner is gone, and so would be the object.
        Seen::Absent => return context.measured.drop(measured),
        unknown => {
            debug!(
                node = measured.node,
                why = unknown.unknown(),
                "the node cannot be read; trying again"
            );
            return;
        }
    };
    let mut all = store.state();
    let is_newer = |known: &NodePerformance, mine: &NodePerformance| {
        let at = |object: &NodePerformance| object.status.as_ref().map(|status| status.measured_at);
        known.metadata.uid == mine.metadata.uid && at(known) >= at(mine)
    };
    own.retain(|name, mine| {
        !all.iter()
            .any(|known| known.name_any() == *name && is_newer(known, mine))
    });
    all.retain(|known| !own.contains_key(&known.name_any()));
    all.extend(own.values().cloned().map(Arc::new));
    let (object, outdated) = match node::decide(measured, &identity, all.iter().map(|object| &**object)) {
        NodeChange::Nothing => return context.measured.drop(measured),
        NodeChange::Write(object) => (object, None),
        NodeChange::Replace(object) => {
            let outdated = all.iter().find(|known| known.name_any() == measured.node);
            (object, outdated.and_then(|known| known.uid()))
        }
    };
    let written = async {
        if let Some(outdated) = outdated {
            context
                .cluster
                .delete_node_performance(&measured.node, &outdated)
                .await?;
        }
        context.cluster.write_node_performance(&object).await
    };
    match written.await {
        Ok(Some(written)) => {
            info!(
                node = measured.node,
                verdict = measured.verdict.as_str(),
                "node recorded"
            );
            own.insert(measured.node.clone(), written);
            context.measured.drop(measured);
        }
        Ok(None) => {
            own.remove(&measured.node);
            debug!(node = measured.node, "another client wrote; looking again");
        }
        Err(failure) => {
            warn!(node = measured.node, %failure, "the measurement of the node could not be written; trying again");
            context.metrics.failed("RecordNode");
        }
    }
}
