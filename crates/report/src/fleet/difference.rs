//! Properties that outliers share, and that nodes which pass do not.

use std::collections::{BTreeMap, BTreeSet};

use perfval_api::Verdict;

use super::data::FleetReport;

/// Most properties that are listed.
const MOST: usize = 10;
/// Fewest outliers with a property: one of them differs from others in many ways.
const FEWEST: usize = 2;

/// One value of a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SharedProperty<'a> {
    pub name: &'a str,
    pub value: &'a str,
    /// Outliers with it.
    pub odd: usize,
    /// Nodes that pass, with it.
    pub passing: usize,
}

/// Difference between outliers and nodes that pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FleetDifference<'a> {
    /// Outliers whose properties are known.
    pub odd: usize,
    /// Nodes that pass and whose properties are known.
    pub passing: usize,
    /// Properties that are more frequent among outliers, the largest difference of shares first.
    pub properties: Vec<SharedProperty<'a>>,
}

impl FleetReport {
    /// Compares outliers with nodes that pass.
    pub(super) fn difference(&self) -> FleetDifference<'_> {
        let odd = self.odd_nodes();
        let passing = self
            .measured
            .iter()
            .filter(|(name, status)| status.verdict == Verdict::Passed && !odd.contains(name.as_str()));
        let passing: BTreeSet<&str> = passing.map(|(name, _)| name.as_str()).collect();
        let mut counted: BTreeMap<(&str, &str), [usize; 2]> = BTreeMap::new();
        let mut known = [0, 0];
        for (node, properties) in self.properties.iter().flatten() {
            let place = match (odd.contains(node.as_str()), passing.contains(node.as_str())) {
                (true, _) => 0,
                (_, true) => 1,
                _ => continue,
            };
            known[place] += 1;
            for (name, value) in properties {
                counted.entry((name, value)).or_default()[place] += 1;
            }
        }
        let [odd, passing] = known;
        // Shares are compared without division.
        let excess = |[odd_with, passing_with]: [usize; 2]| (odd_with * passing).saturating_sub(passing_with * odd);
        let mut shared: Vec<((&str, &str), [usize; 2])> = counted.into_iter().collect();
        shared.retain(|(_, count)| count[0] >= FEWEST && excess(*count) > 0);
        shared.sort_by_key(|(property, count)| (std::cmp::Reverse(excess(*count)), *property));
        let properties = shared.into_iter().take(MOST);
        FleetDifference {
            odd,
            passing,
            properties: properties
                .map(|((name, value), [odd, passing])| SharedProperty {
                    name,
                    value,
                    odd,
                    passing,
                })
                .collect(),
        }
    }
}
