//! Norms for gates on a baseline.

use perfval_api::{Gate, GateMode, Metric};
use perfval_sizing::Seen;
use perfval_verdict::norms::Norms;

use crate::observed::Need;
use crate::pass::Pass;
use crate::run::Run;

/// Read that is needed before a trial is judged.
pub(crate) fn need(run: &Run<'_>) -> Option<Need> {
    // An operator of single namespaces has no right to read them.
    let wanted = gates(run).next().is_some() && !run.settings.shares_the_cluster;
    wanted.then_some(Need::Baselines)
}

fn gates<'a>(run: &Run<'a>) -> impl Iterator<Item = &'a Gate> {
    let gates = run.spec().gates.iter();
    gates.filter(|gate| gate.metric == Metric::BaselinePercent)
}

/// Norms of the approved baselines; none where no gate needs one, or their kind is not installed.
pub(crate) fn norms(pass: &Pass<'_>) -> Seen<Norms> {
    if need(pass.run).is_none() {
        return Seen::Present(Norms::default());
    }
    match &pass.seen.baselines {
        Seen::Absent => Seen::Present(Norms::default()),
        // A warning is not worth waiting for.
        Seen::Unknown(_) if !gates(pass.run).any(|gate| gate.mode == GateMode::Enforce) => {
            Seen::Present(Norms::default())
        }
        read => read.map(|baselines| Norms::new(baselines)),
    }
}
