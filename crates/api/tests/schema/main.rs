//! Every rule and bound of the CRDs, by an independent CEL evaluator and JSON schema validator.

mod baseline;
mod policy;
mod validation;

use std::collections::BTreeSet;

use perfval_api::admission::Admission;
use serde_json::Value;

const BOUNDS: [&str; 6] = ["minimum", "maximum", "maxLength", "maxItems", "maxProperties", "enum"];
/// Bounds of Kubernetes' own types: one general case per kind, not one per field.
const EMBEDDED: [&str; 9] = [
    "/env/items/",
    "/tolerations/items/",
    "/deviceTolerations/items/",
    "/resources/",
    "/securityContext/",
    "/containerSecurityContext/",
    "/tokenSecretRef/",
    "/imagePullSecrets/items/",
    "/nodeSelector/properties/",
];
/// Spec of the validations of a policy. The cases of `PerfValidation` break its rules and bounds.
const TEMPLATE: &str = "/validationTemplate/properties/spec";

/// Visits each schema with its location in the whole.
fn walk(schema: &Value, location: &str, visit: &mut dyn FnMut(&Value, &str)) {
    visit(schema, location);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        walk(property, &format!("{location}/properties/{name}"), visit);
    }
    for part in ["items", "additionalProperties"] {
        if schema[part].is_object() {
            walk(&schema[part], &format!("{location}/{part}"), visit);
        }
    }
}

/// Every rule of a schema but those of its status, as a refusal has it.
fn rules(schema: &Value) -> BTreeSet<String> {
    let mut rules = BTreeSet::new();
    walk(schema, "", &mut |schema, location| {
        if location.contains(TEMPLATE) || location.starts_with("/properties/status") {
            return;
        }
        let names = location
            .split('/')
            .filter(|part| !["", "properties", "items"].contains(part));
        let path = names.collect::<Vec<_>>().join(".");
        for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
            assert!(rule["message"].is_string(), "{path}: a rule without a message");
            rules.insert(format!("{path} {}", rule["rule"].as_str().expect("text")));
        }
    });
    rules
}

/// Every bound of our own fields in the spec of a schema, as a refusal has it.
fn bounds(schema: &Value) -> BTreeSet<String> {
    let mut bounds = BTreeSet::new();
    let spec = &schema["properties"]["spec"];
    walk(spec, "/properties/spec", &mut |schema, location| {
        let is_embedded = EMBEDDED.iter().any(|part| location.contains(part));
        if !is_embedded && !location.contains(TEMPLATE) {
            let here = BOUNDS.iter().filter(|bound| schema.get(**bound).is_some());
            bounds.extend(here.map(|bound| format!("{location}/{bound}")));
        }
    });
    bounds
}

/// Rules and bounds that none of these manifests breaks.
fn list_unbroken(admission: &Admission, manifests: impl Iterator<Item = Value>) -> Vec<String> {
    let refusals = manifests.flat_map(|manifest| admission.list_refusals(&manifest));
    let broken: BTreeSet<String> = refusals.map(|refusal| refusal.rule).collect();
    let schema = admission.schema();
    let all = rules(schema).into_iter().chain(bounds(schema));
    all.filter(|rule| !broken.contains(rule)).collect()
}

/// The object with one value at a JSON pointer below its spec. A list gets the value at its end; null removes a field.
fn with(mut object: Value, pointer: &str, value: &Value) -> Value {
    let (parent, field) = pointer.rsplit_once('/').expect("a pointer");
    let mut at = &mut object["spec"];
    for part in parent.split('/').filter(|part| !part.is_empty()) {
        at = match part.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[part],
        };
    }
    if let Some(list) = at.as_array_mut() {
        list.push(value.clone());
    } else if value.is_null() {
        at.as_object_mut().expect("an object").remove(field);
    } else {
        at[field] = value.clone();
    }
    object
}
