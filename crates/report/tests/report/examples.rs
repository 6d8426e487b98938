//! The examples for pipelines: YAML, shell that a shell reads, files that a report has, and the schemas of their tools.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use jsonschema::Validator;
use serde_json::{Value, json};

use super::{recorded, report};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/pipelines");

/// Every file with its documents.
fn examples() -> Vec<(String, Vec<Value>)> {
    let entries = fs::read_dir(FOLDER)
        .expect("the examples")
        .map(|entry| entry.expect("an example").path());
    let mut files: Vec<PathBuf> = entries.collect();
    files.sort();
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).expect("text");
        let documents =
            serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (
            path.file_name().expect("a name").to_string_lossy().into_owned(),
            documents,
        )
    };
    files.iter().map(read).collect()
}

/// Every text of a document, with the key that it stands under.
fn texts(value: &Value, key: &str) -> Vec<(String, String)> {
    match value {
        Value::String(text) => vec![(key.to_owned(), text.clone())],
        Value::Array(items) => items.iter().flat_map(|item| texts(item, key)).collect(),
        Value::Object(fields) => fields.iter().flat_map(|(key, value)| texts(value, key)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

#[test]
fn examples_name_files_that_a_report_has() {
    let files: BTreeSet<&str> = report(&recorded::healthy())
        .files()
        .iter()
        .map(|file| file.name)
        .collect();
    let mut named = BTreeSet::new();
    for (name, documents) in examples() {
        let all = texts(&Value::Array(documents), "");
        for (_, text) in &all {
            // What follows the folder of the report.
            for part in text.split("report/").skip(1).chain(text.split("$REPORT/").skip(1)) {
                let file: String = part
                    .chars()
                    .take_while(|letter| letter.is_ascii_alphanumeric() || ".-".contains(*letter))
                    .collect();
                if !file.is_empty() {
                    assert!(files.contains(file.as_str()), "{name}: {file} is none of {files:?}");
                    named.insert(file);
                }
            }
        }
        assert!(all.iter().any(|(_, text)| text.contains("kubectl-perfval")), "{name}");
    }
    assert!(named.len() >= 4, "{named:?}");
}

#[test]
fn examples_hold_shell_that_a_shell_reads() {
    let mut scripts = 0;
    for (name, documents) in examples() {
        let all = texts(&Value::Array(documents), "");
        for (key, script) in all.iter().filter(|(key, _)| key == "run" || key == "script") {
            // GitHub replaces its expressions before a shell sees them.
            let mut shell = Command::new("bash")
                .arg("-n")
                .stdin(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("bash");
            shell
                .stdin
                .take()
                .expect("a pipe")
                .write_all(script.as_bytes())
                .expect("a script");
            let read = shell.wait_with_output().expect("bash");
            assert!(
                read.status.success(),
                "{name}, {key}: {}",
                String::from_utf8_lossy(&read.stderr)
            );
            scripts += 1;
        }
    }
    assert!(scripts >= 6, "{scripts}");
}

#[test]
#[ignore = "needs the schemas of the tools: just pipelines"]
fn examples_fit_the_schemas_of_their_tools() {
    let schemas = std::env::var("PIPELINE_SCHEMAS").expect("PIPELINE_SCHEMAS, a folder: just pipelines");
    let mut checked = Vec::new();
    for (name, documents) in examples() {
        for document in documents {
            let file = match document["kind"].as_str() {
                Some("Task") => "300-task.yaml",
                Some("Pipeline") => "300-pipeline.yaml",
                Some("WorkflowTemplate") => "argoproj.io_workflowtemplates.yaml",
                _ if name.starts_with("github") => "github-workflows.json",
                _ => "gitlab-ci.json",
            };
            let schema = schema(&Path::new(&schemas).join(file), document["apiVersion"].as_str());
            let wrong: Vec<String> = schema
                .iter_errors(&document)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            assert_eq!(wrong, Vec::<String>::new(), "{name}: {file}");
            checked.push(file);
        }
    }
    assert_eq!(checked.len(), 5, "{checked:?}");
}

fn schema(path: &Path, version: Option<&str>) -> Validator {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut schema: Value =
        serde_saphyr::from_str_with_options(&text, serde_saphyr::options! { budget: None }).expect("a schema");
    if schema["kind"] == "CustomResourceDefinition" {
        let wanted = version.and_then(|version| version.split('/').next_back());
        let versions = schema["spec"]["versions"].as_array().expect("versions");
        let of_version = versions
            .iter()
            .find(|known| known["name"].as_str() == wanted)
            .expect("the version");
        schema = of_version["schema"]["openAPIV3Schema"].clone();
        forbid_unknown(&mut schema);
        schema["properties"]["metadata"] = json!({"type": "object"});
    }
    jsonschema::validator_for(&schema).expect("a valid schema")
}

/// An API server drops what a schema does not know, and a misspelt field with it.
fn forbid_unknown(schema: &mut Value) {
    let keeps = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(true));
    if let Value::Object(fields) = schema {
        if fields.contains_key("properties") && !fields.contains_key("additionalProperties") && !keeps {
            fields.insert("additionalProperties".to_owned(), json!(false));
        }
        fields.values_mut().for_each(forbid_unknown);
    }
}
