//! Every string of the spec, as the CRD's own schema lists them: a new field is tried like all others.

use std::collections::{BTreeMap, BTreeSet};

use perfval_api::admission::Admission;
use perfval_run::Run;
use serde_json::{Map, Value, json};

use super::hostile::{containers, expanded, is_shell, strings, wrapper};
use super::{everything, object, settings};

/// Told from whatever else an object holds.
const MARK: &str = "m4rk";

/// What shells, the kubelet and argument parsers have an opinion about, for fields that take anything, no blanks, flags, or
/// names of models only.
const WORDS: [&str; 5] = [
    "m4rk -c $(HF_TOKEN) $$(HF_TOKEN) ${IFS} `id`; rm -rf / && true | sh ' \" \\ \n * 模型 \u{202e} #{{.Values}}",
    "m4rk$(HF_TOKEN)$$(HF_TOKEN)${IFS}`id`;|&'\"\\*#{{.Values}}",
    "--m4rk=$(HF_TOKEN)",
    "--m4rk",
    "m4rk/--model",
];

/// What the kubelet expands in a user's own words is expanded for the user.
const OWN: [&str; 4] = [
    ".workload.dynamo.worker.command[]",
    ".workload.dynamo.worker.args[]",
    ".workload.dynamo.frontend.args[]",
    ".workload.dynamo.env[].value",
];

/// One step to a field.
#[derive(Clone, Debug)]
enum Step {
    Field(String),
    Item,
    /// The value of a map's entry.
    Entry,
    /// Its name.
    Name,
}

type Path = Vec<Step>;

fn shown(path: &Path) -> String {
    let step = |step: &Step| match step {
        Step::Field(name) => format!(".{name}"),
        Step::Item => "[]".to_owned(),
        Step::Entry => "{}".to_owned(),
        Step::Name => "{name}".to_owned(),
    };
    path.iter().map(step).collect()
}

/// Paths of all strings that are not one of a few words.
fn paths(schema: &Value, at: &Path, found: &mut Vec<Path>) {
    let mut below = |step: Step, schema: &Value| paths(schema, &[&at[..], &[step]].concat(), found);
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        below(Step::Field(name.clone()), field);
    }
    if schema["items"].is_object() {
        below(Step::Item, &schema["items"]);
    }
    if schema["additionalProperties"].is_object() {
        below(Step::Entry, &schema["additionalProperties"]);
        found.push([&at[..], &[Step::Name]].concat());
    }
    let is_text = schema["type"] == "string" || schema["x-kubernetes-int-or-string"] == true;
    if is_text && schema["enum"].is_null() {
        found.push(at.clone());
    }
}

/// The least that a schema takes.
fn least(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let required = schema["required"].as_array().into_iter().flatten();
            let field = |name: &str| (name.to_owned(), least(&schema["properties"][name]));
            Value::Object(required.filter_map(Value::as_str).map(field).collect())
        }
        Some("array") => json!([]),
        Some("integer") => json!(1),
        Some("boolean") => json!(false),
        _ => json!("a"),
    }
}

/// The least that a schema takes, with a word at one place.
fn with(schema: &Value, path: &[Step], word: &str) -> Value {
    let Some((step, rest)) = path.split_first() else {
        return word.into();
    };
    let entries = &schema["additionalProperties"];
    match step {
        Step::Field(name) => {
            let mut all = least(schema);
            all[name] = with(&schema["properties"][name], rest, word);
            all
        }
        Step::Item => json!([with(&schema["items"], rest, word)]),
        Step::Entry => json!({ "entry": with(entries, rest, word) }),
        Step::Name => Value::Object(Map::from_iter([(word.to_owned(), least(entries))])),
    }
}

/// Words of a container that somebody expands or runs.
fn words(container: &Value) -> Vec<String> {
    let environment = container["env"].as_array().into_iter().flatten();
    let values = environment.filter_map(|variable| variable["value"].as_str().map(str::to_owned));
    [strings(&container["command"]), strings(&container["args"])]
        .concat()
        .into_iter()
        .chain(values)
        .collect()
}

/// In how many places containers get the word at this place; the error says where it is misused.
fn carriers(spec: &Value, path: &str, word: &str) -> Result<usize, String> {
    let mut carried = 0;
    for (served, allocation) in [("nvidia.com/v1alpha1", "DevicePlugin"), ("nvidia.com/v1beta1", "DRA")] {
        let object = object(served, allocation, spec);
        for (kind, built) in everything(&Run::new(&object, settings())) {
            for container in containers(&built) {
                let command = strings(&container["command"]);
                if is_shell(&command) && command != wrapper() && path != ".workload.dynamo.worker.command[]" {
                    return Err(format!("{kind}: {command:?}"));
                }
                let known = container["env"].as_array().into_iter().flatten();
                let names = known.filter_map(|variable| variable["name"].as_str());
                let secrets: BTreeMap<String, String> =
                    names.map(|name| (name.to_owned(), "a secret".to_owned())).collect();
                for carrier in words(container).iter().filter(|carrier| carrier.contains(MARK)) {
                    carried += 1;
                    if !OWN.contains(&path) && !expanded(carrier, &secrets).contains(word) {
                        return Err(format!("{kind}: {carrier:?} is {:?}", expanded(carrier, &secrets)));
                    }
                }
            }
        }
    }
    Ok(carried)
}

#[test]
fn every_string_of_the_spec_is_carried_as_it_is() {
    let admission = Admission::new().expect("the CRD's schema");
    let schema = &admission.schema()["properties"]["spec"];
    let mut all = Vec::new();
    paths(schema, &Vec::new(), &mut all);
    let (mut odd, mut carried) = (BTreeSet::new(), BTreeSet::new());
    for path in &all {
        let name = shown(path);
        for word in WORDS {
            let mut spec = with(schema, path, word);
            // A union requires no member by its schema.
            if spec["workload"]["dynamo"].is_null() {
                spec["workload"]["dynamo"] = json!({"image": "i:1"});
            }
            // A token's variable is there to be given away.
            if spec["model"]["tokenSecretRef"].is_null() {
                spec["model"]["tokenSecretRef"] = json!({"name": "hf", "key": "token"});
            }
            let manifest = json!({
                "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation",
                "metadata": {"name": "h100-baseline", "namespace": "perf"}, "spec": spec,
            });
            if admission.admit(&manifest).is_err() {
                continue;
            }
            odd.insert(name.clone());
            let carriers = carriers(&spec, &name, word);
            if carriers.unwrap_or_else(|how| panic!("{name} = {word:?}: {how}")) > 0 {
                carried.insert(name.clone());
            }
        }
    }
    let (all, odd) = (all.len(), odd.len());
    eprintln!("{all} strings; odd words are admitted in {odd} of them and reach a container in {carried:?}");
    // As many as when this was written: the walk still goes everywhere.
    assert!(all >= 72 && odd >= 31 && carried.len() >= 8, "{all} {odd} {carried:?}");
}
