//! Wrong values are refused before anything reaches the cluster, with a message that names them.

use perfval_chart::render;
use serde_json::{Value, json};

fn refused(values: &Value, named: &[&str]) {
    let Err(said) = render::chart(values) else {
        panic!("{values} is taken")
    };
    for word in named {
        assert!(said.contains(word), "{values}: {word} is not in: {said}");
    }
}

#[test]
fn a_misspelt_value_is_named() {
    refused(&json!({"replica": 2}), &["replica"]);
    refused(&json!({"enabled": "no"}), &["enabled", "boolean"]);
    refused(&json!({"image": {"tags": "v1"}}), &["image", "tags"]);
    refused(&json!({"crds": {"enable": true}}), &["crds", "enable"]);
    refused(
        &json!({"serviceMonitor": {"enable": true}}),
        &["serviceMonitor", "enable"],
    );
    refused(&json!({"aiperf": {"image": {"name": "x"}}}), &["aiperf", "name"]);
}

#[test]
fn metrics_without_a_certificate_or_a_token_are_refused() {
    refused(
        &json!({"secureMetrics": {"enabled": true}}),
        &["secureMetrics.secretName"],
    );
    let secure = json!({"enabled": true, "secretName": "metrics-tls"});
    refused(
        &json!({"secureMetrics": secure, "podMonitor": {"enabled": true}}),
        &["secureMetrics.authorization", "serviceMonitor"],
    );
    let monitor = |enabled: bool, namespace: &str| {
        let monitor = json!({"enabled": enabled, "namespace": namespace});
        json!({"secureMetrics": secure, "serviceMonitor": monitor})
    };
    refused(
        &monitor(true, "monitoring"),
        &["secureMetrics.tlsConfig", "another namespace"],
    );
    render::chart(&monitor(false, "monitoring")).expect("it is off");
    render::chart(&monitor(true, render::NAMESPACE)).expect("it is the namespace of the release");
}

#[test]
fn a_value_of_the_wrong_type_is_named() {
    refused(&json!({"replicas": "2"}), &["replicas", "integer"]);
    refused(&json!({"watchNamespaces": "perf"}), &["watchNamespaces", "array"]);
    refused(
        &json!({"extraEnv": [{"name": "X", "value": 1}]}),
        &["extraEnv", "string"],
    );
    refused(&json!({"podLabels": {"a": true}}), &["podLabels", "string"]);
    refused(&json!({"tolerations": {}}), &["tolerations", "array"]);
    for value in ["global", "serviceMonitor", "podLabels", "runNamespaces"] {
        refused(&json!({(value): null}), &["schema", value]);
    }
    refused(&json!({"aiperf": {"image": null}}), &["schema", "aiperf", "image"]);
}

/// Null removes the default. Without ports the network policy would open all of them, and the operator ends at an empty variable.
#[test]
fn a_default_that_the_chart_needs_cannot_be_removed() {
    for value in ["objectMetrics", "workers", "clusterDomain"] {
        refused(&json!({(value): null}), &["schema", value]);
    }
    let tag = json!({"aiperf": {"image": {"tag": null}}});
    refused(&tag, &["schema", "aiperf", "tag"]);
    for (group, value) in [
        ("networkPolicy", "apiServerPorts"),
        ("rbac", "create"),
        ("crds", "enabled"),
        ("crds", "keep"),
        ("log", "level"),
        ("log", "format"),
        ("prometheusRule", "ruleLabels"),
    ] {
        refused(&json!({(group): {(value): null}}), &["schema", group, value]);
    }
}

#[test]
fn a_value_out_of_its_bounds_is_named() {
    refused(&json!({"replicas": -1}), &["replicas"]);
    refused(&json!({"workers": 0}), &["workers"]);
    refused(&json!({"workers": 65}), &["workers"]);
    refused(&json!({"networkPolicy": {"apiServerPorts": []}}), &["apiServerPorts"]);
    refused(
        &json!({"networkPolicy": {"apiServerPorts": [70000]}}),
        &["apiServerPorts"],
    );
    refused(
        &json!({"networkPolicy": {"metricsFrom": [{"from": {}}]}}),
        &["metricsFrom", "from"],
    );
    // Helm would install it without the unknown key, and so admit everyone.
    for peer in [
        json!({"namespaceSelector": {"matchLabel": {"a": "b"}}}),
        json!({"podSelector": {"matchExpressions": [{"key": "a", "operator": "In", "value": ["b"]}]}}),
    ] {
        refused(&json!({"networkPolicy": {"metricsFrom": [peer]}}), &["metricsFrom"]);
    }
    refused(
        &json!({"networkPolicy": {"metricsFrom": [{"ipBlock": {"cidr": "10.0.0.0/8", "exept": []}}]}}),
        &["metricsFrom", "exept"],
    );
    refused(
        &json!({"apiPriority": {"concurrencyShares": 0}}),
        &["concurrencyShares"],
    );
    refused(
        &json!({"runNetworkPolicy": {"from": [{"pods": {}}]}}),
        &["runNetworkPolicy", "from", "pods"],
    );
    refused(&json!({"resources": {"limits": {"memory": "128 MB"}}}), &["memory"]);
    refused(&json!({"serviceMonitor": {"interval": "30"}}), &["interval"]);
    refused(&json!({"prometheusRule": {"runbookUrl": "wiki"}}), &["runbookUrl"]);
    refused(&json!({"prometheusRule": {"disabled": ["Stuck"]}}), &["disabled"]);
    refused(
        &json!({"prometheusRule": {"enabled": true, "disabled": ["PerfValidationStick"]}}),
        &["PerfValidationStick", "PerfValidationStuck"],
    );
    refused(&json!({"tenantLimits": {"maxGPUs": "some"}}), &["maxGPUs"]);
    refused(&json!({"tenantLimits": {"maxGPUs": 0}}), &["maxGPUs"]);
    refused(
        &json!({"tenantLimits": {"namespaceSelector": {"team": "a"}}}),
        &["namespaceSelector", "team"],
    );
    refused(&json!({"tenantLimits": {"maxTotalTime": "4"}}), &["maxTotalTime"]);
    refused(&json!({"tenantLimits": {"maxTotalTime": null}}), &["maxTotalTime"]);
    // The policy would refuse every object.
    refused(
        &json!({"tenantLimits": {"maxTotalTime": "1000000000s"}}),
        &["maxTotalTime"],
    );
    refused(&json!({"tenantLimits": {"registries": []}}), &["registries"]);
    refused(&json!({"tenantLimits": {"secrets": ["a b"]}}), &["secrets"]);
    refused(
        &json!({"extraObjects": [{"kind": "Secret"}]}),
        &["extraObjects", "apiVersion"],
    );
}

#[test]
fn a_malformed_name_or_image_is_named() {
    refused(&json!({"watchNamespaces": ["Perf"]}), &["watchNamespaces"]);
    refused(&json!({"runNamespaces": ["*", "a"]}), &["runNamespaces"]);
    refused(&json!({"watchNamespaces": ["a", "a"]}), &["watchNamespaces"]);
    refused(&json!({"image": {"digest": "sha256:123"}}), &["digest"]);
    refused(&json!({"image": {"tag": "a b"}}), &["tag"]);
    refused(&json!({"image": {"repository": "x:latest"}}), &["repository"]);
    refused(&json!({"image": {"pullPolicy": "Sometimes"}}), &["pullPolicy"]);
    refused(
        &json!({"global": {"imageRegistry": "https://mirror.example.com"}}),
        &["imageRegistry"],
    );
    refused(&json!({"aiperf": {"image": {"tag": ""}}}), &["aiperf"]);
    refused(&json!({"log": {"format": "xml"}}), &["format"]);
    refused(&json!({"fullnameOverride": "A"}), &["fullnameOverride"]);
}

#[test]
fn values_that_contradict_each_other_are_refused() {
    refused(
        &json!({"watchNamespaces": ["a", "b"], "refusedNamespaces": ["b"]}),
        &["watchNamespaces and refusedNamespaces both name b"],
    );
    refused(
        &json!({"watchNamespaces": ["perfvalidation-system"]}),
        &["perfvalidation-system", "refusedNamespaces"],
    );
    refused(
        &json!({"runNamespaces": ["kube-system"]}),
        &["runNamespaces names kube-system", "refusedNamespaces"],
    );
    refused(
        &json!({"runNamespaces": ["kube-system"], "refusedNamespaces": ["prod"]}),
        &["runNamespaces names kube-system"],
    );
    let none = json!([{"name": "PERFVAL_REFUSED_NAMESPACES", "value": ""}]);
    render::chart(&json!({"runNamespaces": ["kube-system"], "extraEnv": none})).expect("no namespace is refused");
    refused(
        &json!({"runNamespaces": ["a"], "rbac": {"create": false}}),
        &["rbac.create", "remove runNamespaces"],
    );
    refused(
        &json!({"runNamespaces": ["a"], "watchNamespaces": ["a"]}),
        &["runNamespaces and watchNamespaces", "remove runNamespaces"],
    );
    refused(
        &json!({"watchNamespaces": ["kube-system"]}),
        &["kube-system", "refusedNamespaces"],
    );
    refused(&json!({"serviceAccount": {"create": false}}), &["serviceAccount.name"]);
    refused(
        &json!({"serviceMonitor": {"enabled": true}, "podMonitor": {"enabled": true}}),
        &["scraped twice"],
    );
    for monitor in ["serviceMonitor", "podMonitor"] {
        let longest = |timeout: &str| json!({monitor: {"enabled": true, "interval": "90s", "scrapeTimeout": timeout}});
        refused(&longest("1m31s"), &["scrapeTimeout is 1m31s", "interval 90s"]);
        render::chart(&longest("1m30s")).expect("Prometheus accepts two equal durations");
    }
}

/// Server-side apply, which Helm 4 and Argo CD use, refuses a list with a name twice.
#[test]
fn a_variable_is_set_once() {
    let values = |names: &[&str]| {
        let variables: Vec<Value> = names.iter().map(|name| json!({"name": name, "value": "x"})).collect();
        json!({"log": {"level": "debug"}, "extraEnv": variables})
    };
    refused(&values(&["PERFVAL_IDENTITY"]), &["extraEnv sets PERFVAL_IDENTITY"]);
    refused(&values(&["PERFVAL_LOG"]), &["extraEnv sets PERFVAL_LOG"]);
    refused(&values(&["A", "B", "A"]), &["extraEnv sets A"]);
    render::chart(&values(&["PERFVAL_LOG_FORMAT", "A"])).expect("the chart sets neither");
}

#[test]
fn a_cluster_without_stable_dra_is_refused() {
    let Err(said) = render::for_kubernetes("1.33.9") else {
        panic!("it is taken")
    };
    assert!(said.contains("kubeVersion"), "{said}");
    render::for_kubernetes("1.34.0").expect("DRA is stable");
}

#[test]
fn a_parent_chart_may_have_globals_of_its_own() {
    render::chart(&json!({"global": {"theirs": {"a": 1}}})).expect("well-formed");
}

#[test]
fn a_parent_chart_may_leave_the_operator_out() {
    let objects = |enabled: bool| render::parent(&json!({"enabled": enabled})).expect("well-formed").len();
    assert!(objects(true) > 0);
    assert_eq!(objects(false), 0);
}
