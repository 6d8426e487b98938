//! YAML of the pages and samples: it is YAML, and a `PerfValidation`, or a part of its spec, is admitted.

use std::fs;
use std::path::{Path, PathBuf};

use perfval_api::admission::{Admission, Refusal};
use perfval_e2e::documentation::pages;
use perfval_testkit::admission::with_spec;
use serde_json::Value;

use super::tree::{files, repository};

#[test]
fn every_manifest_of_a_page_is_admitted() {
    let admission = Admission::new().expect("the CRD's schema compiles");
    let mut wrong = Vec::new();
    for page in pages(&repository()) {
        for block in page.blocks().iter().filter(|block| block.language == "yaml") {
            let complaints = complaints(&admission, &block.text).into_iter();
            wrong.extend(complaints.map(|complaint| format!("{}:{}: {complaint}", page.path, block.line)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_sample_is_admitted() {
    let admission = Admission::new().expect("the CRD's schema compiles");
    let folder = repository().join("config/samples");
    let names = |folder: &Path| {
        fs::read_dir(folder)
            .expect("the samples")
            .map(|entry| entry.expect("a sample").path())
    };
    let samples: Vec<_> = names(&folder).collect();
    assert!(samples.len() >= 15, "{samples:?}");
    for sample in samples {
        let text = fs::read_to_string(&sample).expect("a sample");
        assert_eq!(complaints(&admission, &text), [""; 0], "{}", sample.display());
        // Under GitOps the object would be made anew, and measured again, for ever.
        assert!(!text.contains("ttlSecondsAfterFinished"), "{}", sample.display());
    }
}

/// Thresholds of the `GitOps` examples are copies.
#[test]
fn an_example_has_the_threshold_of_the_sample_that_it_names() {
    let root = repository();
    let mut copies = 0;
    let is_example = |path: &PathBuf| path.components().any(|part| part.as_os_str() == "examples");
    for path in files(&root, &["yaml"]).into_iter().filter(is_example) {
        let text = fs::read_to_string(&path).expect("an example");
        for line in text.lines() {
            let Some((written, named)) = line.split_once("config/samples/") else {
                continue;
            };
            let Some(threshold) = written.split('"').nth(1) else {
                continue;
            };
            let sample = named.split(".yaml").next().unwrap_or_default();
            let sample = root.join(format!("config/samples/{sample}.yaml"));
            let sample = fs::read_to_string(&sample).unwrap_or_else(|error| panic!("{}: {error}", sample.display()));
            assert!(
                sample.contains(&format!("threshold: \"{threshold}\"")),
                "{}: {line}",
                path.display()
            );
            copies += 1;
        }
    }
    assert!(copies >= 4, "{copies}");
}

/// What is wrong with each document.
fn complaints(admission: &Admission, text: &str) -> Vec<String> {
    let documents = text.split("\n---\n");
    documents
        .flat_map(|document| complaints_of_one(admission, document))
        .collect()
}

fn complaints_of_one(admission: &Admission, document: &str) -> Vec<String> {
    let value: Value = match serde_saphyr::from_str(document) {
        Ok(value) => value,
        Err(error) => return vec![error.to_string()],
    };
    if value["kind"] == "PerfValidationPolicy" {
        let policies = Admission::compile(perfval_api::policy_crd()).expect("the CRD's schema compiles");
        return in_words(policies.list_refusals(&value));
    }
    if value["kind"] == "PerfBaseline" {
        let baselines = Admission::compile(perfval_api::baseline_crd()).expect("the CRD's schema compiles");
        return in_words(baselines.list_refusals(&value));
    }
    let manifest = if value["kind"] == "PerfValidation" {
        value
    } else if is_part_of_spec(admission, &value) {
        with_spec(value)
    } else {
        return Vec::new();
    };
    in_words(admission.admit(&manifest).err().unwrap_or_default())
}

fn in_words(refusals: Vec<Refusal>) -> Vec<String> {
    let refusals = refusals.into_iter();
    refusals
        .map(|refusal| format!("{}: {}", refusal.path, refusal.message))
        .collect()
}

/// A page shows a few fields of a spec as they stand there.
fn is_part_of_spec(admission: &Admission, value: &Value) -> bool {
    let known = &admission.schema()["properties"]["spec"]["properties"];
    let fields = value.as_object().into_iter().flatten();
    value.is_object() && fields.map(|(field, _)| field).all(|field| known.get(field).is_some())
}

#[test]
fn a_misspelt_field_is_found_in_a_whole_object_and_in_a_part() {
    let admission = Admission::new().expect("the CRD's schema compiles");
    let part = complaints(&admission, "placement: {minGPU: 8}");
    assert!(part.iter().any(|complaint| complaint.contains("minGPU")), "{part:?}");
    assert_eq!(complaints(&admission, "placement: {minGPUs: 8}"), [""; 0]);
    assert_eq!(complaints(&admission, "images: []"), [""; 0]);
    assert_eq!(complaints(&admission, "a: [").len(), 1);
    let policy = "apiVersion: perfvalidation.dev/v1alpha1\nkind: PerfValidationPolicy\nspec: {budget: []}";
    let policy = complaints(&admission, policy);
    assert!(
        policy.iter().any(|complaint| complaint.contains("budgets")),
        "{policy:?}"
    );
    let whole = "apiVersion: perfvalidation.dev/v1alpha1\nkind: PerfValidation\nspec: {}";
    assert!(!complaints(&admission, whole).is_empty());
}
