//! Every rule and bound of `PerfValidationPolicy` of its own.

use perfval_api::admission::Admission;
use perfval_api::fleet::{NodeOrder, PerfValidationPolicy};
use serde_json::{Value, json};

fn admission() -> Admission {
    Admission::for_policies().expect("the CRD's schema compiles")
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
    let mut policy = smallest();
    let (parent, field) = pointer.rsplit_once('/').expect("a pointer");
    let mut at = &mut policy["spec"];
    for part in parent.split('/').filter(|part| !part.is_empty()) {
        at = match part.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[part],
        };
    }
    if let Some(list) = at.as_array_mut() {
        list.push(value.clone());
    } else {
        at[field] = value.clone();
    }
    policy
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

#[test]
fn invalid_values_are_refused_with_the_remedy() {
    let spec = "/validationTemplate/spec";
    let metadata = "/validationTemplate/metadata";
    let refused: Vec<(String, Value, &str)> = vec![
        (
            "/nodeSelector".into(),
            json!({"matchExpressions": [{"key": "a", "operator": "Like"}]}),
            "write operator In",
        ),
        ("/freshness/maxAge".into(), json!("59m"), "from 1h to 8760h"),
        ("/freshness/maxAge".into(), json!("8761h"), "from 1h to 8760h"),
        ("/freshness/maxAge".into(), json!("7d"), "from 1h to 8760h"),
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
        ("/budgets/0/nodes".into(), json!(-1), ""),
        ("/budgets/0/nodes".into(), json!(100_001), ""),
        ("/budgets/0/nodes".into(), json!("101%"), ""),
        ("/budgets/0/nodes".into(), json!("a few"), ""),
        ("/budgets/0/gpuMinutesPerDay".into(), json!(-1), ""),
        ("/budgets/0/gpuMinutesPerDay".into(), json!(100_000_001), ""),
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
        ("/comparison/report/minimumEffectPercent".into(), json!(0), ""),
        ("/comparison/report/minimumEffectPercent".into(), json!(51), ""),
        ("/comparison/report/falseDiscoveryPercent".into(), json!(0), ""),
        ("/comparison/report/falseDiscoveryPercent".into(), json!(51), ""),
        ("/comparison/peers/minNodes".into(), json!(2), ""),
        ("/comparison/peers/minNodes".into(), json!(1001), ""),
        ("/validationHistory/failed".into(), json!(0), ""),
        ("/validationHistory/failed".into(), json!(21), ""),
        ("/validationHistory/passed".into(), json!(-1), ""),
        ("/validationHistory/passed".into(), json!(21), ""),
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
    ];
    let admission = admission();
    for (pointer, value, words) in refused {
        let refusals = admission.list_refusals(&with(&pointer, &value));
        assert!(!refusals.is_empty(), "{pointer} {value}");
        let is_explained = refusals.iter().any(|refusal| refusal.message.contains(words));
        assert!(is_explained, "{pointer} {value}: {refusals:?}");
    }
    let mut long = smallest();
    long["metadata"]["name"] = json!("p".repeat(64));
    assert!(admission.list_refusals(&long)[0].message.contains("at most 63"));
}

#[test]
fn a_misspelt_field_is_named() {
    let refusals = admission().list_refusals(&with("/budget", &json!([])));
    let paths: Vec<&str> = refusals.iter().map(|refusal| refusal.path.as_str()).collect();
    assert_eq!(paths, ["spec.budget"]);
}
