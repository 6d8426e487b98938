//! The chart's files fit each other, the workspace and the files that they are made from.

use std::collections::BTreeSet;
use std::fs;

use perfval_api::admission::Admission;
use perfval_chart::files::{CHART, generated};
use perfval_chart::render::{self, repository};
use perfval_chart::values::{at, described, leaves};
use serde_json::{Value, json};

fn yaml(file: &str) -> Value {
    serde_saphyr::from_str(&text(file)).expect("well-formed")
}

fn text(file: &str) -> String {
    fs::read_to_string(repository().join(CHART).join(file)).expect("well-formed")
}

#[test]
fn generated_files_match_their_sources() {
    for (file, expected) in generated(&repository()).expect("well-formed") {
        let found = fs::read_to_string(repository().join(&file)).unwrap_or_default();
        assert!(
            found == expected,
            "{} differs from its source: run `just generate`",
            file.display()
        );
    }
}

#[test]
fn nothing_else_lies_among_the_copies() {
    let generated = generated(&repository()).expect("well-formed");
    for folder in ["files", "files/crds", "files/rbac"] {
        let folder = std::path::Path::new(CHART).join(folder);
        for entry in fs::read_dir(repository().join(&folder)).expect("well-formed") {
            let path = folder.join(entry.expect("well-formed").file_name());
            let is_made = generated.iter().any(|(file, _)| *file == path);
            assert!(
                is_made || repository().join(&path).is_dir(),
                "{} has no source",
                path.display()
            );
        }
    }
}

#[test]
fn the_chart_has_the_version_of_the_workspace() {
    let chart = yaml("Chart.yaml");
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn the_pages_name_the_release_to_which_the_version_leads() {
    let named = |text: &str, mark: &str| {
        let versions = text.split(mark).skip(1);
        let versions = versions.map(|rest| rest.split_whitespace().next().unwrap_or_default().to_owned());
        versions.collect::<BTreeSet<_>>()
    };
    let version = env!("CARGO_PKG_VERSION").trim_end_matches("-dev");
    assert_eq!(
        named(&text("README.md"), "--version "),
        BTreeSet::from([version.to_owned()])
    );
    let components = fs::read_to_string(repository().join("config/components/README.md")).expect("well-formed");
    assert_eq!(named(&components, "?ref=v"), BTreeSet::from([version.to_owned()]));
}

#[test]
fn the_example_of_the_chart_is_admitted() {
    let chart = yaml("Chart.yaml");
    let examples = chart["annotations"]["artifacthub.io/crdsExamples"]
        .as_str()
        .expect("well-formed");
    let examples: Vec<Value> = serde_saphyr::from_str(examples).expect("well-formed");
    assert!(!examples.is_empty());
    let admission = Admission::new().expect("well-formed");
    for example in &examples {
        let refusals = admission.admit(example);
        assert!(refusals.is_ok(), "{refusals:?}");
    }
}

#[test]
fn the_validations_of_the_examples_are_admitted() {
    let examples = repository().join("config/argocd/examples");
    let plain = ["hook", "wave"].map(|folder| {
        let file = examples.join(folder).join("validation.yaml");
        serde_saphyr::from_str::<Value>(&fs::read_to_string(file).expect("well-formed")).expect("well-formed")
    });
    let pools = ["gb200", "h100"].map(|pool| render::kustomization(&examples.join("pools").join(pool)).remove(0));
    let admission = Admission::new().expect("well-formed");
    for example in plain.iter().chain(&pools) {
        let refusals = admission.admit(example);
        assert!(refusals.is_ok(), "{example}: {refusals:?}");
    }
}

/// Argo CD gives these values to helm as they are.
#[test]
fn the_application_of_the_operator_installs_the_chart() {
    let application = repository().join("config/argocd/examples/operator.yaml");
    let application: Value =
        serde_saphyr::from_str(&fs::read_to_string(application).expect("well-formed")).expect("well-formed");
    let source = &application["spec"]["source"];
    let version = env!("CARGO_PKG_VERSION").trim_end_matches("-dev");
    assert_eq!(
        (&source["chart"], &source["targetRevision"]),
        (&yaml("Chart.yaml")["name"], &Value::from(version))
    );
    let namespace = &application["spec"]["destination"]["namespace"];
    assert_eq!(namespace, render::NAMESPACE);
    render::chart(&source["helm"]["valuesObject"]).expect("values of the chart");
}

/// Without them the role bindings of the chart have no place.
#[test]
fn the_examples_create_the_namespaces_of_the_validations() {
    for (tool, allowed) in [
        ("argocd", "/spec/source/helm/valuesObject/runNamespaces"),
        ("flux", "/spec/values/runNamespaces"),
    ] {
        let read = |name: &str| -> Vec<Value> {
            let file = repository().join(format!("config/{tool}/examples/{name}.yaml"));
            serde_saphyr::from_multiple(&fs::read_to_string(file).expect("well-formed")).expect("well-formed")
        };
        let operator = read("operator");
        let found = operator.iter().find_map(|object| object.pointer(allowed));
        let namespace = read("namespace").remove(0);
        assert_eq!(
            (&namespace["kind"], found),
            (&json!("Namespace"), Some(&json!([namespace["metadata"]["name"]])))
        );
    }
}

#[test]
fn every_value_has_a_comment() {
    let described: BTreeSet<_> = described(&text("values.yaml"))
        .into_iter()
        .map(|value| value.path)
        .collect();
    for leaf in leaves(&yaml("values.yaml")) {
        let is_described = (1..=leaf.len()).any(|length| described.contains(&leaf[..length]));
        assert!(is_described, "{} has no comment", leaf.join("."));
    }
}

#[test]
fn the_schema_has_the_values_and_no_others() {
    let (values, schema) = (yaml("values.yaml"), yaml("values.schema.json"));
    let described: BTreeSet<_> = described(&text("values.yaml"))
        .into_iter()
        .map(|value| value.path)
        .collect();
    let mut looked_at = 0;
    for leaf in leaves(&values) {
        for length in 0..leaf.len() {
            let path = &leaf[..length];
            // What is described as a whole, such as resources, is Kubernetes' own.
            if described.contains(path) {
                break;
            }
            looked_at += 1;
            let keys = |value: &Value| {
                value
                    .as_object()
                    .expect("well-formed")
                    .keys()
                    .cloned()
                    .collect::<BTreeSet<_>>()
            };
            let part = in_schema(&schema, path);
            let mut expected = keys(at(&values, path).expect("well-formed"));
            if path.is_empty() {
                // Only a parent chart reads it.
                expected.insert("enabled".to_owned());
            }
            assert_eq!(keys(&part["properties"]), expected, "{}", path.join("."));
            let is_closed = part["additionalProperties"] == false;
            assert_eq!(is_closed, path != ["global"], "{}", path.join("."));
        }
    }
    assert!(looked_at > 40, "{looked_at}");
}

/// The part of a schema for the value at a path.
fn in_schema<'a>(schema: &'a Value, path: &[String]) -> &'a Value {
    path.iter().fold(schema, |part, key| {
        let part = &part["properties"][key];
        let reference = part["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        reference.map_or(part, |reference| schema.pointer(reference).expect("a definition"))
    })
}
