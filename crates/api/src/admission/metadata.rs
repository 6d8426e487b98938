//! Metadata of an object. The API server checks it without a schema in the CRD.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

/// Fields with a time.
const TIMES: [&str; 2] = ["creationTimestamp", "deletionTimestamp"];

/// Schema of the metadata, with every field that an API server has.
pub fn schema() -> Value {
    let (text, number, list) = (
        json!({"type": "string"}),
        json!({"type": "integer"}),
        json!({"type": "array"}),
    );
    let texts = json!({"type": "object", "additionalProperties": text});
    json!({"type": "object", "default": {}, "properties": {
        "name": text, "generateName": text, "namespace": text, "labels": texts, "annotations": texts,
        "uid": text, "resourceVersion": text, "generation": number, "selfLink": text, "creationTimestamp": text,
        "deletionTimestamp": text, "deletionGracePeriodSeconds": number,
        "finalizers": {"type": "array", "items": text}, "ownerReferences": list, "managedFields": list,
    }})
}

/// Returns true for the name of a namespace: lower-case letters, digits and `-`, with a letter or digit at both ends.
pub fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let has_ends = !text.is_empty() && !text.starts_with('-') && !text.ends_with('-');
    has_ends && text.bytes().all(is_inner)
}

/// Returns true for the name of an object: one label, or several with dots between them.
pub fn is_name(text: &str) -> bool {
    text.split('.').all(is_label)
}

/// Names that no object and no namespace can have: each field with its fault.
pub fn wrong_names(metadata: &Value) -> Vec<(&'static str, String)> {
    let name = metadata["name"].as_str().filter(|name| !is_name(name));
    let name = name.map(|name| {
        (
            "name",
            format!("{name:?}: write lower-case letters, digits, '-' and '.'"),
        )
    });
    let namespace = metadata["namespace"].as_str().filter(|name| !is_label(name));
    let namespace = namespace.map(|name| {
        (
            "namespace",
            format!("{name:?}: write lower-case letters, digits and '-'"),
        )
    });
    name.into_iter().chain(namespace).collect()
}

/// Fields of the right type that the API server cannot read: each with its fault.
pub fn unreadable(metadata: &Value) -> Vec<(String, String)> {
    let fields = metadata.as_object().into_iter().flatten();
    let faults = fields.filter_map(|(field, value)| {
        let error = serde_json::from_value::<ObjectMeta>(json!({ field: value })).err()?;
        let message = if TIMES.contains(&field.as_str()) {
            format!("{value} is no time: write one such as 2026-01-31T12:00:00Z, or leave it out")
        } else {
            error.to_string()
        };
        Some((field.clone(), message))
    });
    faults.collect()
}

/// The manifest with a name, which rules read. The API server makes one of `generateName`.
pub fn named(manifest: &Value) -> Value {
    let mut named = manifest.clone();
    let name = &mut named["metadata"]["name"];
    if name.is_null() {
        *name = "a".into();
    }
    named
}
