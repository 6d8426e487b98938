//! Order in which runs get GPUs: the order in which they requested them.
//!
//! One look at the cluster serves the whole queue ([`plan`]). A run that holds a node keeps it. Of those that wait,
//! the earlier ones choose first. A run that can have no node now blocks no other, so a run that waits for eight GPUs
//! does not hold up a run that needs a single one. It comes first whenever a node becomes free, so the later ones do
//! not starve it either.

mod answer;
mod plan;
mod wish;

use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use perfval_api::{Allocation, PerfValidationSpec, PerfValidationStatus, Phase, Reason, Trigger};
use perfval_sizing::{Granted, OtherRun, Sizing, holds_node};

use crate::{names, time};

pub use plan::plan;
pub use wish::{PackedSpec, Wish};

/// Time for which a run on its way to Sizing keeps its place; a run that takes longer does not wait for GPUs alone.
const ON_ITS_WAY: Duration = Duration::from_secs(10);
/// Pause between two writes of the heartbeat of a run that waits. Written once a minute, those of a thousand runs took the API
/// server 29 % of a core (`just bench-line 1000`).
pub(crate) const HEARTBEAT_WRITTEN: Duration = Duration::from_mins(10);
/// An operator that is restarted or replaced takes its runs up again within this time.
pub(crate) const ABANDONED: Duration = Duration::from_mins(5);

/// A place in the queue: the time at which a run was requested, and its object's uid to separate runs of the same
/// second.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    asked_at: DateTime<Utc>,
    uid: String,
}

impl Position {
    /// Position of a run. An object's first run was requested when the object was created, any other when it began:
    /// an old object that is run again and again does not always come first.
    pub fn new(metadata: &ObjectMeta, status: &PerfValidationStatus) -> Self {
        let created = metadata.creation_timestamp.as_ref().map(time::from_kubernetes);
        let again = status.run.as_ref().filter(|run| run.trigger != Trigger::Created);
        Self {
            asked_at: again
                .map(|run| run.started_at)
                .or(created)
                .unwrap_or(DateTime::<Utc>::MAX_UTC),
            uid: metadata.uid.clone().unwrap_or_default(),
        }
    }

    /// Uid of the object.
    pub fn uid(&self) -> &str {
        &self.uid
    }
}

/// A node that a run holds, or plans to.
#[derive(Clone, Debug, PartialEq)]
pub struct Hold {
    /// The node.
    pub node: String,
    /// True if the run gives the node back without help: it is not over and kept, and within its own limits.
    pub at_work: bool,
    /// Resources that quotas count of it; unknown for a run of another version.
    pub uses: Option<Box<Uses>>,
}

/// Resources that the quotas of a namespace count of a run with a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Uses {
    spec: PackedSpec,
    gpus: i64,
    by_claims: bool,
    /// Prefix of its pods' names, as `namespace/name`.
    pods: String,
    /// True if it may still create pods.
    creates: bool,
}

impl Uses {
    fn new(metadata: &ObjectMeta, spec: &PerfValidationSpec, status: &PerfValidationStatus) -> Option<Self> {
        let plan = status.placement.as_ref()?;
        let run = status.run.as_ref()?;
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let id = names::run_id(metadata.uid.as_deref().unwrap_or_default(), run.number);
        Some(Self {
            spec: PackedSpec::new(spec),
            gpus: plan.gpus,
            by_claims: plan.allocation == Allocation::Dra,
            pods: format!("{namespace}/{}-", names::deployment(&id)),
            creates: status.phase.is_some_and(Phase::serves),
        })
    }

    fn granted<'a>(&'a self, spec: &'a PerfValidationSpec, at_work: bool) -> Granted<'a> {
        Granted {
            spec,
            gpus: self.gpus,
            by_claims: self.by_claims,
            pods: Some(&self.pods),
            creates: self.creates,
            at_work,
        }
    }
}

/// A run as far as others have to know of it: what it holds, and what it wants.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    /// Namespace of its object.
    pub namespace: String,
    /// Name of its object.
    pub name: String,
    /// Its place in the queue.
    pub position: Position,
    /// Node that it holds.
    pub holds: Option<Hold>,
    /// The GPUs that it waits for, now or within seconds.
    pub wants: Option<Wish>,
    /// True if an operator looked at it lately; it does not matter for the operator that looks after it.
    pub is_attended: bool,
}

impl Contender {
    /// Reads an object; `None` if it neither holds nor wants a node. `is_at_work`: whether it gives back what it holds.
    pub fn new(
        metadata: &ObjectMeta,
        spec: &PerfValidationSpec,
        status: &PerfValidationStatus,
        is_at_work: bool,
        now: DateTime<Utc>,
    ) -> Option<Self> {
        let position = Position::new(metadata, status);
        let holds = status
            .placement
            .as_ref()
            .filter(|_| holds_node(status))
            .map(|plan| Hold {
                node: plan.node.clone(),
                at_work: is_at_work,
                // A plan that is not confirmed uses nothing.
                uses: (!is_queued(status))
                    .then(|| Uses::new(metadata, spec, status).map(Box::new))
                    .flatten(),
            });
        let may_want = metadata.deletion_timestamp.is_none() && !spec.suspend && !spec.gates.is_empty();
        let is_waiting = match status.phase {
            Some(Phase::Sizing) => is_queued(status),
            // Not a run that is not allowed in its namespace.
            None | Some(Phase::Pending) => {
                let refused = status.reason.as_deref() == Some(Reason::Refused.as_str());
                // Nor a run that still has GPUs of an earlier run: its node is no plan that may give way.
                !refused && holds.is_none() && now < time::after(position.asked_at, ON_ITS_WAY)
            }
            Some(_) => false,
        };
        let name = metadata.name.clone().unwrap_or_default();
        let wants = (may_want && is_waiting).then(|| Wish::new(&name, spec));
        (holds.is_some() || wants.is_some()).then(|| Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name,
            position,
            holds,
            wants,
            is_attended: is_attended(status, now),
        })
    }

    /// The node that it holds, with its name.
    pub fn held(&self) -> Option<OtherRun> {
        self.holds.as_ref().map(|hold| self.on(&hold.node))
    }

    /// Resources that it keeps from all others, even earlier ones: a plan that is not confirmed yet is renewed in
    /// every look.
    pub fn keeps(&self) -> Option<OtherRun> {
        self.held().filter(|_| self.wants.is_none())
    }

    fn on(&self, node: &str) -> OtherRun {
        OtherRun {
            name: self.full_name(),
            node: node.to_owned(),
        }
    }

    /// `namespace/name`.
    fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// All runs that hold or want a node, and how long the last ones held theirs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// The runs, in any order.
    pub runs: Vec<Contender>,
    /// Time for which a run lately held its node, if any is over.
    pub usual: Option<Duration>,
}

impl Line {
    /// Leaves out waiting runs that no operator can move. `can_move`: true if this operator can, of the runs that it
    /// looks after; `None` of all others, such as those of another install.
    pub fn leave_out(&mut self, can_move: impl Fn(&str) -> Option<bool>) {
        self.runs
            .retain(|run| run.wants.is_none() || can_move(run.position.uid()).unwrap_or(run.is_attended));
    }
}

/// Returns true if an operator looked at a run lately, as far as the status shows. Without the field, as under the
/// CRD of an older version, it is true.
fn is_attended(status: &PerfValidationStatus, now: DateTime<Utc>) -> bool {
    let last = status.state.last_looked_at;
    last.is_none_or(|last| now < time::after(last, HEARTBEAT_WRITTEN + ABANDONED))
}

/// Returns true if a run waits in the queue: the planner alone moves it from here. A run that may still hold GPUs of
/// an earlier deployment removes that first.
pub fn is_queued(status: &PerfValidationStatus) -> bool {
    status.phase == Some(Phase::Sizing) && !status.state.clears_first
}

/// The queue's answer to one run.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    /// Sizing of the nodes that no other run holds.
    Sized(Sizing),
    /// It waits for runs at work, which give back their resources without help.
    Queued(QueuePlace),
}

/// A place in the queue, as the status shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePlace {
    /// Runs that hold a node and give it back, and earlier ones that wait for one.
    pub ahead: i64,
    /// The first three, as `namespace/name`.
    pub behind: Vec<String>,
    /// Expected duration, if earlier runs show it.
    pub estimate: Option<Duration>,
    /// Reason why no node is free, node by node.
    pub message: String,
    /// True if this plan did not come to it; the next one, which is made soon, may.
    pub not_sized: bool,
}

/// Median of the times for which the last finished runs held their node.
pub fn usual(mut held: Vec<Duration>) -> Option<Duration> {
    held.sort();
    held.get(held.len() / 2).copied()
}
