//! Norms for gates on a baseline.

use perfval_api::Metric;
use perfval_sizing::Seen;
use perfval_verdict::norms::Norms;

use crate::observed::Need;
use crate::pass::Pass;
use crate::run::Run;

/// Read that is needed before a trial is judged.
pub(crate) fn need(run: &Run<'_>) -> Option<Need> {
    let mut gates = run.spec().gates.iter();
    let wanted = gates.any(|gate| gate.metric == Metric::BaselinePercent);
    // An operator of single namespaces has no right to read them.
    (wanted && !run.settings.shares_the_cluster).then_some(Need::Baselines)
}

/// Norms of the approved baselines; none where no gate needs one, or their kind is not installed.
pub(crate) fn norms(pass: &Pass<'_>) -> Seen<Norms> {
    if need(pass.run).is_none() {
        return Seen::Present(Norms::default());
    }
    match &pass.seen.baselines {
        Seen::Present(baselines) => Seen::Present(Norms::new(baselines)),
        Seen::Absent => Seen::Present(Norms::default()),
        Seen::NotAsked => Seen::NotAsked,
        Seen::Unknown(why) => Seen::Unknown(why.clone()),
    }
}
