//! Admission of a manifest without an API server: the schema's bounds, the CEL rules and the keys of lists.

mod metadata;
mod wording;

use std::collections::BTreeSet;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::cel::{ValidationErrors, Validator, apply_defaults};
use serde_json::{Value, json};

use crate::{PerfValidation, crd};

pub use metadata::{is_label, is_name};
use metadata::{named, unreadable, wrong_names};
use wording::{explain, nearest};

/// Schema of the CRD, ready to judge manifests.
pub struct Admission {
    kind: String,
    schema: Value,
    /// The schema with that of the metadata, and with a type of each quantity.
    whole: Value,
    bounds: jsonschema::Validator,
}

/// Reason for which a manifest is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Field, such as `spec.gates[0].threshold`.
    pub path: String,
    /// Explanation of the fault, and usually the value to write instead.
    pub message: String,
    /// Rule or bound of the schema that refuses the field.
    pub rule: String,
}

/// Error for a schema of the CRD that cannot be compiled. It is a mistake in this crate, which its tests find.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the CRD's schema: {0}")]
pub struct SchemaError(String);

impl Admission {
    /// Compiles the schema of `PerfValidation`.
    pub fn new() -> Result<Self, SchemaError> {
        Self::compile(crd())
    }

    /// Compiles the schema of a kind.
    pub fn compile(crd: CustomResourceDefinition) -> Result<Self, SchemaError> {
        let schema = crd.spec.versions.first().and_then(|version| version.schema.as_ref());
        let schema = serde_json::to_value(schema.and_then(|schema| schema.open_api_v3_schema.as_ref()))
            .map_err(|error| SchemaError(error.to_string()))?;
        let mut whole = schema.clone();
        whole["properties"]["metadata"] = metadata::schema();
        type_quantities(&mut whole);
        let bounds = jsonschema::validator_for(&whole).map_err(|error| SchemaError(error.to_string()))?;
        let kind = crd.spec.names.kind;
        Ok(Self {
            kind,
            schema,
            whole,
            bounds,
        })
    }

    /// Schema in the form that the CRD contains.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// Returns the object as the API server would store it, with its defaults, or all refusals. Unknown fields are
    /// refused as by `kubectl apply`. A manifest may lack a name: sizing and judging need none.
    pub fn admit(&self, manifest: &Value) -> Result<PerfValidation, Vec<Refusal>> {
        let manifest = &without_nulls(&self.whole, manifest);
        let refusals = self.list_refusals(manifest);
        if !refusals.is_empty() {
            return Err(refusals);
        }
        serde_json::from_value(apply_defaults(&self.whole, manifest))
            .map_err(|error| vec![refusal(String::new(), error.to_string(), "type")])
    }

    /// Refusals of a manifest. Unknown fields are refused as by `kubectl apply`.
    pub fn list_refusals(&self, manifest: &Value) -> Vec<Refusal> {
        let mut refusals = wrong_kind(manifest, &self.kind);
        if refusals.is_empty() {
            unknown_fields(&self.whole, manifest, &mut refusals);
            refusals.extend(self.by_bounds(manifest));
            refusals.extend(self.by_keys(manifest));
            let names = wrong_names(&manifest["metadata"]).into_iter();
            refusals.extend(names.map(|(field, message)| refusal(format!("metadata.{field}"), message, "name")));
        }
        // Where the schema of the metadata has a fault already, this would report it again.
        if refusals.is_empty() {
            let fields = unreadable(&manifest["metadata"]).into_iter();
            refusals.extend(fields.map(|(field, message)| refusal(format!("metadata.{field}"), message, "type")));
        }
        // A value of a wrong type, or no name, would make rules fail with unclear messages.
        if refusals.is_empty() {
            refusals = self.by_rules(&named(manifest));
        }
        refusals
    }

    /// Refusals by the CEL rules.
    pub fn by_rules(&self, manifest: &Value) -> Vec<Refusal> {
        let errors = Validator::new().validate(&self.schema, manifest, None).err();
        let errors = errors.into_iter().flat_map(ValidationErrors::into_vec);
        errors
            .map(|error| Refusal {
                rule: format!("{} {}", without_indices(&error.field_path), error.rule),
                path: error.field_path,
                message: error.message,
            })
            .collect()
    }

    /// Refusals by bounds, patterns, enums, types and required fields.
    pub fn by_bounds(&self, manifest: &Value) -> Vec<Refusal> {
        let refusal = |error: ValidationError<'_>| {
            let mut path = error.instance_path().to_string();
            if let ValidationErrorKind::Required { property } = error.kind() {
                path = format!("{path}/{}", property.as_str().unwrap_or_default());
            }
            Refusal {
                path: dotted(manifest, &path),
                rule: error.schema_path().to_string(),
                message: explain(&error),
            }
        };
        self.bounds.iter_errors(manifest).map(refusal).collect()
    }

    /// Refusals of list elements that repeat the key of an earlier one.
    pub fn by_keys(&self, manifest: &Value) -> Vec<Refusal> {
        let mut refusals = Vec::new();
        visit(&self.schema, manifest, "", &mut |schema, value, path| {
            let (Some(keys), Some(items)) = (schema["x-kubernetes-list-map-keys"].as_array(), value.as_array()) else {
                return;
            };
            let mut seen = BTreeSet::new();
            for (index, item) in items.iter().enumerate() {
                let key = keys.iter().filter_map(Value::as_str).map(|key| item[key].to_string());
                let key: Vec<String> = key.collect();
                if !seen.insert(key.clone()) {
                    let message = format!("an earlier element has the same key {}", key.join(", "));
                    refusals.push(refusal(format!("{path}[{index}]"), message, "duplicate"));
                }
            }
        });
        refusals
    }
}

fn refusal(path: String, message: impl Into<String>, rule: &str) -> Refusal {
    Refusal {
        path,
        message: message.into(),
        rule: rule.to_owned(),
    }
}

/// Adds the types of values that may be a whole number or a text. The CRD has none for them, so a fraction would pass.
fn type_quantities(schema: &mut Value) {
    if schema["x-kubernetes-int-or-string"] == true {
        schema["type"] = json!(["integer", "string"]);
    }
    if let Some(fields) = schema.as_object_mut() {
        fields.values_mut().for_each(type_quantities);
    }
}

/// The value without explicit nulls. The API server drops them too, because no field of the schema is nullable.
fn without_nulls(schema: &Value, value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter_map(|(field, value)| {
                let value = match field_schema(schema, field) {
                    Some(_) if value.is_null() => return None,
                    Some(schema) => without_nulls(schema, value),
                    None => value.clone(),
                };
                Some((field.clone(), value))
            });
            kept.collect()
        }
        Value::Array(items) => items.iter().map(|item| without_nulls(&schema["items"], item)).collect(),
        other => other.clone(),
    }
}

fn wrong_kind(manifest: &Value, kind: &str) -> Vec<Refusal> {
    [("apiVersion", "perfvalidation.dev/v1alpha1"), ("kind", kind)]
        .into_iter()
        .filter(|(field, wanted)| manifest[*field] != *wanted)
        .map(|(field, wanted)| refusal(field.to_owned(), format!("write {wanted}"), "kind"))
        .collect()
}

fn unknown_fields(schema: &Value, value: &Value, refusals: &mut Vec<Refusal>) {
    visit(schema, value, "", &mut |schema, value, path| {
        let (Some(known), Some(fields)) = (schema["properties"].as_object(), value.as_object()) else {
            return;
        };
        if schema["additionalProperties"].is_object() || schema["x-kubernetes-preserve-unknown-fields"] == true {
            return;
        }
        // The API server adds apiVersion and kind to every root.
        let standard = |field: &str| path.is_empty() && ["apiVersion", "kind"].contains(&field);
        for field in fields
            .keys()
            .filter(|field| !known.contains_key(*field) && !standard(field))
        {
            let message = match nearest(field, known.keys().map(String::as_str)) {
                Some(nearest) => format!("there is no such field; did you mean {nearest}?"),
                None => "there is no such field".to_owned(),
            };
            refusals.push(refusal(below(path, field), message, "unknown"));
        }
    });
}

/// Visits every value with its schema and its path.
fn visit(schema: &Value, value: &Value, path: &str, look: &mut dyn FnMut(&Value, &Value, &str)) {
    look(schema, value, path);
    for (field, child) in value.as_object().into_iter().flatten() {
        if let Some(schema) = field_schema(schema, field) {
            visit(schema, child, &below(path, field), look);
        }
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        visit(&schema["items"], item, &format!("{path}[{index}]"), look);
    }
}

/// Schema of a field, or of the values of a map.
fn field_schema<'a>(schema: &'a Value, field: &str) -> Option<&'a Value> {
    let property = schema["properties"].get(field);
    property.or_else(|| schema.get("additionalProperties"))
}

fn below(path: &str, field: &str) -> String {
    if path.is_empty() {
        field.to_owned()
    } else {
        format!("{path}.{field}")
    }
}

/// Converts `/spec/gates/0/name` to `spec.gates[0].name`. A number is the place of an element only in a list.
fn dotted(manifest: &Value, pointer: &str) -> String {
    let mut at = Some(manifest);
    let parts = pointer
        .split('/')
        .skip(1)
        .map(|part| part.replace("~1", "/").replace("~0", "~"));
    parts.fold(String::new(), |path, part| {
        let index = part.parse::<usize>().ok().filter(|_| at.is_some_and(Value::is_array));
        if let Some(index) = index {
            at = at.and_then(|list| list.get(index));
            format!("{path}[{index}]")
        } else {
            at = at.and_then(|fields| fields.get(&part));
            below(&path, &part)
        }
    })
}

/// Converts `spec.gates[0].name` to `spec.gates.name`.
fn without_indices(path: &str) -> String {
    path.split('[')
        .map(|part| part.split_once(']').map_or(part, |(_, rest)| rest))
        .collect()
}
