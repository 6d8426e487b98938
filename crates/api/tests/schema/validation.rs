//! Every rule and bound of `PerfValidation`.

use std::collections::BTreeSet;

use perfval_api::admission::Admission;
use perfval_testkit::admission::{Case, Rejected, cases, with_spec};
use serde_json::{Value, json};

use super::{bounds, rules, walk};

fn admission() -> Admission {
    Admission::new().expect("the CRD's schema compiles")
}

#[test]
fn every_case_gets_the_result_of_the_table() {
    let admission = admission();
    for Case {
        name,
        manifest,
        rejected,
    } in cases()
    {
        let rules = admission.by_rules(&manifest);
        let bounds = admission.by_bounds(&manifest);
        let keys = admission.by_keys(&manifest);
        let all = rules.iter().chain(&bounds).chain(&keys);
        let said: Vec<_> = all.map(|r| format!("{}: {}", r.path, r.message)).collect();
        match rejected {
            None => assert!(said.is_empty(), "{name}: refused: {said:#?}"),
            Some(Rejected::Duplicate(field)) => {
                let refused = keys.iter().any(|r| r.path.starts_with(&field));
                assert!(refused, "{name}: {field} is not refused: {said:#?}");
            }
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
fn admitted_objects_have_their_defaults() {
    let object = admission().admit(&with_spec(json!({}))).expect("the smallest manifest");
    assert_eq!(object.spec.trials.max, 8);
    assert_eq!(object.spec.benchmark.concurrency_per_gpu, 128);
}

#[test]
fn unknown_fields_and_other_kinds_are_refused() {
    let misspelt = with_spec(json!({"gate": [], "benchmark": {"inputToken": 5}}));
    let paths = |manifest: &Value| -> Vec<String> {
        let refusals = admission().admit(manifest).expect_err("refused");
        refusals.into_iter().map(|refusal| refusal.path).collect()
    };
    assert_eq!(paths(&misspelt), ["spec.gate", "spec.benchmark.inputToken"]);
    assert_eq!(
        paths(&json!({"kind": "Pod", "apiVersion": "v1"})),
        ["apiVersion", "kind"]
    );
    assert_eq!(paths(&json!([])), ["apiVersion", "kind"]);
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
    let admission = admission();
    let mut broken = BTreeSet::new();
    for case in cases() {
        if let Some(Rejected::Rule(words)) = &case.rejected {
            let refusals = admission.by_rules(&case.manifest).into_iter();
            broken.extend(refusals.filter(|r| r.message.contains(words)).map(|r| r.rule));
        }
    }
    let rules = rules(admission.schema());
    let unbroken: Vec<_> = rules.difference(&broken).collect();
    assert!(unbroken.is_empty(), "no case breaks {unbroken:#?}");
}

#[test]
fn every_bound_of_our_own_fields_is_broken_by_a_case() {
    let admission = admission();
    let refused = cases().into_iter().filter(|case| case.rejected.is_some());
    let broken: BTreeSet<_> = refused
        .flat_map(|case| admission.by_bounds(&case.manifest))
        .map(|refusal| refusal.rule)
        .collect();
    let bounds = bounds(admission.schema());
    let unbroken: Vec<_> = bounds.difference(&broken).collect();
    assert!(unbroken.is_empty(), "no case breaks {unbroken:#?}");
}

#[test]
fn everything_in_the_spec_is_bounded_and_described() {
    let admission = admission();
    walk(&admission.schema()["properties"]["spec"], "spec", &mut |schema, at| {
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
