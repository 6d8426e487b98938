//! docs/api.md: every field of the resource, printed from the CustomResourceDefinition.

use std::fmt::Write as _;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSON, JSONSchemaProps, JSONSchemaPropsOrArray,
};

use crate::page::one_line;

const INTRODUCTION: &str = "\
<!-- Generated from the code: run `just generate`. -->
# API

Group `perfvalidation.dev`, version `v1alpha1`. `kubectl explain perfvalidation.spec.benchmark` prints the same with types.

| kind | short name | scope | written by |
|---|---|---|---|
| PerfValidation | `perfval` | namespace | users |
| [NodePerformance](#nodeperformancestatus) | `nodeperf` | cluster | the operator; its spec is empty |
| [PerfValidationPolicy](#perfvalidationpolicyspec) | `perfpol` | cluster | users; [guide](fleet.md#validate-every-node) |
| [PerfBaseline](#perfbaselinespec) | `perfbase` | cluster | the operator or users; [guide](fleet.md#use-a-baseline) |

Fields in **bold** are required. `[]` marks an element of a list. Durations are Go durations such as `90s`. Quantities are strings. The
[Kubernetes API](https://kubernetes.io/docs/reference/kubernetes-api/) describes types in parentheses.
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

/// Objects whose fields are those of another section, which their descriptions show.
const ELSEWHERE: [&str; 2] = ["validationTemplate.spec", "approved.metrics"];

/// Most values that each field lists. Longer lists are shown once: for the fields of a gate here, the phases in
/// docs/reference.md.
const MANY: usize = 8;
const GATE: &str = "gates[].";

/// Most words of an object's description that its fields make superfluous.
const FILLER: usize = 9;

/// Objects with a short description that contains a fact which no field shows.
const FACTS: [(&str, &str); 8] = [
    ("status", "gates[]"),
    ("status", "history[]"),
    ("status", "metrics"),
    ("status", "progress"),
    ("status", "trials[]"),
    ("status", "workers[].speedOfOwnPast"),
    ("PerfValidationPolicy.spec", "budgets[].window"),
    ("PerfValidationPolicy.spec", "validationHistory"),
];

/// Most fields that are printed again for an object with the same ones as an earlier one.
const FEW: usize = 1;

/// The whole page.
pub fn api() -> String {
    let mut page = INTRODUCTION.to_owned();
    let crd = perfval_api::crd();
    let versions = crd.spec.versions.into_iter();
    let roots = versions.filter_map(|version| version.schema?.open_api_v3_schema?.properties);
    for (name, schema) in roots.flatten() {
        object(&mut page, &name, &schema);
    }
    let [_, nodes, policies, baselines] = perfval_api::crds();
    for crd in [nodes, policies, baselines] {
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

/// Name, default and meaning of a field.
type Row = [String; 3];

/// The section of an object, with the fields of the objects in it.
fn object(page: &mut String, path: &str, schema: &JSONSchemaProps) {
    let mut rows = Vec::new();
    fields(&mut rows, path, "", schema);
    let _ = write!(page, "\n## {path}\n\n{}\n\n", description(schema));
    // A status has no defaults.
    let has_defaults = rows.iter().any(|[_, default, _]| !default.is_empty());
    page.push_str(if has_defaults {
        "| field | default | meaning |\n|---|---|---|\n"
    } else {
        "| field | meaning |\n|---|---|\n"
    });
    for [field, default, meaning] in rows {
        let default = if has_defaults {
            format!(" {default} |")
        } else {
            String::new()
        };
        let _ = writeln!(page, "| {field} |{default} {meaning} |");
    }
}

/// One row for each field of an object, then those of the object in it.
fn fields(rows: &mut Vec<Row>, section: &str, prefix: &str, schema: &JSONSchemaProps) {
    let all: Vec<(&String, &JSONSchemaProps)> = schema.properties.iter().flatten().collect();
    for (at, (name, field)) in all.iter().copied().enumerate() {
        let path = format!("{prefix}{name}");
        let required = schema.required.iter().flatten().any(|required| required == name);
        let inner = inner(name, field).map(|(inner, schema)| (format!("{prefix}{inner}"), schema));
        let shown = inner.as_ref().map_or(path.as_str(), |(inner, _)| inner);
        let is_fact = FACTS.contains(&(section, shown));
        let shown = if required {
            format!("**`{shown}`**")
        } else {
            format!("`{shown}`")
        };
        let (default, meaning) = default_and_meaning(name, &path, field);
        let is_equal = |(_, other): &&(&String, &JSONSchemaProps)| {
            let fields = other.properties.as_ref().filter(|fields| fields.len() > FEW);
            fields.is_some() && fields == field.properties.as_ref() && other.required == field.required
        };
        if let Some((equal, _)) = all[..at].iter().find(is_equal) {
            let meaning = format!("{meaning} Its fields are those of `{prefix}{equal}`.");
            rows.push([shown, default, cell(&meaning)]);
            continue;
        }
        // The fields of an object show what it is for.
        if required || inner.is_none() || is_fact || meaning.split_whitespace().count() > FILLER {
            rows.push([shown, default, cell(&meaning)]);
        }
        if let Some((inner, schema)) = inner.filter(|_| !ELSEWHERE.contains(&path.as_str())) {
            fields(rows, section, &format!("{inner}."), schema);
        }
    }
}

/// Default, and meaning: description, the values that it does not explain, and the type that belongs to Kubernetes.
fn default_and_meaning(name: &str, path: &str, field: &JSONSchemaProps) -> (String, String) {
    let all = description(field);
    // The description ends with the default, for `kubectl explain`.
    let (text, default) = all.rsplit_once(" Default: ").unwrap_or((all.as_str(), ""));
    let default = match default.trim_end_matches('.') {
        "" => String::new(),
        value => format!("`{value}`"),
    };
    // The introduction explains durations.
    let mut text = text.replace(" (Go duration)", "").replace("(Go duration, ", "(");
    let item = match &field.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => item,
        _ => field,
    };
    let values: Vec<String> = item
        .enum_
        .iter()
        .flatten()
        .filter_map(|JSON(value)| Some(format!("`{}`", value.as_str()?)))
        .collect();
    let is_listed = values.len() <= MANY || path.starts_with(GATE);
    if is_listed && values.iter().any(|value| !text.contains(value)) {
        let _ = write!(text, " {}.", values.join(", "));
    }
    if !is_listed {
        assert_eq!(name, "phase", "docs/reference.md lists no other values");
        text.push_str(" [Values](reference.md#phases).");
    }
    // A selector of a pod is a plain map.
    if let Some(kind) = kubernetes_type(name).filter(|_| field.additional_properties.is_none()) {
        let _ = write!(text, " ({kind})");
    }
    (default, text.trim().to_owned())
}

/// The object that a field holds, or each element of its list, if its type belongs to this API.
fn inner<'a>(name: &str, field: &'a JSONSchemaProps) -> Option<(String, &'a JSONSchemaProps)> {
    // Internal state is no part of the API.
    if kubernetes_type(name).is_some() || field.x_kubernetes_preserve_unknown_fields == Some(true) {
        return None;
    }
    let (path, schema) = match &field.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => (format!("{name}[]"), item.as_ref()),
        _ => (name.to_owned(), field),
    };
    schema.properties.is_some().then_some((path, schema))
}

fn kubernetes_type(name: &str) -> Option<&'static str> {
    let found = KUBERNETES_TYPES.iter().find(|(field, _)| *field == name);
    found.map(|(_, kind)| *kind)
}

fn description(schema: &JSONSchemaProps) -> String {
    one_line(schema.description.as_deref().unwrap_or_default())
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_objects_are_on_the_page() {
        let page = api();
        for (section, field) in FACTS {
            let (_, rows) = page.split_once(&format!("\n## {section}\n")).expect("the section");
            let rows = rows.split("\n## ").next().unwrap_or_default();
            assert!(rows.contains(&format!("\n| `{field}` | ")), "{section}: {field}");
        }
    }
}
