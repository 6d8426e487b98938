//! Every rule and bound of the CRD with manifests that keep and break it.
//!
//! One table for two users: the CEL evaluator and JSON schema validator in `perfval-api`'s tests, and a real API server.

mod bounds;
mod rules;

use serde_json::{Value, json};

/// One manifest and the API server's answer to it.
#[derive(Clone, Debug)]
pub struct Case {
    /// What the case shows, unique.
    pub name: String,
    /// A whole `PerfValidation`.
    pub manifest: Value,
    /// How it is refused; `None`: it is accepted.
    pub rejected: Option<Rejected>,
}

/// How a manifest is refused.
#[derive(Clone, Debug)]
pub enum Rejected {
    /// By a CEL rule, with this in its message.
    Rule(String),
    /// By a bound, pattern, enum or type of this field (dotted path).
    Schema(String),
    /// Because this element of a list has the key of another (dotted path).
    Duplicate(String),
}

/// Every case.
pub fn cases() -> Vec<Case> {
    let mut cases = rules::cases();
    cases.extend(bounds::cases());
    cases
}

/// The smallest manifest that is accepted, changed by a JSON merge patch of its `spec`.
pub fn with_spec(patch: Value) -> Value {
    with(Value::from_iter([("spec", patch)]))
}

/// The smallest manifest that is accepted, changed by a JSON merge patch (RFC 7396).
pub fn with(patch: Value) -> Value {
    let mut manifest = json!({
        "apiVersion": "perfvalidation.dev/v1alpha1",
        "kind": "PerfValidation",
        "metadata": {"name": "admission", "namespace": "default"},
        "spec": {
            "model": {"name": "Qwen/Qwen3-8B"},
            "workload": {"dynamo": {"image": "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.6.1"}},
        },
    });
    merge(&mut manifest, patch);
    manifest
}

/// Applies a JSON merge patch (RFC 7396): `null` removes a field.
pub fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().map(|object| object.remove(&key));
        } else {
            merge(&mut target[key], value);
        }
    }
}

fn accepted(name: impl Into<String>, spec: Value) -> Case {
    Case {
        name: name.into(),
        manifest: with_spec(spec),
        rejected: None,
    }
}

fn refused(name: impl Into<String>, spec: Value, message: &str) -> Case {
    Case {
        name: name.into(),
        manifest: with_spec(spec),
        rejected: Some(Rejected::Rule(message.to_owned())),
    }
}

fn out_of_schema(name: impl Into<String>, spec: Value, path: &str) -> Case {
    Case {
        name: name.into(),
        manifest: with_spec(spec),
        rejected: Some(Rejected::Schema(path.to_owned())),
    }
}
