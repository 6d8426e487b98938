//! Every rule and bound of `PerfValidationPolicy` of its own.

use kube::core::cel::Validator;
use perfval_api::admission::{Admission, Refusal};
use perfval_api::fleet::{NodeOrder, PerfValidationPolicy};
use perfval_api::policy_crd;
use serde_json::{Value, json};

use super::list_unbroken;

fn admission() -> Admission {
    Admission::compile(policy_crd()).expect("the CRD's schema compiles")
}

/// Smallest policy that is accepted.
fn smallest() -> Value {
    json!({
        "apiVersion": "perfvalidation.dev/v1alpha1",
        "kind": "PerfValidationPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "nodeSelector": {},
            "budgets": [{"nodes": 1}],
            "validationTemplate": {
                "metadata": {"namespace": "perf"},
                "spec": {
                    "model": {"name": "m"},
                    "workload": {"dynamo": {"image": "i:1.4.2"}},
                    "gates": [{"name": "g", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "5"}],
                },
            },
        },
    })
}

/// Smallest policy with one value at a JSON pointer below its spec.
fn with(pointer: &str, value: &Value) -> Value {
    super::with(smallest(), pointer, value)
}

/// Converts `/budgets/0/nodes` to `spec.budgets[0].nodes`.
fn dotted(pointer: &str) -> String {
    let parts = pointer.split('/').skip(1);
    parts.fold("spec".to_owned(), |path, part| match part.parse::<usize>() {
        Ok(index) => format!("{path}[{index}]"),
        Err(_) => format!("{path}.{part}"),
    })
}

#[test]
fn the_smallest_policy_has_the_defaults_of_the_statistics() {
    let admitted = kube::core::cel::apply_defaults(admission().schema(), &smallest());
    let policy: PerfValidationPolicy = serde_json::from_value(admitted.clone()).expect("a policy");
    let spec = &policy.spec;
    assert!(admission().list_refusals(&smallest()).is_empty());
    assert_eq!(spec.freshness.max_age, "168h");
    assert_eq!(spec.order, NodeOrder::RiskAndAge);
    assert_eq!(spec.comparison.report.minimum_effect_percent, 2);
    assert_eq!(spec.comparison.report.false_discovery_percent, 5);
    assert_eq!(spec.comparison.peers.min_nodes, 3);
    assert_eq!((spec.validation_history.failed, spec.validation_history.passed), (3, 1));
    assert_eq!(spec.validation_template.spec.trials.max, 8);
    assert_eq!(admitted["status"]["observedGeneration"], -1);
}

#[test]
fn valid_values_are_accepted() {
    let template = "/validationTemplate/metadata";
    let accepted = [
        ("/suspend", json!(true)),
        (
            "/nodeSelector",
            json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}),
        ),
        ("/freshness/maxAge", json!("1h")),
        ("/freshness/maxAge", json!("8760h")),
        ("/budgets/0/nodes", json!(0)),
        ("/budgets/0/nodes", json!("100%")),
        ("/budgets/0/nodes", json!("12")),
        (
            "/budgets",
            json!([{"gpuMinutesPerDay": 0, "reasons": ["Stale", "NeverMeasured"]}]),
        ),
        ("/budgets/0/reasons", json!(["Scheduled"])),
        (
            "/budgets/1",
            json!({"nodes": 0, "window": {"cron": "0 8 * * MON-FRI", "duration": "10h"}}),
        ),
        ("/schedule", json!({"cron": " 0  1 * * * ", "startingDeadline": "1m"})),
        ("/timeZone", json!("Europe/Berlin")),
        ("/order", json!("Age")),
        ("/comparison/report/minimumEffectPercent", json!(50)),
        ("/validationHistory/passed", json!(0)),
        ("/nodeFeedback/mode", json!("Observe")),
        (&format!("{template}/labels"), json!({"team": "a"})),
        ("/validationTemplate/spec/placement", json!({"minGPUs": 8})),
    ];
    for (pointer, value) in accepted {
        let refusals = admission().list_refusals(&with(pointer, &value));
        assert!(refusals.is_empty(), "{pointer} {value}: {refusals:?}");
    }
}

/// Values that are refused, and a part of the message. Without one the refusal is of this field.
fn refused() -> Vec<(String, Value, &'static str)> {
    let spec = "/validationTemplate/spec";
    let metadata = "/validationTemplate/metadata";
    let zeros = |rest: &str| json!(format!("{}{rest}", "0".repeat(31)));
    let many: Value = (0..33).map(|number| (format!("k{number}"), json!("v"))).collect();
    let long = json!({"k": "v".repeat(4097)});
    let ranges = [
        ("/budgets/0/nodes", 0, 100_000),
        ("/budgets/0/gpuMinutesPerDay", 0, 100_000_000),
        ("/comparison/report/minimumEffectPercent", 1, 50),
        ("/comparison/report/falseDiscoveryPercent", 1, 50),
        ("/comparison/act/minimumEffectPercent", 1, 50),
        ("/comparison/act/falseDiscoveryPercent", 1, 50),
        ("/comparison/peers/minNodes", 3, 1000),
        ("/validationHistory/failed", 1, 20),
        ("/validationHistory/passed", 0, 20),
    ];
    let outside = ranges.into_iter().flat_map(|(pointer, least, most)| {
        [least - 1, most + 1].map(|number: i64| (pointer.to_owned(), json!(number), ""))
    });
    let others: Vec<(String, Value, &str)> = vec![
        (
            "/nodeSelector".into(),
            json!({"matchExpressions": [{"key": "a", "operator": "Like"}]}),
            "write operator In",
        ),
        ("/freshness/maxAge".into(), json!("59m"), "from 1h to 8760h"),
        ("/freshness/maxAge".into(), json!("8761h"), "from 1h to 8760h"),
        ("/freshness/maxAge".into(), json!("7d"), "from 1h to 8760h"),
        ("/freshness/maxAge".into(), zeros("1h"), ""),
        ("/freshness/measuredAfter".into(), json!("2".repeat(4097)), ""),
        (
            "/freshness/measuredAfter".into(),
            json!("2026-11-25T12:00:00+25:00"),
            "",
        ),
        (
            format!("{spec}/gates"),
            json!([{"name": "a", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1"},
                {"name": "b", "metric": "OwnPastPercent", "operator": ">=", "threshold": "90"}]),
            "leave gates on OwnPastPercent out",
        ),
        ("/budgets".into(), json!([]), ""),
        ("/budgets".into(), json!(vec![json!({"nodes": 1}); 9]), ""),
        (
            "/budgets".into(),
            json!([{"reasons": ["Stale"]}]),
            "a budget needs a limit",
        ),
        ("/budgets".into(), json!([{"nodes": 1, "reasons": ["Bored"]}]), ""),
        ("/budgets/0/reasons".into(), json!(vec!["Stale"; 5]), ""),
        ("/budgets/0/nodes".into(), json!("101%"), ""),
        ("/budgets/0/nodes".into(), json!("a few"), ""),
        ("/budgets/0/nodes".into(), json!("1000000"), ""),
        (
            "/budgets/0/window".into(),
            json!({"cron": "0 8 * * *", "duration": "10h"}),
            "write one budget without a window",
        ),
        (
            "/budgets/1".into(),
            json!({"nodes": 0, "window": {"cron": "0 8 * *", "duration": "10h"}}),
            "write cron's five fields",
        ),
        (
            "/budgets/1".into(),
            json!({"nodes": 0, "window": {"cron": "0 8 * * *", "duration": "59s"}}),
            "from 1m to 8760h",
        ),
        (
            "/budgets/1".into(),
            json!({"nodes": 0, "window": {"cron": format!("{} * * * *", "1".repeat(128)), "duration": "1h"}}),
            "",
        ),
        (
            "/budgets/1".into(),
            json!({"nodes": 0, "window": {"cron": "0 8 * * *", "duration": zeros("1h")}}),
            "",
        ),
        (
            "/schedule".into(),
            json!({"cron": format!("{} * * * *", "1".repeat(128))}),
            "",
        ),
        (
            "/schedule".into(),
            json!({"cron": "0 1 * * *", "startingDeadline": zeros("1h")}),
            "",
        ),
        (
            "/schedule".into(),
            json!({"cron": "@daily"}),
            "write cron's five fields",
        ),
        (
            "/schedule".into(),
            json!({"cron": "0 1 * * *", "startingDeadline": "8761h"}),
            "from 1m to 8760h",
        ),
        ("/timeZone".into(), json!(""), ""),
        ("/timeZone".into(), json!("a".repeat(65)), ""),
        ("/order".into(), json!("Random"), ""),
        ("/nodeFeedback/mode".into(), json!("Taint"), ""),
        (
            format!("{spec}/placement"),
            json!({"nodeSelector": {"kubernetes.io/hostname": "n1"}}),
            "the operator adds the node",
        ),
        (
            format!("{spec}/suspend"),
            json!(true),
            "a suspended validation never ends",
        ),
        (
            format!("{spec}/ttlSecondsAfterFinished"),
            json!(60),
            "the policy deletes finished validations",
        ),
        (
            format!("{spec}/timeouts"),
            json!({"sizing": "5m"}),
            "a policy waits ten minutes for free GPUs",
        ),
        (format!("{spec}/gates"), json!([]), "at least one gate of mode Enforce"),
        (
            format!("{spec}/gates/0/mode"),
            json!("Warn"),
            "at least one gate of mode Enforce",
        ),
        (format!("{spec}/placement"), json!({"minGPUs": 65}), ""),
        (format!("{metadata}/namespace"), json!(""), ""),
        (
            format!("{metadata}/namespace"),
            json!("Perf"),
            "write the name of a namespace",
        ),
        (format!("{metadata}/namespace"), json!("n".repeat(64)), ""),
        (
            format!("{metadata}/labels"),
            json!({"perfvalidation.dev/node": "n1"}),
            "the operator sets what begins with",
        ),
        (
            format!("{metadata}/labels"),
            json!({"team": "a b"}),
            "write a label's value",
        ),
        (
            format!("{metadata}/annotations"),
            json!({"perfvalidation.dev/rerun": "1"}),
            "the operator sets what begins with",
        ),
        (format!("{metadata}/labels"), many.clone(), ""),
        (format!("{metadata}/labels"), long.clone(), ""),
        (format!("{metadata}/annotations"), many, ""),
        (format!("{metadata}/annotations"), long, ""),
    ];
    others.into_iter().chain(outside).collect()
}

/// Smallest policy with a name that is no value of a label.
fn with_a_long_name() -> Value {
    let mut policy = smallest();
    policy["metadata"]["name"] = json!("p".repeat(64));
    policy
}

#[test]
fn invalid_values_are_refused_with_the_remedy() {
    let admission = admission();
    for (pointer, value, words) in refused() {
        let refusals = admission.list_refusals(&with(&pointer, &value));
        let path = dotted(&pointer);
        let is_meant = |refusal: &Refusal| match words {
            "" => refusal.path.starts_with(&path),
            words => refusal.message.contains(words),
        };
        assert!(refusals.iter().any(is_meant), "{pointer} {value}: {refusals:?}");
    }
    let refusals = admission.list_refusals(&with_a_long_name());
    assert!(refusals[0].message.contains("at most 63"), "{refusals:?}");
}

#[test]
fn every_rule_and_bound_is_broken() {
    let refused = refused().into_iter().map(|(pointer, value, _)| with(&pointer, &value));
    let unbroken = list_unbroken(&admission(), refused.chain([with_a_long_name()]));
    assert_eq!(unbroken, ["spec.validationTemplate.metadata.namespace self == oldSelf"]);
}

#[test]
fn the_namespace_of_the_validations_never_changes() {
    let update = |new: &Value| Validator::new().validate(admission().schema(), new, Some(&smallest()));
    let changed = update(&with("/validationTemplate/metadata/namespace", &json!("other")));
    let errors = changed.expect_err("a refusal").into_vec();
    assert!(errors[0].message.contains("create another policy"), "{errors:?}");
    let suspended = update(&with("/suspend", &json!(true)));
    assert!(suspended.is_ok(), "{suspended:?}");
}

#[test]
fn a_misspelt_field_is_named() {
    let refusals = admission().list_refusals(&with("/budget", &json!([])));
    let paths: Vec<&str> = refusals.iter().map(|refusal| refusal.path.as_str()).collect();
    assert_eq!(paths, ["spec.budget"]);
}
