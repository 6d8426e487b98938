//! The baselines: the leader creates one for each environment of a policy, and reports the learned speeds.
//!
//! It has no right to change the spec of a baseline, so it cannot approve one.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt as _;
use perfval_api::condition::APPROVED;
use perfval_api::fleet::{NodePerformance, NodePerformanceStatus, PerfBaseline, PerfBaselineStatus, baselines_in_use};
use perfval_fleet::baseline::Approved;
use perfval_fleet::baselines::{approved, decide};
use tokio::time::Instant;
use tracing::{info, warn};

use super::fingerprint::fingerprint;
use super::stored_objects::{self, FleetStore};
use crate::context::Context;

/// Least time between two looks while no spec changes.
const LOOK: Duration = Duration::from_mins(1);
/// Least time between two writes of a status. After a change of a spec the status is
/// written at once, also of a baseline that is in use only since then.
const WRITE: Duration = Duration::from_mins(10);
/// Reason in the metrics.
const FAILED: &str = "FollowBaseline";

/// Baselines, and facts between two looks. A new leader starts without these facts.
#[derive(Default)]
pub(super) struct Baselines {
    list: Vec<Arc<PerfBaseline>>,
    /// Names of those that cannot be parsed.
    unreadable: Vec<String>,
    /// Fingerprints of the specs and the measurements at the last look, and its time.
    looked: Option<(u64, u64, Instant)>,
    /// True if a write was put off or failed.
    is_behind: bool,
    /// Time of the last write of each status, by uid.
    written: HashMap<String, Instant>,
}

impl Baselines {
    /// Reads the baselines. Before the first list of them, and where their kind is not installed, there are none.
    pub(super) fn read(&mut self, store: &FleetStore<PerfBaseline>) {
        let (list, unreadable) = stored_objects::read(store);
        let unreadable = unreadable.iter();
        self.unreadable = unreadable.filter_map(|invalid| invalid.metadata.name.clone()).collect();
        self.list = list;
        self.list
            .retain(|baseline| baseline.metadata.deletion_timestamp.is_none());
        self.list.sort_by_key(|baseline| baseline.name_any());
        let uids: HashSet<String> = self.list.iter().filter_map(|baseline| baseline.uid()).collect();
        self.written.retain(|uid, _| uids.contains(uid));
    }

    /// Norms with which nodes are compared.
    pub(super) fn approved(&self) -> Approved {
        approved(&self.refs())
    }

    /// Baseline of each environment, by digest.
    pub(super) fn in_use(&self) -> BTreeMap<&str, &PerfBaseline> {
        baselines_in_use(self.list.iter().map(|baseline| &**baseline))
    }

    /// Number that changes with the norms.
    pub(super) fn fingerprint(&self) -> u64 {
        fingerprint(self.list.iter().map(|baseline| {
            let approved = baseline.status.as_ref().and_then(|status| status.approved.as_ref());
            let revision = approved.map(|approved| approved.revision);
            (baseline.uid(), baseline.metadata.generation, revision)
        }))
    }

    fn refs(&self) -> Vec<&PerfBaseline> {
        self.list.iter().map(|baseline| &**baseline).collect()
    }

    fn is_current(&self, specs: u64, nodes: u64) -> bool {
        self.looked.is_some_and(|(known_specs, known_nodes, at)| {
            let is_same = known_nodes == nodes && !self.is_behind;
            known_specs == specs && (is_same || at.elapsed() < LOOK)
        })
    }

    /// Creates missing baselines and writes the statuses that differ. `selected` are the nodes of policies.
    pub(super) async fn follow(
        &mut self,
        context: &Context,
        measured: &[Arc<NodePerformance>],
        selected: &HashSet<&str>,
    ) {
        let specs = fingerprint(
            self.list
                .iter()
                .map(|baseline| (baseline.uid(), baseline.metadata.generation)),
        )
        .wrapping_add(fingerprint(&self.unreadable));
        let objects = measured.iter().map(|object| (object.uid(), object.resource_version()));
        let nodes = fingerprint(objects).wrapping_add(fingerprint(selected.iter()));
        if self.is_current(specs, nodes) {
            return;
        }
        let statuses: BTreeMap<String, &NodePerformanceStatus> = measured
            .iter()
            .filter_map(|object| Some((object.name_any(), object.status.as_ref()?)))
            .collect();
        let now = context.cluster.now();
        let mut decision = decide(&self.refs(), &statuses, |node| selected.contains(node), now);
        self.looked = Some((specs, nodes, Instant::now()));
        self.is_behind = false;
        if !self.unreadable.is_empty() && !decision.create.is_empty() {
            // One of them may be the baseline of the environment.
            let unreadable = self.unreadable.join(", ");
            warn!(unreadable, "no baseline is created until these can be parsed");
            decision.create.clear();
        }
        for baseline in &decision.create {
            match context.cluster.create_baseline(baseline).await {
                Ok(()) => info!(name = baseline.name_any(), "baseline created"),
                Err(failure) => {
                    warn!(name = baseline.name_any(), %failure, "a baseline could not be created; trying again");
                    context.metrics.failed(FAILED);
                    self.is_behind = true;
                    // The others would be refused too.
                    break;
                }
            }
        }
        for (baseline, status) in self.list.clone().iter().zip(decision.statuses) {
            self.write(context, baseline, &status).await;
        }
    }

    async fn write(&mut self, context: &Context, baseline: &PerfBaseline, status: &PerfBaselineStatus) {
        if baseline.status.as_ref() == Some(status) {
            return;
        }
        let uid = baseline.uid().unwrap_or_default();
        let observed = baseline.status.as_ref().map(|status| status.observed_generation);
        let is_urgent =
            observed != baseline.metadata.generation || baseline.status.as_ref().and_then(approval) != approval(status);
        if !is_urgent && self.written.get(&uid).is_some_and(|at| at.elapsed() < WRITE) {
            self.is_behind = true;
            return;
        }
        match context.cluster.write_baseline_status(baseline, status).await {
            Ok(true) => _ = self.written.insert(uid, Instant::now()),
            Ok(false) => self.is_behind = true,
            Err(failure) => {
                warn!(name = baseline.name_any(), %failure, "the status of a baseline could not be written; trying again");
                context.metrics.failed(FAILED);
                self.is_behind = true;
            }
        }
    }
}

/// Status and reason of the condition `Approved`.
fn approval(status: &PerfBaselineStatus) -> Option<(&str, &str)> {
    let found = status.conditions.iter().find(|condition| condition.type_ == APPROVED);
    found.map(|found| (found.status.as_str(), found.reason.as_str()))
}
