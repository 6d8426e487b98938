//! Runs that hold a node: no other run may choose it, and what they use counts against the quotas of their namespace.

use foldhash::HashMap;
use perfval_api::{PerfValidationSpec, PerfValidationStatus, Phase, condition};

/// A node that is another run's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherRun {
    /// `namespace/name`.
    pub name: String,
    /// Its node.
    pub node: String,
}

/// Nodes that are other runs', with the first of these by name.
#[derive(Clone, Debug, Default)]
pub struct HeldNodes(HashMap<String, String>);

impl HeldNodes {
    /// Adds a node.
    pub fn add(&mut self, OtherRun { name, node }: OtherRun) {
        let first = self.0.entry(node).or_insert_with(|| name.clone());
        if name < *first {
            *first = name;
        }
    }

    /// The run that has a node, as `namespace/name`.
    pub fn run_on(&self, node: &str) -> Option<&str> {
        self.0.get(node).map(String::as_str)
    }
}

impl FromIterator<OtherRun> for HeldNodes {
    fn from_iter<I: IntoIterator<Item = OtherRun>>(runs: I) -> Self {
        let mut held = Self::default();
        runs.into_iter().for_each(|run| held.add(run));
        held
    }
}

/// GPUs granted to another run of the same namespace. A quota counts a pod only once it is created. Until then the
/// quota seems to leave what this run will use.
#[derive(Clone, Copy, Debug)]
pub struct Granted<'a> {
    /// Its spec.
    pub spec: &'a PerfValidationSpec,
    /// Its GPUs.
    pub gpus: i64,
    /// True if its workers get GPUs through claims, and not from a device plugin.
    pub by_claims: bool,
    /// Prefix of its pods' names, as `namespace/name`; `None` before it has any.
    pub pods: Option<&'a str>,
    /// True if it may still create pods.
    pub creates: bool,
    /// True if it gives back its resources without anybody's help.
    pub at_work: bool,
}

/// Returns true if a run holds its node or plans to, so that no other run may choose it.
pub fn holds_node(status: &PerfValidationStatus) -> bool {
    // A run that judges saved trials again keeps their plan in its status, and runs nothing.
    let judges_again = status.state.judged_run.is_some();
    // Another's finalizer may hold a deleted object in `CleaningUp` for days.
    let over = judges_again || !status.phase.is_some_and(Phase::is_active);
    status.placement.is_some() && (!over || !condition::is_true(status, condition::CLEANED_UP))
}
