//! The answer of `size`.

use std::fmt;

use perfval_api::Reason;
use perfval_sizing::{NodeObstacle, NodeReport, Plan, Sizing};
use serde::Serialize;

use crate::error::Error;
use crate::table::Table;

/// The answer: data for scripts, a table for people.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SizeReport {
    /// The plan that a run would get.
    plan: Option<Plan>,
    /// Reason of the obstacle, if there is no plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    nodes: Vec<NodeReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

impl SizeReport {
    /// The nodes of `only`, or all; the plan is always that of the whole cluster.
    pub fn new(reports: Vec<NodeReport>, sizing: Sizing, notes: Vec<String>, only: &[String]) -> Result<Self, Error> {
        let (plan, reason, message) = match sizing {
            Sizing::Chosen(plan) => (Some(*plan), None, None),
            Sizing::Wait {
                reason: Reason::CallFailed,
                message,
            } => return Err(Error::NotSized(message)),
            Sizing::Wait { reason, message } | Sizing::Refuse { reason, message } => {
                (None, Some(reason), Some(message))
            }
        };
        if let Some(name) = only.iter().find(|name| !reports.iter().any(|node| node.node == **name)) {
            let known = known(&reports);
            return Err(Error::BadInput(format!("there is no node {name}: there are {known}")));
        }
        let shown = |node: &NodeReport| only.is_empty() || only.contains(&node.node);
        Ok(Self {
            plan,
            reason: reason.map(Reason::as_str),
            message,
            nodes: reports.into_iter().filter(shown).collect(),
            notes,
        })
    }

    /// Adds notes below the answer.
    pub fn add_notes(&mut self, notes: Vec<String>) {
        self.notes.extend(notes);
    }

    /// Returns true if a run would get a plan.
    pub fn has_plan(&self) -> bool {
        self.plan.is_some()
    }

    fn table(&self) -> Table {
        let mut table = Table::new(["NODE", "BY", "GPUS", "FREE", "USABLE", "WHY"]);
        for node in self.nodes.iter().filter(|node| !is_without_gpus(node)) {
            table.row([
                node.node.clone(),
                node.allocation.as_ref().map_or("-", AsRef::as_ref).to_owned(),
                node.total.to_string(),
                node.free.to_string(),
                node.usable.to_string(),
                node.summary(),
            ]);
        }
        table
    }
}

/// First nodes, and the number of the others.
fn known(nodes: &[NodeReport]) -> String {
    const NAMED: usize = 5;
    let named: Vec<&str> = nodes.iter().take(NAMED).map(|node| node.node.as_str()).collect();
    let more = match nodes.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    named.join(", ") + &more
}

fn is_without_gpus(node: &NodeReport) -> bool {
    node.obstacle == Some(NodeObstacle::NoGpus)
}

impl fmt::Display for SizeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table().on(None))?;
        match self.nodes.iter().filter(|node| is_without_gpus(node)).count() {
            0 => {}
            1 => writeln!(f, "and one node without GPUs")?,
            more => writeln!(f, "and {more} nodes without GPUs")?,
        }
        writeln!(f)?;
        match (&self.plan, &self.reason) {
            (Some(plan), _) => writeln!(
                f,
                "plan: {} of {} GPUs on {} ({}){}",
                plan.gpus,
                plan.node_gpus,
                plan.node,
                plan.allocation,
                devices(plan)
            )?,
            (None, reason) => writeln!(
                f,
                "no plan ({}): {}",
                reason.unwrap_or_default(),
                self.message.as_deref().unwrap_or_default()
            )?,
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))
    }
}

fn devices(plan: &Plan) -> String {
    let names: Vec<&str> = plan
        .details
        .device_ids
        .iter()
        .map(|device| device.name.as_str())
        .collect();
    if names.is_empty() {
        return String::new();
    }
    format!(": probably {}", names.join(", "))
}
