//! Every rule and bound of the CRD, by an independent CEL evaluator and JSON schema validator.

use std::collections::BTreeSet;

use jsonschema::error::ValidationErrorKind;
use kube::core::cel::{ValidationErrors, Validator};
use perfval_testkit::admission::{Case, Rejected, cases};
use serde_json::Value;

/// Bounds of Kubernetes' own types: one general case per kind, not one per field.
const EMBEDDED: [&str; 5] = [
    "/env/items/",
    "/tolerations/items/",
    "/resources/",
    "/tokenSecretRef/",
    "/imagePullSecrets/items/",
];

/// Where a manifest is refused, by which rule or bound, and with what words.
struct Refusal {
    path: String,
    location: String,
    message: String,
}

struct Admission {
    schema: Value,
    bounds: jsonschema::Validator,
}

impl Admission {
    fn new() -> Self {
        let crd = perfval_api::crd();
        let schema = crd.spec.versions[0].schema.as_ref().expect("a schema");
        let schema = serde_json::to_value(&schema.open_api_v3_schema).expect("a JSON form");
        Self {
            bounds: jsonschema::validator_for(&schema).expect("a JSON schema"),
            schema,
        }
    }

    fn by_rules(&self, manifest: &Value) -> Vec<Refusal> {
        let errors = Validator::new().validate(&self.schema, manifest, None).err();
        let errors = errors.into_iter().flat_map(ValidationErrors::into_vec);
        errors
            .map(|error| Refusal {
                location: format!("{} {}", without_indices(&error.field_path), error.rule),
                path: error.field_path,
                message: error.message,
            })
            .collect()
    }

    fn by_bounds(&self, manifest: &Value) -> Vec<Refusal> {
        let refusal = |error: jsonschema::ValidationError<'_>| {
            let mut path = error.instance_path().to_string();
            if let ValidationErrorKind::Required { property } = error.kind() {
                path = format!("{path}/{}", property.as_str().unwrap_or_default());
            }
            Refusal {
                path: dotted(&path),
                location: error.schema_path().to_string(),
                message: error.to_string(),
            }
        };
        self.bounds.iter_errors(manifest).map(refusal).collect()
    }
}

/// `/spec/gates/0/name` as `spec.gates[0].name`.
fn dotted(pointer: &str) -> String {
    pointer
        .split('/')
        .skip(1)
        .fold(String::new(), |path, part| match part.parse::<usize>() {
            Ok(index) => format!("{path}[{index}]"),
            Err(_) if path.is_empty() => part.to_owned(),
            Err(_) => format!("{path}.{part}"),
        })
}

/// `spec.gates[0].name` as `spec.gates.name`.
fn without_indices(path: &str) -> String {
    path.split('[')
        .map(|part| part.split_once(']').map_or(part, |(_, rest)| rest))
        .collect()
}

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

#[test]
fn every_case_is_answered_as_the_table_says() {
    let admission = Admission::new();
    for Case {
        name,
        manifest,
        rejected,
    } in cases()
    {
        let rules = admission.by_rules(&manifest);
        let bounds = admission.by_bounds(&manifest);
        let all = rules.iter().chain(&bounds);
        let said: Vec<_> = all.map(|r| format!("{}: {}", r.path, r.message)).collect();
        match rejected {
            // The keys of a list are known to the API server alone.
            None | Some(Rejected::Duplicate(_)) => assert!(said.is_empty(), "{name}: refused: {said:#?}"),
            Some(Rejected::Rule(words)) => {
                let refused = rules.iter().any(|r| r.message.contains(&words));
                assert!(refused, "{name}: no {words:?} in {said:#?}");
            }
            Some(Rejected::Schema(field)) => {
                let refused = bounds.iter().any(|r| r.path == field);
                assert!(refused, "{name}: {field} is not refused: {said:#?}");
            }
        }
    }
}

#[test]
fn case_names_are_unique() {
    let mut seen = BTreeSet::new();
    for case in cases() {
        assert!(seen.insert(case.name.clone()), "{} is there twice", case.name);
    }
}

#[test]
fn every_rule_is_broken_by_a_case() {
    let admission = Admission::new();
    let mut broken = BTreeSet::new();
    for case in cases() {
        if let Some(Rejected::Rule(words)) = &case.rejected {
            let refusals = admission.by_rules(&case.manifest).into_iter();
            broken.extend(refusals.filter(|r| r.message.contains(words)).map(|r| r.location));
        }
    }
    let mut rules = BTreeSet::new();
    walk(&admission.schema, "", &mut |schema, location| {
        let names = location
            .split('/')
            .filter(|part| !["", "properties", "items"].contains(part));
        let path = names.collect::<Vec<_>>().join(".");
        for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
            assert!(rule["message"].is_string(), "{path}: a rule without a message");
            rules.insert(format!("{path} {}", rule["rule"].as_str().unwrap()));
        }
    });
    let unbroken: Vec<_> = rules.difference(&broken).collect();
    assert!(unbroken.is_empty(), "no case breaks {unbroken:#?}");
}

#[test]
fn every_bound_of_our_own_fields_is_broken_by_a_case() {
    const BOUNDS: [&str; 6] = ["minimum", "maximum", "maxLength", "maxItems", "maxProperties", "enum"];

    let admission = Admission::new();
    let refused = cases().into_iter().filter(|case| case.rejected.is_some());
    let broken: BTreeSet<_> = refused
        .flat_map(|case| admission.by_bounds(&case.manifest))
        .map(|refusal| refusal.location)
        .collect();
    let mut bounds = BTreeSet::new();
    walk(
        &admission.schema["properties"]["spec"],
        "/properties/spec",
        &mut |schema, location| {
            if !EMBEDDED.iter().any(|part| location.contains(part)) {
                let here = BOUNDS.iter().filter(|bound| schema.get(**bound).is_some());
                bounds.extend(here.map(|bound| format!("{location}/{bound}")));
            }
        },
    );
    let unbroken: Vec<_> = bounds.difference(&broken).collect();
    assert!(unbroken.is_empty(), "no case breaks {unbroken:#?}");
}

#[test]
fn everything_in_the_spec_is_bounded_and_described() {
    let admission = Admission::new();
    walk(&admission.schema["properties"]["spec"], "spec", &mut |schema, at| {
        let has = |key: &str| schema.get(key).is_some();
        let bounded = match schema["type"].as_str() {
            Some("string") => has("enum") || has("maxLength"),
            Some("array") => has("maxItems"),
            Some("integer") => has("minimum") && has("maximum"),
            Some("object") => has("properties") || has("maxProperties"),
            Some("boolean") => true,
            None => has("x-kubernetes-int-or-string") && has("pattern"),
            Some(other) => panic!("{at}: {other} has no exact form in the Kubernetes API"),
        };
        assert!(bounded, "{at} is not bounded: {schema:#}");
        let format = schema["format"].as_str().unwrap_or("int64");
        assert!(
            ["int32", "int64"].contains(&format),
            "{at}: the API server warns about the format {format}"
        );
        if at.rsplit('/').nth(1) == Some("properties") {
            assert!(has("description"), "{at} is not described");
        }
    });
}
