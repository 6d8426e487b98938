//! Defaults of specs.

use serde::de::DeserializeOwned;
use serde_json::json;

/// `N`, as the default of a field.
pub(crate) fn number<const N: i32>() -> i32 {
    N
}

/// A part of a spec in which each field has its default.
pub(crate) fn part<T: DeserializeOwned>() -> T {
    serde_json::from_value(json!({})).expect("each field has a default")
}

#[cfg(test)]
mod tests {
    use crate::fleet::{ActRule, Freshness, PeerRule, ReportRule, ValidationHistory};
    use crate::{Benchmark, DynamoFrontend, DynamoWorker, PlacementSpec, Timeouts, TrialsSpec};

    #[test]
    fn each_part_has_all_its_defaults() {
        let _ = (
            Benchmark::default(),
            DynamoFrontend::default(),
            PlacementSpec::default(),
        );
        let _ = (
            DynamoWorker::default(),
            Timeouts::default(),
            TrialsSpec::default(),
            Freshness::default(),
        );
        let _ = (
            ReportRule::default(),
            ActRule::default(),
            PeerRule::default(),
            ValidationHistory::default(),
        );
    }
}
