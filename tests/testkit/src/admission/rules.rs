//! At least one manifest that keeps and one that breaks each CEL rule.

mod benchmark;
mod gates;
mod model;
mod placement;
mod timeouts;
mod trials;
mod workload;

use serde_json::json;

use super::{Case, Rejected, with};

pub fn cases() -> Vec<Case> {
    [
        name(),
        model::cases(),
        workload::cases(),
        placement::cases(),
        benchmark::cases(),
        trials::cases(),
        gates::cases(),
        timeouts::cases(),
    ]
    .concat()
}

fn name() -> Vec<Case> {
    let named = |length: usize| with(json!({"metadata": {"name": "a".repeat(length)}}));
    vec![
        Case {
            name: "name of 40 characters".into(),
            manifest: named(40),
            rejected: None,
        },
        Case {
            name: "name of 41 characters".into(),
            manifest: named(41),
            rejected: Some(Rejected::Rule("write at most 40 characters".into())),
        },
    ]
}
