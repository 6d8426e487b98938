//! The answer of `size`.

use std::fmt;

use perfval_api::{Allocation, Reason};
use perfval_sizing::{NodeObstacle, NodeReport, Plan, Sizing};
use serde::Serialize;

use super::error::Error;

/// The answer: data for scripts, a table for people.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SizeReport {
    /// The plan that a run would get.
    plan: Option<Plan>,
    /// Why it would get none.
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
            } => return Err(Error::Unreadable(message)),
            Sizing::Wait { reason, message } | Sizing::Refuse { reason, message } => {
                (None, Some(reason), Some(message))
            }
        };
        if let Some(name) = only.iter().find(|name| !reports.iter().any(|node| node.node == **name)) {
            return Err(Error::NoSuchNode {
                name: name.clone(),
                nodes: reports.into_iter().map(|node| node.node).collect(),
            });
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

    fn rows(&self) -> Vec<[String; 6]> {
        let head = ["NODE", "BY", "GPUS", "FREE", "USABLE", "WHY"].map(str::to_owned);
        let row = |node: &NodeReport| {
            [
                node.node.clone(),
                node.allocation.as_ref().map_or("-", Allocation::as_str).to_owned(),
                node.total.to_string(),
                node.free.to_string(),
                node.usable.to_string(),
                node.summary(),
            ]
        };
        let with_gpus = self.nodes.iter().filter(|node| !is_without_gpus(node));
        std::iter::once(head).chain(with_gpus.map(row)).collect()
    }
}

fn is_without_gpus(node: &NodeReport) -> bool {
    node.obstacle == Some(NodeObstacle::NoGpus)
}

impl fmt::Display for SizeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.rows();
        let mut widths = [0; 6];
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        for [cells @ .., why] in &rows {
            for (cell, width) in cells.iter().zip(widths) {
                write!(f, "{cell:width$}  ")?;
            }
            writeln!(f, "{why}")?;
        }
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
