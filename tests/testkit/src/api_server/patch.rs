//! The three patches the operator uses.

use serde_json::Value;

use super::refusal::Refusal;

/// JSON patch. A `test` against null holds where nothing is: so does the API server's library.
pub(super) fn json(object: &mut Value, operations: &Value) -> Result<(), Refusal> {
    let invalid = |text: String| Refusal::new(422, "Invalid", text);
    let mut operations = operations.clone();
    if let Some(all) = operations.as_array_mut() {
        all.retain(|operation| {
            let path = operation["path"].as_str().unwrap_or_default();
            let tests_null = operation["op"] == "test" && operation["value"].is_null();
            !(tests_null && object.pointer(path).is_none())
        });
    }
    let patch: json_patch::Patch = serde_json::from_value(operations).map_err(|error| invalid(error.to_string()))?;
    json_patch::patch(object, &patch).map_err(|error| invalid(error.to_string()))
}

/// Server-side apply by one manager: what it applied before and leaves out now goes. Lists count as one value, which is
/// right as long as no one else writes to them.
pub(super) fn apply(object: &mut Value, before: Option<&Value>, now: &Value) {
    if let Some(before) = before {
        remove_left_out(object, before, now);
    }
    merge(object, now);
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

fn remove_left_out(object: &mut Value, before: &Value, now: &Value) {
    let (Value::Object(object), Value::Object(before)) = (object, before) else {
        return;
    };
    for (key, was) in before {
        match now.get(key) {
            Some(is) => {
                if let Some(inner) = object.get_mut(key) {
                    remove_left_out(inner, was, is);
                }
            }
            None => {
                object.remove(key);
            }
        }
    }
}
