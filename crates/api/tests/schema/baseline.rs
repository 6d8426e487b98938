//! Every rule and bound of `PerfBaseline`.

use kube::core::cel::Validator;
use perfval_api::admission::Admission;
use perfval_api::baseline_crd;
use serde_json::{Value, json};

use super::list_unbroken;

fn admission() -> Admission {
    Admission::compile(baseline_crd()).expect("the CRD's schema compiles")
}

/// Provided baseline with one value at a JSON pointer below its spec; null removes it.
fn with(pointer: &str, value: &Value) -> Value {
    let baseline = json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfBaseline", "metadata": {"name": "b"},
        "spec": {
            "environment": {"digest": "0123456789ab", "product": "NVIDIA-H100-80GB-HBM3", "gpuCount": 8},
            "source": "Provided", "approvedRevision": 1,
            "metrics": [{
                "name": "DecodeSpeed", "centre": "125.1", "spread": {"nodePercent": "0.6"}, "nodes": 40,
                "gpus": 320,
            }],
        },
    });
    super::with(baseline, pointer, value)
}

#[test]
fn valid_baselines_are_accepted() {
    for (pointer, value) in [
        ("/approvedRevision", json!(12)),
        ("/approvedRevision", Value::Null),
        ("/environment/product", Value::Null),
        ("/metrics/0/spread", Value::Null),
        ("/metrics/0/nodes", Value::Null),
    ] {
        let refusals = admission().list_refusals(&with(pointer, &value));
        assert_eq!(refusals, [], "{pointer} {value}");
    }
    let mut learned = with("/metrics", &Value::Null);
    learned["spec"]["source"] = json!("Learned");
    assert_eq!(admission().list_refusals(&learned), []);
    let admitted = kube::core::cel::apply_defaults(admission().schema(), &learned);
    assert_eq!(admitted["status"]["observedGeneration"], -1);
}

/// Values that are refused, and a part of the message.
fn refused() -> Vec<(&'static str, Value, &'static str)> {
    let metric = json!({"name": "DecodeSpeed", "centre": "1"});
    let number = json!(format!("{}1", "0".repeat(32)));
    vec![
        ("/source", json!("Learned"), "leave spec.metrics out"),
        ("/source", json!("Guessed"), "is not one of"),
        ("/environment/digest", json!("0123456789AB"), "write the 12 hex digits"),
        ("/environment/digest", json!("0123"), "write the 12 hex digits"),
        (
            "/environment/digest",
            json!("0".repeat(65)),
            "longer than 64 characters",
        ),
        (
            "/environment/product",
            json!("p".repeat(254)),
            "longer than 253 characters",
        ),
        ("/environment/gpuCount", json!(0), "less than the minimum of 1"),
        ("/environment/gpuCount", json!(1025), "greater than the maximum of 1024"),
        ("/metrics", Value::Null, "write spec.metrics"),
        ("/metrics", json!([]), "less than 1 item"),
        ("/metrics", json!(vec![metric; 9]), "more than 8 items"),
        ("/metrics/0/name", json!("Throughput"), "is not one of"),
        ("/metrics/0/centre", json!("fast"), "write a quantity above 0"),
        ("/metrics/0/centre", json!("0"), "write a quantity above 0"),
        (
            "/metrics/0/centre",
            json!("2G"),
            "write a quantity above 0 and up to 1G",
        ),
        ("/metrics/0/centre", number.clone(), "longer than 32 characters"),
        (
            "/metrics/0/spread/nodePercent",
            json!("101"),
            "write a quantity from 0 to 100",
        ),
        ("/metrics/0/spread/nodePercent", number, "longer than 32 characters"),
        ("/metrics/0/nodes", json!(0), "less than the minimum of 1"),
        ("/metrics/0/nodes", json!(100_001), "greater than the maximum of 100000"),
        ("/metrics/0/gpus", json!(0), "less than the minimum of 1"),
        (
            "/metrics/0/gpus",
            json!(1_000_001),
            "greater than the maximum of 1000000",
        ),
        ("/approvedRevision", json!(0), "less than the minimum of 1"),
        (
            "/approvedRevision",
            json!(1_000_001),
            "greater than the maximum of 1000000",
        ),
    ]
}

#[test]
fn a_wrong_baseline_is_refused_with_a_remedy() {
    for (pointer, value, remedy) in refused() {
        let refusals = admission().list_refusals(&with(pointer, &value));
        assert!(
            refusals.iter().any(|refusal| refusal.message.contains(remedy)),
            "{pointer} {value}: {refusals:?}"
        );
    }
}

#[test]
fn every_rule_and_bound_is_broken() {
    let refused = refused().into_iter().map(|(pointer, value, _)| with(pointer, &value));
    assert_eq!(
        list_unbroken(&admission(), refused),
        ["spec.environment self == oldSelf"]
    );
}

#[test]
fn the_environment_never_changes() {
    let (old, new) = (
        with("/approvedRevision", &json!(1)),
        with("/environment/digest", &json!("ba9876543210")),
    );
    let changed = Validator::new().validate(admission().schema(), &new, Some(&old));
    let errors = changed.expect_err("a refusal").into_vec();
    assert!(errors[0].message.contains("create another PerfBaseline"), "{errors:?}");
    let approved = with("/approvedRevision", &json!(2));
    let changed = Validator::new().validate(admission().schema(), &approved, Some(&old));
    assert!(changed.is_ok(), "{changed:?}");
}
