//! A small object for unit tests.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The object `perf/run` with further metadata and this status.
pub fn object<T: DeserializeOwned>(metadata: &Value, status: &Value) -> T {
    let mut object = json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation",
        "metadata": {"name": "run", "namespace": "perf"},
        "spec": {"model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1.4.2"}}},
        "status": status,
    });
    json_patch::merge(&mut object["metadata"], metadata);
    serde_json::from_value(object).expect("well-formed")
}
