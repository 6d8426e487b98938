//! The limits for tenants: the values become the parameters of the policy.

use std::collections::BTreeSet;

use perfval_chart::render::repository;
use serde_json::{Value, json};

use crate::objects;

const NAME: &str = "perfvalidation-operator-limits";

#[test]
fn are_off_by_default() {
    let objects = objects(&json!({}));
    assert!(objects.keys().all(|id| !id.contains("-limits")), "{:?}", objects.keys());
}

#[test]
fn values_become_parameters() {
    let objects = objects(&json!({"tenantLimits": {
        "enabled": true,
        "namespaceSelector": {"matchLabels": {"team": "a"}},
        "maxGPUs": "all",
        "maxKeptSeconds": 31_536_000,
        "secrets": [],
        "claims": ["weights", "more"],
    }}));
    let parameters = &objects[&format!("ConfigMap perfvalidation-system/{NAME}")]["data"];
    assert_eq!(parameters["maxGPUs"], "all");
    assert_eq!(parameters["maxKeptSeconds"], "31536000");
    assert_eq!(parameters["secrets"], "");
    assert_eq!(parameters["claims"], "weights\nmore\n");
    let binding = &objects[&format!("ValidatingAdmissionPolicyBinding /{NAME}")]["spec"];
    assert_eq!(
        binding["matchResources"]["namespaceSelector"],
        json!({"matchLabels": {"team": "a"}})
    );
    assert_eq!(binding["policyName"], NAME);
    assert_eq!(
        binding["paramRef"],
        json!({"name": NAME, "namespace": "perfvalidation-system", "parameterNotFoundAction": "Deny"})
    );
}

/// The policy refuses every object if a parameter is missing, so the chart and the manifests must have the same ones.
#[test]
fn the_policy_requires_each_parameter_and_no_other() {
    let text = std::fs::read_to_string(repository().join("config/policies/policy.yaml")).expect("well-formed");
    let policy: Value = serde_saphyr::from_str(&text).expect("well-formed");
    let variables = policy["spec"]["variables"].as_array().expect("variables");
    let unusable = variables.iter().find(|variable| variable["name"] == "unusable");
    let expression = unusable.expect("the check")["expression"].as_str().expect("a text");
    // Each entry is ['name', 'form', 'what to write'].
    let required = expression.split('[').filter_map(|entry| entry.strip_prefix('\''));
    let required: BTreeSet<_> = required.filter_map(|entry| entry.split('\'').next()).collect();
    let objects = objects(&json!({"tenantLimits": {"enabled": true}}));
    let given = &objects[&format!("ConfigMap perfvalidation-system/{NAME}")]["data"];
    let given: BTreeSet<_> = given
        .as_object()
        .expect("parameters")
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(required, given);
}
