//! Objects as the API server stores them, for tests that change them.

use perfval_api::PerfValidationStatus;
use serde_json::{Value, json};

/// State of the operator in a stored status, with its tables as plain fields. An operator reads these, too.
pub fn operator_state(status: &Value) -> Value {
    let status: PerfValidationStatus = serde_json::from_value(status.clone()).unwrap_or_default();
    json!(*status.state)
}

/// Replaces the packed tables in the state of a stored object by plain fields.
pub fn unpack(object: &mut Value) {
    object["status"]["operatorState"] = operator_state(&object["status"]);
}
