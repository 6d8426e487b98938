//! The measurement of each node: one task of the leader writes it into its `NodePerformance` after a run. A policy's run stays
//! there against later runs of users for 14 days and for twice its `maxAge`.
//!
//! A run never waits for it: the pass leaves the measurement here, and a task of the leader writes it and tries again until
//! it is written. A leader that starts looks at all finished validations first, because the one before may have died in between. It
//! looks again if the API server did not answer the write of a run's end.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use futures::FutureExt as _;
use kube::ResourceExt as _;
use kube::runtime::reflector::ObjectRef;
use perfval_api::fleet::{NodePerformance, PerfValidationPolicy};
use perfval_api::{PerfValidation, Phase};
use perfval_fleet::measurement::Measurement;
use perfval_fleet::node::{self, NodeChange};
use perfval_fleet::policy;
use perfval_run::Run;
use perfval_sizing::Seen;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info, warn};

use super::former::Former;
use super::stored_objects::{self, FleetStore};
use crate::context::Context;
use crate::measured::{MeasurementKey, measurement_key};

/// Pause before the second attempt.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// Longest pause between two attempts: the kind may not be installed.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// Time-out of the first lists of policies and validations.
const LIST_TIMEOUT: Duration = Duration::from_mins(2);
/// Time for which an own write counts although the watch does not show it. The node may be gone, and its object with it.
const OWN_LIFETIME: Duration = Duration::from_mins(5);

/// Own writes with their times, by node, until the watch shows them.
type OwnRecords = HashMap<String, (Instant, NodePerformance)>;

/// Writes measurements as they come.
pub(super) async fn record(
    context: &Context,
    store: &FleetStore<NodePerformance>,
    policies: &FleetStore<PerfValidationPolicy>,
) {
    if store.wait_until_ready().await.is_err() {
        return;
    }
    // The cluster may not serve the kind.
    let _ = timeout(LIST_TIMEOUT, policies.wait_until_ready()).await;
    let (present, _) = stored_objects::read(store);
    let mut former = Former::new(present);
    let mut is_behind = !catch_up(context, store, policies).await;
    let mut own = OwnRecords::new();
    let mut pause = FIRST_PAUSE;
    loop {
        if context.measured.take_doubt() || is_behind {
            // Until the watch shows that write.
            sleep(FIRST_PAUSE).await;
            is_behind = !catch_up(context, store, policies).await;
        }
        let waiting = context.measured.list();
        for measured in &waiting {
            match verify(policies, measured.clone()) {
                Some(verified) if verified == *measured => {
                    write(context, (store, policies), (&mut own, &mut former), measured).await;
                }
                Some(verified) => {
                    context.measured.remove(measured);
                    context.measured.insert(verified);
                    // It may have taken the place of another one.
                    context.measured.doubt();
                }
                None => debug!(
                    node = measured.node,
                    "the policies are not listed; the measurement waits"
                ),
            }
        }
        let left = context.measured.list().len();
        if left < waiting.len() {
            pause = FIRST_PAUSE;
        }
        if left == 0 && !is_behind {
            pause = FIRST_PAUSE;
            context.measured.wait_for_news().await;
        } else {
            tokio::select! {
                () = context.measured.wait_for_news() => {}
                () = sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            }
        }
    }
}

/// Returns a measurement, without its policy if the template of that policy creates validations in another namespace: the users of any
/// namespace may write such an owner there. `None` while the policies are unknown.
fn verify(policies: &FleetStore<PerfValidationPolicy>, measured: Measurement) -> Option<Measurement> {
    let Some(policy) = &measured.validation.policy else {
        return Some(measured);
    };
    policies.wait_until_ready().now_or_never()?.ok()?;
    let stored = policies.get(&ObjectRef::new(policy));
    let is_in_namespace = |policy: &PerfValidationPolicy| {
        policy.spec.validation_template.metadata.namespace == measured.validation.namespace
    };
    // The namespace of a policy that cannot be parsed is unknown.
    let is_own = stored.is_some_and(|stored| stored.parsed().is_none_or(is_in_namespace));
    Some(if is_own { measured } else { measured.without_policy() })
}

/// Age at which the verdicts of a policy are stale; `None` if it does not exist or cannot be parsed.
fn max_age(policies: &FleetStore<PerfValidationPolicy>, name: &str) -> Option<TimeDelta> {
    let stored = policies.get(&ObjectRef::new(name))?;
    stored.parsed().map(policy::max_age)
}

/// Looks for the preferred finished run of each node, if its object does not show that run yet. Returns false if it could not look at
/// all of them.
async fn catch_up(
    context: &Context,
    store: &FleetStore<NodePerformance>,
    policies: &FleetStore<PerfValidationPolicy>,
) -> bool {
    let mut is_complete = timeout(LIST_TIMEOUT, context.objects.wait_until_listed()).await.is_ok();
    if !is_complete {
        warn!("not all validations are listed, so some nodes keep the earlier numbers; it tries again");
    }
    let max_age = |policy: &str| max_age(policies, policy);
    let mut newest: BTreeMap<MeasurementKey, (Measurement, PerfValidation)> = BTreeMap::new();
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
        let Some(measured) = verify(policies, measured) else {
            is_complete = false;
            continue;
        };
        let key = measurement_key(&measured);
        let later = newest
            .get(&key)
            .is_none_or(|(other, _)| node::is_preferred(&measured, other, max_age));
        if later {
            newest.insert(key, (measured, object));
        }
    }
    newest.retain(|_, (measured, _)| {
        let shown = store.get(&ObjectRef::new(&measured.node));
        let shown = shown.as_ref().and_then(|stored| stored.parsed()?.status.as_ref());
        node::is_news(shown, measured, max_age)
    });
    for (_, object) in newest.into_values() {
        // The store keeps a part of a finished object.
        match Box::pin(context.cluster.whole(&Run::new(&object, &context.settings))).await {
            Ok(Some(whole)) => {
                let status = whole.status.as_ref();
                let measured = status.and_then(|status| Measurement::read(&whole, status));
                if let Some(measured) = measured.and_then(|measured| verify(policies, measured)) {
                    context.measured.insert(measured);
                }
            }
            Ok(None) => {}
            Err(failure) => {
                is_complete = false;
                warn!(%failure, "a finished validation could not be read; its node keeps the earlier numbers; it tries again");
            }
        }
    }
    is_complete
}

async fn write(
    context: &Context,
    (store, policies): (&FleetStore<NodePerformance>, &FleetStore<PerfValidationPolicy>),
    (own, former): (&mut OwnRecords, &mut Former),
    measured: &Measurement,
) {
    let stored = store.get(&ObjectRef::new(&measured.node));
    if stored.is_some_and(|stored| stored.parsed().is_none()) {
        // It has the past of the GPUs, and a person may still correct it.
        debug!(
            node = measured.node,
            "the object of the node cannot be parsed; the measurement waits"
        );
        return;
    }
    let identity = match context.cluster.node_identity(&measured.node).await {
        Seen::Present(identity) => identity,
        // The node is gone, so Kubernetes deletes its object too.
        Seen::Absent => return context.measured.remove(measured),
        unknown => {
            warn!(
                node = measured.node,
                why = unknown.unknown(),
                "the node cannot be read; trying again"
            );
            return;
        }
    };
    let (mut all, _) = stored_objects::read(store);
    forget_own(own, &all, Instant::now());
    all.retain(|known| !own.contains_key(&known.name_any()));
    all.extend(own.values().map(|(_, mine)| Arc::new(mine.clone())));
    former.update(&all, Instant::now());
    former.forget(&identity.uid);
    let present = all.iter().map(|object| &**object);
    let max_age = |policy: &str| max_age(policies, policy);
    let (object, outdated) = match node::decide(measured, &identity, present, former.list(), max_age) {
        NodeChange::Nothing => return context.measured.remove(measured),
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
            former.add(&written);
            own.insert(measured.node.clone(), (Instant::now(), written));
            context.measured.remove(measured);
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

/// Forgets own writes that the watch shows, and old ones.
fn forget_own(own: &mut OwnRecords, all: &[Arc<NodePerformance>], now: Instant) {
    let is_newer = |known: &NodePerformance, mine: &NodePerformance| {
        let at = |object: &NodePerformance| object.status.as_ref().map(|status| status.measured_at);
        known.metadata.uid == mine.metadata.uid && at(known) >= at(mine)
    };
    own.retain(|name, (written, mine)| {
        let is_shown = all
            .iter()
            .any(|known| known.name_any() == *name && is_newer(known, mine));
        !is_shown && now.duration_since(*written) < OWN_LIFETIME
    });
}

#[cfg(test)]
mod tests {
    use perfval_api::fleet::NodePerformanceSpec;

    use super::*;

    #[test]
    fn an_own_write_that_the_watch_never_shows_is_forgotten() {
        let now = Instant::now();
        let written = NodePerformance::new("n1", NodePerformanceSpec {});
        let mut own = OwnRecords::from([("n1".to_owned(), (now, written))]);
        forget_own(&mut own, &[], now);
        assert_eq!(own.len(), 1, "the watch may be behind");
        forget_own(&mut own, &[], now + OWN_LIFETIME);
        assert!(own.is_empty(), "its node may be gone");
    }
}
