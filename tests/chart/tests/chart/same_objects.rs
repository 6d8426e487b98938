//! Whoever installs by kustomize gets what the chart gives.

use std::collections::BTreeMap;

use perfval_chart::object::{comparable, unknown_fields};
use perfval_chart::render::{self, kustomization, repository, with_components};
use serde_json::{Value, json};

fn assert_same(values: &Value, kustomized: Vec<Value>) {
    for object in &kustomized {
        assert_eq!(unknown_fields(object), Vec::<String>::new());
    }
    let by_helm = comparable(render::chart(values).unwrap_or_else(|error| panic!("{error}")));
    let by_kustomize = comparable(kustomized);
    let names = |objects: &BTreeMap<String, Value>| objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        names(&by_helm),
        names(&by_kustomize),
        "chart and kustomize install other objects"
    );
    for (name, object) in by_helm {
        let other = &by_kustomize[&name];
        assert!(object == *other, "{name}\nchart: {object:#}\nkustomize: {other:#}");
    }
}

#[test]
fn for_all_namespaces() {
    assert_same(&json!({}), kustomization(&repository().join("config/default")));
}

#[test]
fn with_runs_in_all_namespaces() {
    assert_same(&json!({"runNamespaces": ["*"]}), with_components(&["all-namespaces"]));
}

#[test]
fn with_two_replicas() {
    assert_same(&json!({"replicas": 2}), with_components(&["high-availability"]));
}

#[test]
fn with_aggregated_roles() {
    assert_same(
        &json!({"rbac": {"aggregate": true}}),
        with_components(&["aggregate-roles"]),
    );
}

#[test]
fn with_a_network_policy() {
    assert_same(
        &json!({"networkPolicy": {"enabled": true}}),
        with_components(&["network-policy"]),
    );
}

#[test]
fn with_an_api_priority() {
    assert_same(
        &json!({"apiPriority": {"enabled": true}}),
        with_components(&["api-priority"]),
    );
}

#[test]
fn with_a_network_policy_for_runs() {
    assert_same(
        &json!({"runNetworkPolicy": {"enabled": true}}),
        with_components(&["run-network-policy"]),
    );
}

#[test]
fn with_limits_for_tenants() {
    let mut kustomized = kustomization(&repository().join("config/default"));
    kustomized.extend(kustomization(&repository().join("config/policies")));
    assert_same(&json!({"tenantLimits": {"enabled": true}}), kustomized);
}

#[test]
fn with_prometheus_and_grafana() {
    let values = json!({
        "serviceMonitor": {"enabled": true},
        "prometheusRule": {"enabled": true},
        "dashboard": {"enabled": true},
    });
    assert_same(&values, with_components(&["prometheus", "alerts", "dashboard"]));
}

#[test]
fn with_a_pod_monitor() {
    assert_same(
        &json!({"podMonitor": {"enabled": true}}),
        with_components(&["pod-monitor"]),
    );
}
