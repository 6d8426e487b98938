//! At least one manifest that keeps and one that breaks each CEL rule.

mod benchmark;
mod gates;
mod model;
mod placement;
mod pods;
mod telemetry;
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
        pods::cases(),
        placement::cases(),
        benchmark::cases(),
        telemetry::cases(),
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
            name: "name of 63 characters".into(),
            manifest: named(63),
            rejected: None,
        },
        Case {
            name: "name of 64 characters".into(),
            manifest: named(64),
            rejected: Some(Rejected::Rule("write at most 63 characters".into())),
        },
    ]
}
