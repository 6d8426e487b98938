//! Stored measurements of nodes, as passes by environment.

use std::collections::BTreeMap;

use perfval_api::Verdict;
use perfval_api::fleet::NodePerformanceStatus;

use crate::centre::trimmed_mean;
use crate::measurement::speed;
use crate::past::Past;
use crate::reading::{NodePass, Speeds};
use crate::running::Running;
use crate::shared::SharedPast;

/// Nodes with the same environment.
#[derive(Default)]
pub(crate) struct StratumPasses {
    /// Newest run of each node.
    pub(crate) screen: BTreeMap<String, NodePass>,
    /// Its last confirmation.
    pub(crate) fresh: BTreeMap<String, NodePass>,
}

/// Nodes by environment and product.
pub(crate) fn strata<'a>(
    measured: &'a BTreeMap<String, &NodePerformanceStatus>,
) -> BTreeMap<(&'a str, &'a str), StratumPasses> {
    let mut strata: BTreeMap<(&str, &str), StratumPasses> = BTreeMap::new();
    for (name, status) in measured {
        let Some(environment) = status.environment.as_deref() else {
            continue;
        };
        let Some((screen, fresh)) = read(status, environment) else {
            continue;
        };
        let product = status.product.as_deref().unwrap_or_default();
        let stratum = strata.entry((environment, product)).or_default();
        stratum.screen.insert(name.clone(), screen);
        if let Some(fresh) = fresh {
            stratum.fresh.insert(name.clone(), fresh);
        }
    }
    strata
}

/// Newest run of a node and its confirmation; `None` if it measured no GPU. Only valid trials have numbers, so those of an
/// inconclusive run count too: a slow node near its gate would hide otherwise.
pub(crate) fn read(status: &NodePerformanceStatus, environment: &str) -> Option<(NodePass, Option<NodePass>)> {
    let (mut screen, mut fresh) = (NodePass::default(), NodePass::default());
    for gpu in &status.gpus {
        let Some(time) = gpu.token_microseconds.filter(|time| *time > 0) else {
            continue;
        };
        let stored = gpu.operator_state.as_ref();
        let stored = stored.and_then(|stored| Running::read(stored, Some(environment)));
        let stored = stored.unwrap_or_else(|| Running::new(Some(environment)));
        let shown = vec![speed(time).ln()];
        let (newest, confirmation) = stored.newest().unwrap_or((shown, &[]));
        screen.is_cold |= stored.is_cold();
        let speeds = |logarithms: &[f64]| Speeds {
            trials: logarithms.iter().map(|logarithm| logarithm.exp()).collect(),
            past: stored.past(),
        };
        screen.gpus.insert(gpu.uuid.clone(), speeds(&newest));
        if !confirmation.is_empty() {
            // The smallest number over the GPUs: one of them may have been confirmed before.
            let is_first = fresh.gpus.is_empty();
            let number = stored.confirmations();
            fresh.confirmations = if is_first {
                number
            } else {
                fresh.confirmations.min(number)
            };
            fresh.gpus.insert(gpu.uuid.clone(), speeds(confirmation));
        }
    }
    let pasts: Vec<Past> = screen.gpus.values().map(|speeds| speeds.past).collect();
    screen.past = node_past(&pasts);
    let shared = SharedPast::read(status.operator_state.as_ref(), Some(environment));
    (screen.shared, screen.times) = (shared.past(), shared.times());
    screen.is_unsound = status.verdict != Verdict::Passed;
    let fresh = (!fresh.gpus.is_empty()).then_some(fresh);
    (!screen.gpus.is_empty()).then_some((screen, fresh))
}

/// Mean of a node as a whole: that of its GPUs.
fn node_past(gpus: &[Past]) -> Past {
    let means: Vec<f64> = gpus.iter().map(|past| past.mean).collect();
    Past {
        count: gpus.iter().map(|past| past.count).min().unwrap_or_default(),
        mean: trimmed_mean(&means).unwrap_or_default(),
        ..Past::default()
    }
}
