//! Order in which nodes are measured: the risky and the long unseen first.

use serde::{Deserialize, Serialize};

/// Sign of trouble. Each one multiplies the rate at which faults are expected; the factors are rough and easy to check.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RiskFactor {
    /// An XID or an uncorrected memory error in the last 7 days.
    RecentError,
    /// Repaired or replaced in the last 30 days.
    Repaired,
    /// Slow last time, but not confirmed.
    Unconfirmed,
    /// The CUSUM of a GPU is above half of its limit.
    Drifting,
    /// Another node of its rack failed in the last 7 days.
    RackFailure,
}

impl RiskFactor {
    /// Ratio of fault rates with and without the sign.
    pub const fn ratio(self) -> f64 {
        match self {
            Self::RecentError => 8.0,
            Self::Repaired | Self::Unconfirmed | Self::Drifting => 4.0,
            Self::RackFailure => 2.0,
        }
    }
}

/// Node that waits for its next measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitingNode {
    /// Name of the node.
    pub node: String,
    /// Seconds since its last verdict, or since it was first seen.
    pub age: f64,
    /// Signs of trouble; each counts once.
    pub factors: Vec<RiskFactor>,
}

impl WaitingNode {
    /// Square root of the expected fault rate (1 is usual) times the age. Checks that follow the square root leave faults
    /// unseen for the shortest time: 7.5 days where a fixed order leaves 9.3 (rates that differ by a factor of e).
    pub fn score(&self) -> f64 {
        let mut factors = self.factors.clone();
        factors.sort_unstable();
        factors.dedup();
        let hazard: f64 = factors.into_iter().map(RiskFactor::ratio).product();
        hazard.sqrt() * self.age.max(0.0)
    }
}

/// Sorts nodes so that the first is measured first. Nodes older than `cap` seconds come before all others, the oldest
/// first, so that each one gets its turn. Equal nodes are in the order of their names.
pub fn order(nodes: &mut [WaitingNode], cap: f64) {
    let key = |node: &WaitingNode| {
        let overdue = node.age > cap;
        (overdue, if overdue { node.age } else { node.score() })
    };
    nodes.sort_by(|a, b| {
        let (first, second) = (key(a), key(b));
        let order = second.0.cmp(&first.0).then(second.1.total_cmp(&first.1));
        order.then_with(|| a.node.cmp(&b.node))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(node: &str, age: f64, factors: &[RiskFactor]) -> WaitingNode {
        WaitingNode {
            node: node.to_owned(),
            age,
            factors: factors.to_vec(),
        }
    }

    #[test]
    fn risky_nodes_come_earlier_but_overdue_ones_first() {
        let mut nodes = [
            waiting("b", 100.0, &[]),
            waiting("a", 100.0, &[]),
            waiting("risky", 60.0, &[RiskFactor::Repaired, RiskFactor::Repaired]),
            waiting("overdue", 201.0, &[]),
            waiting("risky-and-older", 199.0, &[RiskFactor::RecentError]),
        ];
        order(&mut nodes, 200.0);
        let names: Vec<&str> = nodes.iter().map(|node| node.node.as_str()).collect();
        assert_eq!(names, ["overdue", "risky-and-older", "risky", "a", "b"]);
    }
}
