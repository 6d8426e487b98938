//! Each `CustomResourceDefinition`: the schema that the types derive, and the parts that the derive cannot express.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use serde_json::{Value, json};

use crate::fleet::{NodePerformance, PerfBaseline, PerfValidationPolicy};
use crate::{PerfValidation, Phase};

/// Message of an object until an operator has read it.
pub const UNSEEN: &str = "waiting for an operator; if this lasts, check that one runs and watches this namespace";

/// Longest string, list and map of a spec field without a bound of its own (parts of Kubernetes' own types). Without a
/// bound the API server assumes the worst case and refuses CEL rules on the field as too costly.
const STRING: i64 = 4096;
const LIST: i64 = 64;
const MAP: i64 = 64;

/// Quantity grammar of Kubernetes, as controller-gen writes it for every built-in type.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

const OPERATOR: &str = "Operator represents a key's relationship to the value. Valid operators are Exists and Equal. Defaults to Equal. Exists is \
                        equivalent to wildcard for value, so that a pod can tolerate all taints of a particular category.";

/// CustomResourceDefinition of `PerfValidation`, ready to apply.
pub fn crd() -> CustomResourceDefinition {
    let mut crd = PerfValidation::crd();
    let unseen = json!({"observedGeneration": -1, "phase": Phase::Pending, "message": UNSEEN});
    finish(&mut crd, &unseen);
    crd
}

/// CustomResourceDefinition of `PerfValidationPolicy`, ready to apply.
pub fn policy_crd() -> CustomResourceDefinition {
    let mut crd = PerfValidationPolicy::crd();
    finish(&mut crd, &json!({"observedGeneration": -1}));
    crd
}

/// CustomResourceDefinition of `PerfBaseline`, ready to apply.
pub fn baseline_crd() -> CustomResourceDefinition {
    let mut crd = PerfBaseline::crd();
    finish(&mut crd, &json!({"observedGeneration": -1}));
    crd
}

/// Every CustomResourceDefinition, ready to apply.
pub fn crds() -> [CustomResourceDefinition; 4] {
    let mut nodes = NodePerformance::crd();
    for (_, schema) in parts(&mut nodes) {
        visit(schema, &mut drop_nullable);
    }
    [crd(), nodes, policy_crd(), baseline_crd()]
}

/// Adds to a kind that users write what the derive cannot express. `default` is the status of a new object.
fn finish(crd: &mut CustomResourceDefinition, default: &Value) {
    for (name, schema) in parts(crd) {
        visit(schema, &mut drop_nullable);
        visit(schema, &mut describe_operator);
        if name == "spec" {
            visit(schema, &mut bound);
            visit(schema, &mut describe_default);
        } else {
            // A default of a single field would hide that the operator has not read the object. The default of the
            // whole status shows it. Without that default kstatus reads an object without status as done. Of a
            // thousand objects created at once, two thirds had no status for more than 2 s.
            visit(schema, &mut |s| s.default = None);
            schema.default = Some(JSON(default.clone()));
        }
    }
}

/// Schemas of spec and status.
fn parts(crd: &mut CustomResourceDefinition) -> impl Iterator<Item = (&String, &mut JSONSchemaProps)> {
    let roots = crd.spec.versions.iter_mut();
    let roots = roots.filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut());
    roots.flat_map(|root| root.properties.iter_mut().flatten())
}

/// Value at the JSON path of a printer column: fields, and the last element of a list.
pub fn printer_cell(object: &Value, path: &str) -> String {
    let step = |value: &Value, part: &str| match part.strip_suffix("[-1:]") {
        Some(list) => value[list]
            .as_array()
            .and_then(|list| list.last().cloned())
            .unwrap_or_default(),
        None => value[part].clone(),
    };
    let parts = path.trim_start_matches('.').split('.');
    match parts.fold(object.clone(), |value, part| step(&value, part)) {
        Value::Null => String::new(),
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn visit(schema: &mut JSONSchemaProps, change: &mut dyn FnMut(&mut JSONSchemaProps)) {
    change(schema);
    for property in schema.properties.iter_mut().flat_map(|p| p.values_mut()) {
        visit(property, change);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        visit(items, change);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        visit(values, change);
    }
}

/// Makes absence the only form of an unset field. The API server then prunes an explicit null.
fn drop_nullable(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
}

/// Replaces the description by Kubernetes, because it offers two toleration operators that the spec refuses.
fn describe_operator(schema: &mut JSONSchemaProps) {
    let operator = schema.properties.as_mut().and_then(|all| all.get_mut("operator"));
    let description = operator.and_then(|operator| operator.description.as_mut());
    if let Some(description) = description.filter(|text| text.contains("Exists, Equal, Lt, and Gt")) {
        OPERATOR.clone_into(description);
    }
}

fn bound(schema: &mut JSONSchemaProps) {
    if schema.x_kubernetes_int_or_string == Some(true) {
        schema.pattern.get_or_insert_with(|| QUANTITY.to_owned());
        schema.max_length.get_or_insert(64);
    }
    match schema.type_.as_deref() {
        Some("string") if schema.enum_.is_none() => _ = schema.max_length.get_or_insert(STRING),
        Some("array") => _ = schema.max_items.get_or_insert(LIST),
        Some("object") if schema.additional_properties.is_some() => _ = schema.max_properties.get_or_insert(MAP),
        Some("integer") => {
            schema.minimum.get_or_insert(0.0);
            schema.maximum.get_or_insert(9_007_199_254_740_991.0); // 2^53 - 1, the largest a JSON number keeps
        }
        _ => {}
    }
}

/// Adds the default to the description, because `kubectl explain` prints no defaults.
fn describe_default(schema: &mut JSONSchemaProps) {
    let Some(JSON(value)) = &schema.default else { return };
    let shown = match value {
        Value::String(text) if !text.is_empty() => text.clone(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        _ => return,
    };
    let description = schema.description.get_or_insert_default();
    *description = format!("{} Default: {shown}.", description.trim_end());
}
