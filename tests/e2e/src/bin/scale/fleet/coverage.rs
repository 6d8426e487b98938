//! Nodes with a verdict, and reasons of those without.

use std::collections::{BTreeMap, BTreeSet};

use super::super::serve;
use super::hardware::{Fault, Hardware};
use super::laws::Laws;

/// Coverage of the fleet.
#[derive(Debug, Default)]
pub struct Coverage {
    pub covered: usize,
    /// Nodes without a verdict that wait for their turn.
    pub due: usize,
    /// The other nodes without a verdict, by reason.
    pub without: BTreeMap<String, usize>,
    /// Nodes that were idle once and stayed.
    pub idle_once: usize,
}

impl Coverage {
    pub fn of(hardware: &Hardware, laws: &Laws, left: &BTreeSet<usize>, is_freed: bool) -> Self {
        let mut coverage = Self::default();
        for index in 0..hardware.nodes {
            let (name, fault) = (serve::name(index), hardware.fault(index));
            let is_busy = fault == Some(Fault::Busy) || fault == Some(Fault::BusyForAWhile) && !is_freed;
            let is_gone = left.contains(&index);
            coverage.idle_once += usize::from(!is_busy && !is_gone);
            let reason = if laws.covered.contains(&name) {
                coverage.covered += 1;
                continue;
            } else if is_gone {
                "left the cluster during its run".to_owned()
            } else if is_busy {
                "busy all the time".to_owned()
            } else if let Some(reason) = laws.unmeasured.get(&name) {
                format!("paused after {reason}")
            } else {
                coverage.due += 1;
                continue;
            };
            *coverage.without.entry(reason).or_default() += 1;
        }
        coverage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_without_a_verdict_has_a_reason_or_is_due() {
        let hardware = Hardware::new(50);
        let fault = |wanted: Fault| {
            hardware
                .faults()
                .find(|(_, fault)| *fault == wanted)
                .map(|(index, _)| index)
        };
        let (busy, leaves) = (fault(Fault::Busy), fault(Fault::Leaves));
        assert!(busy.is_some());
        let left: BTreeSet<usize> = leaves.into_iter().collect();
        let mut laws = Laws::default();
        let healthy = (0..50)
            .find(|index| hardware.fault(*index).is_none())
            .unwrap_or_default();
        laws.covered.insert(serve::name(healthy));
        let coverage = Coverage::of(&hardware, &laws, &left, true);
        assert_eq!((coverage.covered, coverage.due, coverage.idle_once), (1, 47, 48));
        assert_eq!(coverage.without.values().sum::<usize>(), 2);
    }
}
