//! Parts of a spec in which each field has its default.

use crate::fleet::{ActRule, Freshness, PeerRule, ReportRule, ValidationHistory};
use crate::{Benchmark, DynamoFrontend, DynamoWorker, PlacementSpec, Timeouts, TrialsSpec};

macro_rules! default_by_fields {
    ($($part:ident),+) => {
        $(impl Default for $part {
            fn default() -> Self {
                serde_json::from_value(serde_json::json!({})).expect("each field has a default")
            }
        })+

        #[test]
        fn each_part_has_all_its_defaults() {
            $(let _ = $part::default();)+
        }
    };
}

default_by_fields! {
    ActRule, Benchmark, DynamoFrontend, DynamoWorker, Freshness, PeerRule, PlacementSpec, ReportRule, Timeouts,
    TrialsSpec, ValidationHistory
}
