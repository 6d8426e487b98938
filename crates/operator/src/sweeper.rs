//! The sweeper: one task of the leader that finds what no run looks after any more ([`strays`]).
//!
//! It looks a minute after it began to lead and after each end of a run, when the last call of a leader that died has been
//! carried out or given up, and seldom otherwise: five lists of metadata each time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource as _;
use perfval_cluster::Cluster;
use perfval_run::strays::{self, Labelled, Stray};
use perfval_sizing::Seen;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::context::Context;
use crate::event_words::stray_word;
use crate::stored::Stored;

/// The API server gives up a call after a minute.
const LATE: Duration = Duration::from_secs(65);
/// Pause between two looks without a request.
const SELDOM: Duration = Duration::from_mins(10);
/// Time for which the orphans of a namespace count that cannot be read: it may be gone, and the operator's right to read it too.
const REMEMBERED: Duration = Duration::from_hours(1);

/// Number of orphans of each watched namespace, with the time at which it was read.
#[derive(Default)]
struct Orphans(HashMap<Option<String>, (Instant, usize)>);

impl Orphans {
    fn record(&mut self, namespace: Option<&str>, orphans: usize, now: Instant) {
        self.0.insert(namespace.map(str::to_owned), (now, orphans));
    }

    /// Keeps the number of a namespace that could be read, although the owners are unknown.
    fn keep(&mut self, namespace: Option<&str>, now: Instant) {
        if let Some((read, _)) = self.0.get_mut(&namespace.map(str::to_owned)) {
            *read = now;
        }
    }

    fn count(&self, now: Instant) -> usize {
        let known = self.0.values();
        let recent = known.filter(|(read, _)| now.duration_since(*read) < REMEMBERED);
        recent.map(|(_, orphans)| *orphans).sum()
    }
}

/// Sweeps for as long as this process leads.
pub async fn sweep_until(context: Arc<Context>, stop: CancellationToken) {
    let (mut reported, mut orphans) = (HashSet::new(), Orphans::default());
    let sweeping = async {
        loop {
            sleep(LATE).await;
            sweep(&context, &mut reported, &mut orphans).await;
            tokio::select! {
                () = context.ended.notified() => {}
                () = sleep(SELDOM) => {}
            }
        }
    };
    // It only ends when it is stopped.
    let _: Option<()> = Box::pin(stop.run_until_cancelled(sweeping)).await;
}

/// One look at everything that carries the operator's label.
async fn sweep(context: &Context, reported: &mut HashSet<String>, orphans: &mut Orphans) {
    let namespaces = context.objects.namespaces();
    let (mut found, mut read) = (Vec::new(), Vec::new());
    for namespace in namespaces {
        match context.cluster.labelled(namespace.as_deref()).await {
            Seen::Present(mut here) => {
                found.append(&mut here);
                read.push(namespace.as_deref());
            }
            // The next look may see more.
            unread => debug!(why = unread.unknown(), "what is left behind cannot be seen"),
        }
    }
    let (all, owners_are_known) = judged(context, &found).await;
    let now = Instant::now();
    for namespace in read.iter().copied() {
        // Without the owners no orphan is known.
        if !owners_are_known {
            orphans.keep(namespace, now);
            continue;
        }
        let is_here = |stray: &Labelled| namespace.is_none_or(|namespace| stray.namespace == namespace);
        let here = all.iter().filter(|stray| stray.1 == Stray::Orphan && is_here(stray.0));
        orphans.record(namespace, here.count(), now);
    }
    context.metrics.orphaned(orphans.count(now));
    for (stray, of) in all {
        let uid = &stray.id.uid;
        if reported.insert(uid.clone()) {
            report(context, stray, of).await;
        }
        if of == Stray::Late && !stray.deleting {
            match context.cluster.remove_stray(stray, &context.settings).await {
                Ok(()) => info!(name = stray.id.name, namespace = stray.namespace, kind = ?stray.id.kind, "removed"),
                Err(error) => {
                    warn!(
                        error = &error as &dyn std::error::Error,
                        "a stray object is still there"
                    );
                    context.metrics.failed(error.change().name);
                }
            }
        }
    }
    // Objects that could not be seen or judged may still be there.
    if read.len() == namespaces.len() && owners_are_known {
        reported.retain(|uid| found.iter().any(|found| found.id.uid == *uid));
    }
}

/// The strays among these objects, and false if the owners of some are unknown. An owner is read from the API server only if no
/// watch has brought it.
async fn judged<'a>(context: &Context, found: &'a [Labelled]) -> (Vec<(&'a Labelled, Stray)>, bool) {
    let known: Vec<_> = context.objects.readable().collect();
    let known: HashMap<&str, &Stored> = known
        .iter()
        .filter_map(|object| Some((object.meta().uid.as_deref()?, &**object)))
        .collect();
    let now = context.cluster.now();
    let is_known = |found: &Labelled| found.owner.as_deref().is_some_and(|owner| known.contains_key(owner));
    let owners = if found
        .iter()
        .any(|found| !is_known(found) && strays::may_be_orphaned(found, now))
    {
        context.cluster.owners().await
    } else {
        Seen::NotAsked
    };
    let judge = |found: &'a Labelled| {
        let uid = found.owner.as_deref().unwrap_or_default();
        let known = known.get(uid).and_then(|object| object.unpack().ok());
        let owner = match (&known, &owners) {
            (Some(owner), _) => Seen::Present(owner),
            (None, Seen::Present(all)) if !all.contains(uid) => Seen::Absent,
            (None, Seen::Unknown(why)) => Seen::Unknown(why.clone()),
            (None, _) => Seen::NotAsked,
        };
        let stray = strays::judge(found, &owner, &context.settings, now)?;
        Some((found, stray))
    };
    let strays = found.iter().filter_map(judge).collect();
    (strays, !matches!(owners, Seen::Unknown(_)))
}

async fn report(context: &Context, stray: &Labelled, of: Stray) {
    let note = match of {
        Stray::Late => {
            context.metrics.came_late();
            format!(
                "created after PerfValidation {} had confirmed that nothing was left, by a call that an earlier leader had sent: \
                 it is removed",
                stray.object
            )
        }
        Stray::Orphan => {
            format!(
                "left behind by PerfValidation {}, which was removed without its finalizer, or created by a restore without owners: \
                 see its finalizers, or delete it if it has no deletionTimestamp",
                stray.object
            )
        }
    };
    let word = stray_word(of);
    let reason = word.name;
    warn!(name = stray.id.name, namespace = stray.namespace, kind = ?stray.id.kind, reason, note, "a stray object");
    context.cluster.publish(&reference(stray), &word.warning(note)).await;
}

fn reference(stray: &Labelled) -> ObjectReference {
    let resource = Cluster::child_resource(stray.id.kind);
    ObjectReference {
        api_version: Some(resource.api_version),
        kind: Some(resource.kind),
        namespace: Some(stray.namespace.clone()),
        name: Some(stray.id.name.clone()),
        uid: Some(stray.id.uid.clone()),
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_orphans_of_a_namespace_that_cannot_be_read_count_for_an_hour() {
        let (mut orphans, begin) = (Orphans::default(), Instant::now());
        orphans.record(Some("perf"), 3, begin);
        orphans.record(Some("gone"), 2, begin);
        let soon = begin + REMEMBERED / 2;
        orphans.record(Some("perf"), 1, soon);
        assert_eq!(orphans.count(soon), 3, "they may be there");
        assert_eq!(orphans.count(begin + REMEMBERED), 1, "their namespace may be gone");
        orphans.keep(Some("gone"), soon);
        assert_eq!(orphans.count(begin + REMEMBERED), 3, "only their owners are unknown");
    }
}
