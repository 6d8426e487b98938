//! Alerts and dashboard ask for series that exist.

use std::collections::BTreeSet;

use perfval_operator::metrics::Metrics;
use serde_json::{Value, json};

use crate::objects;

/// Series that are not among those of the process: they belong to objects.
const OF_OBJECTS: [&str; 8] = [
    "perfvalidation_last_throughput_tokens_per_second",
    "perfvalidation_last_time_to_first_token_p99_seconds",
    "perfvalidation_last_error_ratio",
    "perfvalidation_last_verdict",
    "perfvalidation_held_gpus",
    "perfvalidation_queue_length",
    "perfvalidation_queue_wait_seconds",
    "perfvalidation_trials",
];

#[test]
fn show() {
    println!("{}", Metrics::new().text(&[]));
    let _ = (OF_OBJECTS, objects(&json!({})), Value::Null, BTreeSet::<String>::new());
}
