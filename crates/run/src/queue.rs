//! Whose position it is: GPUs go to runs in the order in which these were asked for.
//!
//! A run that holds a node keeps it. Of those that still wait, the earlier ones choose first: a node that one of them
//! could have now is not for this run. One that can have nothing now is in nobody's way, so a run that waits for eight
//! GPUs does not hold up one that needs a single one; and it is asked first whenever a node comes free, so the later
//! ones do not starve it either.

use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use perfval_api::{PerfValidationSpec, PerfValidationStatus, Phase, Trigger};
use perfval_sizing as sizing;
use perfval_sizing::inventory::Inventory;
use perfval_sizing::{OtherRun, Sizing, holds_node};

use crate::time;

/// A run on its way to Sizing keeps its position this long; one that takes longer waits for something else than GPUs.
const ON_ITS_WAY: Duration = Duration::from_secs(10);
/// Earlier runs that a message names.
const NAMED: usize = 3;

/// A place in the line: when a run was asked for, and its object's uid where two were asked for in the same second.
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
}

/// The run of another object, as far as it stands in the way of this one.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    /// `namespace/name`.
    pub name: String,
    /// Its place in the line.
    pub position: Position,
    /// What it has or wants.
    pub stand: Wants,
}

/// What another run has or wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Wants {
    /// It holds a node, or plans to.
    Holds {
        /// The node.
        node: String,
        /// Whether it gives the node back by itself: it is not over and kept, and within its own limits.
        at_work: bool,
    },
    /// It waits for GPUs, or will within seconds.
    Waits(Box<PerfValidationSpec>),
}

impl Contender {
    /// The node that it holds.
    pub fn holds(&self) -> Option<OtherRun> {
        match &self.stand {
            Wants::Holds { node, .. } => Some(OtherRun {
                name: self.name.clone(),
                node: node.clone(),
            }),
            Wants::Waits(_) => None,
        }
    }

    /// Reads another object; `None` if it neither holds nor wants a node. `at_work`: whether it gives its node back by
    /// itself ([`is_at_work`](crate::machine::is_at_work)).
    pub fn of(
        metadata: &ObjectMeta,
        spec: &PerfValidationSpec,
        status: &PerfValidationStatus,
        at_work: bool,
        now: DateTime<Utc>,
    ) -> Option<Self> {
        let position = Position::of(metadata, status);
        let held = status.placement.as_ref().filter(|_| holds_node(status));
        let stand = if let Some(plan) = held {
            Wants::Holds {
                node: plan.node.clone(),
                at_work,
            }
        } else {
            let wanted = metadata.deletion_timestamp.is_none() && !spec.suspend && !spec.gates.is_empty();
            let waits = match status.phase {
                Some(Phase::Sizing) => true,
                None | Some(Phase::Pending) => now < time::after(position.asked_at, ON_ITS_WAY),
                Some(_) => false,
            };
            (wanted && waits).then(|| Wants::Waits(Box::new(spec.clone())))?
        };
        Some(Self {
            name: format!(
                "{}/{}",
                metadata.namespace.as_deref().unwrap_or_default(),
                metadata.name.as_deref().unwrap_or_default()
            ),
            position,
            stand,
        })
    }
}

/// All other runs, seen from one place in the line.
pub struct Queue<'a> {
    others: &'a [Contender],
    ahead: Vec<&'a Contender>,
}

/// What a run finds in its position.
#[derive(Debug, PartialEq)]
pub enum Found {
    /// What sizing says of the nodes that nobody holds.
    Sized(Sizing),
    /// There is a plan, but earlier runs come first; who, and where.
    OthersFirst(String),
}

impl<'a> Queue<'a> {
    /// The line as a run at `position` sees it.
    pub fn at(position: &Position, others: &'a [Contender]) -> Self {
        let mut ahead: Vec<&Contender> = others.iter().filter(|other| other.position < *position).collect();
        ahead.sort_by(|a, b| a.position.cmp(&b.position));
        Self { others, ahead }
    }

    /// What is there for a run of this spec, once every earlier run that waits has chosen.
    pub fn choose(&self, inventory: &Inventory, spec: &PerfValidationSpec) -> Found {
        let mut held = self.held();
        let own = sizing::choose(inventory, spec, &held);
        let Sizing::Chosen(plan) = &own else {
            return Found::Sized(own);
        };
        let free = held.len();
        held.extend(self.chosen_before(inventory, &held));
        let Some(first) = held[free..]
            .iter()
            .find(|other| other.node == plan.node)
            .or(held.get(free))
        else {
            return Found::Sized(own);
        };
        match sizing::choose(inventory, spec, &held) {
            chosen @ Sizing::Chosen(_) => Found::Sized(chosen),
            Sizing::Wait { .. } | Sizing::Refuse { .. } => Found::OthersFirst(format!(
                "{} goes to {} first, which was asked for earlier",
                first.node, first.name
            )),
        }
    }

    /// The earlier runs that this one waits for, if they are why it waits: one of them holds a node, and gives it back.
    pub fn behind(&self) -> Option<String> {
        let at_work = |other: &&&Contender| matches!(other.stand, Wants::Holds { at_work: true, .. });
        self.ahead.iter().find(at_work)?;
        let names: Vec<&str> = self.ahead.iter().map(|other| other.name.as_str()).collect();
        Some(match names.len() {
            few if few <= NAMED => names.join(", "),
            many => format!("{} and {} more", names[..NAMED].join(", "), many - NAMED),
        })
    }

    fn held(&self) -> Vec<OtherRun> {
        self.others.iter().filter_map(Contender::holds).collect()
    }

    /// The nodes that earlier runs which still wait would take, one after the other.
    fn chosen_before(&self, inventory: &Inventory, held: &[OtherRun]) -> Vec<OtherRun> {
        let mut taken = held.to_vec();
        // With more nodes taken, the same wish is refused again: ten equal runs are asked once.
        let mut refused: Vec<&PerfValidationSpec> = Vec::new();
        for other in &self.ahead {
            let Wants::Waits(wanted) = &other.stand else { continue };
            if refused.contains(&wanted.as_ref()) {
                continue;
            }
            match sizing::choose(inventory, wanted, &taken) {
                Sizing::Chosen(plan) => taken.push(OtherRun {
                    name: other.name.clone(),
                    node: plan.node,
                }),
                Sizing::Wait { .. } | Sizing::Refuse { .. } => refused.push(wanted),
            }
        }
        taken.split_off(held.len())
    }
}
