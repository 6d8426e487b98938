//! Sizing of one run in the queue, and the distinction between runs at work and runs that are kept.

use perfval_api::Reason;
use perfval_sizing::{Granted, HeldNodes, OtherRun, Sizing};

/// Nodes that runs hold.
#[derive(Default)]
pub(super) struct NodesOfRuns {
    /// All of them with the names of the runs, for messages.
    named: HeldNodes,
    /// All of them without names. A message counts them in one group: each node changes its text.
    unnamed: HeldNodes,
    /// Nodes of runs that are not at work, also without names.
    kept: HeldNodes,
    has_kept: bool,
}

impl NodesOfRuns {
    /// Adds the node of a run. `at_work`: true if the run gives it back without help.
    pub(super) fn add(&mut self, run: OtherRun, at_work: bool) {
        let unnamed = OtherRun {
            name: String::new(),
            node: run.node.clone(),
        };
        if !at_work {
            self.kept.add(unnamed.clone());
            self.has_kept = true;
        }
        self.unnamed.add(unnamed);
        self.named.add(run);
    }

    /// Returns true if the sizing of a run differs without the runs at work. Then one of them holds a node that the run
    /// admits, or uses a quota of its namespace.
    fn differs_without_runs_at_work(
        &self,
        granted: &[Granted<'_>],
        mut size: impl FnMut(&HeldNodes, &[Granted<'_>]) -> Sizing,
    ) -> bool {
        let of_kept: Vec<Granted<'_>> = granted.iter().filter(|run| !run.at_work).copied().collect();
        size(&self.unnamed, granted) != size(&self.kept, &of_kept)
    }
}

/// Sizing of a run beside all others.
#[derive(Clone)]
pub(super) struct SizingInQueue {
    pub(super) sizing: Sizing,
    /// True if the run waits for a run that gives back its resources without help.
    pub(super) waits_for_work: bool,
}

impl SizingInQueue {
    /// Sizes a run. `any_at_work`: true if any run at work is ahead. A run that finds all nodes busy is sized twice more,
    /// but only while another run keeps its node.
    pub(super) fn new(
        nodes: &NodesOfRuns,
        granted: &[Granted<'_>],
        any_at_work: bool,
        mut size: impl FnMut(&HeldNodes, &[Granted<'_>]) -> Sizing,
    ) -> Self {
        let sizing = size(&nodes.named, granted);
        let is_busy = matches!(
            sizing,
            Sizing::Wait {
                reason: Reason::NodeBusy,
                ..
            }
        );
        let waits_for_work =
            is_busy && any_at_work && (!nodes.has_kept || nodes.differs_without_runs_at_work(granted, size));
        Self { sizing, waits_for_work }
    }

    /// Sizing of a run whose spec cannot be read.
    pub(super) fn unreadable() -> Self {
        Self {
            sizing: Sizing::Wait {
                reason: Reason::CallFailed,
                message: "the spec in the queue cannot be read".to_owned(),
            },
            waits_for_work: false,
        }
    }
}
