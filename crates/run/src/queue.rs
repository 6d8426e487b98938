//! Who gets GPUs next: they go to runs in the order in which these asked for them.
//!
//! One look at the cluster serves the whole queue ([`plan`]). A run that holds a node keeps it. Of those that wait, the
//! earlier ones choose first. One that can have nothing now blocks no other, so a run that waits for eight GPUs does
//! not hold up one that needs a single one; and it is asked first whenever a node comes free, so the later ones do not
//! starve it either.

use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use perfval_api::{PerfValidationSpec, PerfValidationStatus, Phase, Reason, Trigger};
use perfval_sizing::{OtherRun, Sizing, holds_node};

use crate::time;

/// A run on its way to Sizing keeps its place this long; one that takes longer waits for something else than GPUs.
const ON_ITS_WAY: Duration = Duration::from_secs(10);
/// Earlier runs that a message names.
const NAMED: usize = 3;

/// A place in the queue: when a run was asked for, and its object's uid where two were asked for in the same second.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    asked_at: DateTime<Utc>,
    uid: String,
}

impl Position {
    /// An object's first run was asked for when the object was created, any other when it began: an old object that is
    /// run again and again does not always come first.
    pub fn of(metadata: &ObjectMeta, status: &PerfValidationStatus) -> Self {
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The node.
    pub node: String,
    /// Whether the run gives the node back by itself: it is not over and kept, and within its own limits.
    pub at_work: bool,
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
    /// What it holds.
    pub holds: Option<Hold>,
    /// What it waits for: GPUs for this spec, now or within seconds.
    pub wants: Option<Box<PerfValidationSpec>>,
}

impl Contender {
    /// Reads an object; `None` if it neither holds nor wants a node. `is_at_work`: whether it gives back what it holds.
    pub fn of(
        metadata: &ObjectMeta,
        spec: &PerfValidationSpec,
        status: &PerfValidationStatus,
        is_at_work: bool,
        now: DateTime<Utc>,
    ) -> Option<Self> {
        let position = Position::of(metadata, status);
        let holds = status
            .placement
            .as_ref()
            .filter(|_| holds_node(status))
            .map(|plan| Hold {
                node: plan.node.clone(),
                at_work: is_at_work,
            });
        let may_want = metadata.deletion_timestamp.is_none() && !spec.suspend && !spec.gates.is_empty();
        let is_waiting = match status.phase {
            Some(Phase::Sizing) => is_queued(status),
            None | Some(Phase::Pending) => now < time::after(position.asked_at, ON_ITS_WAY),
            Some(_) => false,
        };
        let wants = (may_want && is_waiting).then(|| Box::new(spec.clone()));
        (holds.is_some() || wants.is_some()).then(|| Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            position,
            holds,
            wants,
        })
    }

    /// The node that it holds, with its name.
    pub fn held(&self) -> Option<OtherRun> {
        self.holds.as_ref().map(|hold| self.on(&hold.node))
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
    /// How long a run lately held its node, if any is over.
    pub usual: Option<Duration>,
}

/// Whether a run waits in the queue: the planner alone moves it from here. A run that may still hold GPUs of an earlier
/// deployment removes that first.
pub fn is_queued(status: &PerfValidationStatus) -> bool {
    status.phase == Some(Phase::Sizing) && status.run.as_ref().is_none_or(|run| !run.clears_first)
}

/// What the queue says to one run.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    /// What sizing says of the nodes that no other run holds.
    Sized(Sizing),
    /// It waits for runs that were asked for earlier.
    Queued(Place),
}

/// A place in the queue, as the status shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Runs that hold a node and give it back, and earlier ones that wait for one.
    pub ahead: i64,
    /// The first of them.
    pub behind: String,
    /// How long it may take, where earlier runs show it.
    pub estimate: Option<Duration>,
    /// Why no node is free, node by node.
    pub message: String,
}

/// Plans for the whole queue, in order. `size` says what there is for one run, given those that hold a node.
pub fn plan(
    line: &Line,
    mut size: impl FnMut(&Contender, &PerfValidationSpec, &[OtherRun]) -> Sizing,
) -> Vec<(&Contender, Turn)> {
    let mut in_order: Vec<&Contender> = line.runs.iter().collect();
    // Who has a node already is served before all that wait: a later run may have got it while an earlier one was not
    // yet ready for GPUs, and gives it back like any other.
    in_order.sort_by_key(|run| (run.wants.is_some(), &run.position));
    // A plan that is not confirmed yet is made anew in every look: it holds nothing, and each run is given one in turn.
    let holders = in_order.iter().filter(|run| run.wants.is_none());
    let mut held: Vec<OtherRun> = holders.filter_map(|run| run.held()).collect();
    let mut refused = Refused::default();
    let mut ahead = Ahead::default();
    let mut turns = Vec::new();
    for run in in_order {
        let Some(spec) = &run.wants else {
            if run.holds.as_ref().is_some_and(|hold| hold.at_work) {
                ahead.add(run, true);
            }
            continue;
        };
        let known = refused.get(run, spec).cloned();
        let sizing = known.unwrap_or_else(|| size(run, spec, &held));
        let chosen = match &sizing {
            Sizing::Chosen(plan) => Some(plan.node.clone()),
            Sizing::Wait { .. } | Sizing::Refuse { .. } => None,
        };
        turns.push((run, ahead.turn(&sizing, line.usual)));
        ahead.add(run, chosen.is_some());
        match chosen {
            Some(node) => held.push(run.on(&node)),
            None => refused.keep(run, spec, sizing),
        }
    }
    turns
}

/// Answers that hold for equal wishes: with more nodes taken, the same wish is refused again. A thousand equal runs are
/// sized once.
#[derive(Default)]
struct Refused<'a>(Vec<(&'a str, &'a PerfValidationSpec, Sizing)>);

impl<'a> Refused<'a> {
    fn get(&self, run: &Contender, spec: &PerfValidationSpec) -> Option<&Sizing> {
        let same =
            |(namespace, wish, _): &&(&str, &PerfValidationSpec, Sizing)| *namespace == run.namespace && *wish == spec;
        self.0.iter().find(same).map(|(_, _, sizing)| sizing)
    }

    fn keep(&mut self, run: &'a Contender, spec: &'a PerfValidationSpec, sizing: Sizing) {
        if self.get(run, spec).is_none() {
            self.0.push((&run.namespace, spec, sizing));
        }
    }
}

/// The runs before one in the queue.
#[derive(Default)]
struct Ahead {
    count: i64,
    at_work: i64,
    named: Vec<String>,
}

impl Ahead {
    fn add(&mut self, run: &Contender, at_work: bool) {
        self.count += 1;
        self.at_work += i64::from(at_work);
        if self.named.len() < NAMED {
            self.named.push(run.full_name());
        }
    }

    /// A run waits in the queue if ours are why it waits: one of them holds a node, and gives it back.
    fn turn(&self, sizing: &Sizing, usual: Option<Duration>) -> Turn {
        match sizing {
            Sizing::Wait {
                reason: Reason::NodeBusy,
                message,
            } if self.at_work > 0 => Turn::Queued(Place {
                ahead: self.count,
                behind: self.named.join(", "),
                estimate: usual.map(|usual| {
                    let rounds = u32::try_from((self.count + self.at_work - 1) / self.at_work).unwrap_or(u32::MAX);
                    usual.saturating_mul(rounds)
                }),
                message: message.clone(),
            }),
            sizing => Turn::Sized(sizing.clone()),
        }
    }
}

/// How long the last runs held their node: the median, of those that are over.
pub fn usual(mut held: Vec<Duration>) -> Option<Duration> {
    held.sort();
    held.get(held.len() / 2).copied()
}

/// How long a run that is over held its node.
pub fn held_for(status: &PerfValidationStatus) -> Option<Duration> {
    let of = |phase| status.timeline.iter().find(move |entry| entry.phase == phase);
    let freed = of(Phase::CleaningUp)?.completed_at?;
    (freed - of(Phase::Deploying)?.started_at).to_std().ok()
}
