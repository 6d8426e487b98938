//! docs/api.md: every field of the resource, printed from the CustomResourceDefinition.

use std::fmt::Write as _;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

use crate::page::one_line;

const INTRODUCTION: &str = "\
<!-- Generated from the code: run `just generate`. -->
# API

## PerfValidation

Group `perfvalidation.dev`, version `v1alpha1`, namespaced, short name `perfval`. `kubectl explain perfvalidation.spec.benchmark`
prints the same in a terminal. Durations are Go durations such as `90s`. Numbers that may have decimals are quantities, as strings.
`status.operatorState` is private: it may change with every version. *Refused* lists the API server's answers to a manifest that breaks a rule.

## NodePerformance

Group `perfvalidation.dev`, version `v1alpha1`, cluster-scoped, short name `nodeperf`. The operator writes it after each run; its spec is empty. Its status is
[near the end](#nodeperformancestatus).

## PerfValidationPolicy

Group `perfvalidation.dev`, version `v1alpha1`, cluster-scoped, short name `perfpol`. [Validate every node](fleet.md#validate-every-node) is the guide; the fields
are [at the end](#perfvalidationpolicyspec).
";

/// Fields whose content is a type of Kubernetes' own, documented there.
const KUBERNETES_TYPES: [(&str, &str); 10] = [
    ("conditions", "Condition"),
    ("containerSecurityContext", "SecurityContext"),
    ("deviceTolerations", "DeviceToleration"),
    ("env", "EnvVar"),
    ("imagePullSecrets", "LocalObjectReference"),
    ("nodeSelector", "LabelSelector"),
    ("resources", "ResourceRequirements"),
    ("securityContext", "PodSecurityContext"),
    ("tokenSecretRef", "SecretKeySelector"),
    ("tolerations", "Toleration"),
];

/// Object that contains the spec of another kind, which has its own section.
const TEMPLATE: &str = ".validationTemplate";

/// The whole page.
pub fn api() -> String {
    let mut page = INTRODUCTION.to_owned();
    let crd = perfval_api::crd();
    let versions = crd.spec.versions.into_iter();
    let roots = versions.filter_map(|version| version.schema?.open_api_v3_schema?.properties);
    for (name, schema) in roots.flatten() {
        object(&mut page, &name, &schema);
    }
    let [_, nodes, policies] = perfval_api::crds();
    for crd in [nodes, policies] {
        let kind = crd.spec.names.kind;
        let roots = crd.spec.versions.into_iter();
        let roots = roots.filter_map(|version| version.schema?.open_api_v3_schema?.properties);
        for (name, schema) in roots.flatten() {
            // The spec of a NodePerformance is empty.
            if schema.properties.is_some() {
                object(&mut page, &format!("{kind}.{name}"), &schema);
            }
        }
    }
    page
}

/// The section of an object, then those of the objects in it.
fn object(page: &mut String, path: &str, schema: &JSONSchemaProps) {
    let fields = schema.properties.iter().flatten();
    let _ = write!(
        page,
        "\n## {path}\n\n{}\n\n| field | type | meaning |\n|---|---|---|\n",
        description(schema)
    );
    let mut refused: Vec<_> = rules(schema).map(|message| format!("* {message}\n")).collect();
    let mut below = Vec::new();
    for (name, field) in fields {
        let required = schema.required.iter().flatten().any(|required| required == name);
        let mut inner = inner(name, field).map(|(inner, schema)| (format!("{path}.{inner}"), schema));
        let mut shown = type_of(name, field);
        if path.ends_with(TEMPLATE) && name == "spec" {
            inner = None;
            "[spec](#spec) of a PerfValidation".clone_into(&mut shown);
        }
        if let Some((section, _)) = &inner {
            shown = shown.replace("object", &format!("[object](#{})", anchor(section)));
        }
        if required {
            shown.push_str(", required");
        }
        let _ = writeln!(page, "| `{name}` | {} | {} |", cell(&shown), cell(&description(field)));
        // The rules of an object are in its own section.
        if inner.as_ref().is_none_or(|(_, schema)| !std::ptr::eq(*schema, field)) {
            refused.extend(rules(field).map(|message| format!("* `{name}`: {message}\n")));
        }
        below.extend(inner);
    }
    if !refused.is_empty() {
        let _ = write!(page, "\nRefused:\n\n{}", refused.concat());
    }
    for (section, schema) in below {
        object(page, &section, schema);
    }
}

/// The object that a field holds, or each element of its list, if its type belongs to this API.
fn inner<'a>(name: &str, field: &'a JSONSchemaProps) -> Option<(String, &'a JSONSchemaProps)> {
    if kubernetes_type(name).is_some() {
        return None;
    }
    let (path, schema) = match &field.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => (format!("{name}[]"), item.as_ref()),
        _ => (name.to_owned(), field),
    };
    schema.properties.is_some().then_some((path, schema))
}

/// Anchor that Markdown gives a heading.
fn anchor(section: &str) -> String {
    section.replace(['.', '[', ']'], "").to_lowercase()
}

fn kubernetes_type(name: &str) -> Option<&'static str> {
    let found = KUBERNETES_TYPES.iter().find(|(field, _)| *field == name);
    found.map(|(_, kind)| *kind)
}

fn type_of(name: &str, schema: &JSONSchemaProps) -> String {
    if let Some(values) = &schema.enum_ {
        let values = values
            .iter()
            .filter_map(|JSON(value)| Some(format!("`{}`", value.as_str()?)));
        return values.collect::<Vec<_>>().join(", ");
    }
    let kind = schema.type_.as_deref();
    match (kind, &schema.items, &schema.additional_properties) {
        (Some("array"), Some(JSONSchemaPropsOrArray::Schema(item)), _) => {
            let item = kubernetes_type(name).map_or_else(|| type_of("", item), str::to_owned);
            format!("list of {item}")
        }
        (Some("object"), _, Some(JSONSchemaPropsOrBool::Schema(value))) => format!("map of {}", type_of("", value)),
        _ => kubernetes_type(name).or(kind).unwrap_or("integer or string").to_owned(),
    }
}

fn description(schema: &JSONSchemaProps) -> String {
    one_line(schema.description.as_deref().unwrap_or_default())
}

fn rules(schema: &JSONSchemaProps) -> impl Iterator<Item = &str> {
    let rules = schema.x_kubernetes_validations.iter().flatten();
    rules.filter_map(|rule| rule.message.as_deref())
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
