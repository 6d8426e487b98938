//! The pods that the chart makes, and what keeps them running.

use perfval_chart::object::unknown_fields;
use perfval_chart::render::{self, kustomization, repository};
use serde_json::{Value, json};

use crate::{deployment, objects, variable};

/// Everything that can be switched on.
fn everything() -> Value {
    json!({
        "replicas": 3,
        "networkPolicy": {
            "enabled": true,
            "apiServerPorts": [8443],
            "apiServerCIDRs": ["10.0.0.1/32"],
            "metricsFrom": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
        },
        "secureMetrics": {"enabled": true, "secretName": "metrics-tls"},
        "serviceMonitor": {"enabled": true, "labels": {"release": "prometheus"}},
        "prometheusRule": {"enabled": true},
        "dashboard": {"enabled": true, "annotations": {"grafana_folder": "GPU"}},
        "global": {"imagePullSecrets": [{"name": "mirror"}]},
        "benchmarkImages": ["registry.example/team", "localhost/aiperf:1"],
        "watchNamespaces": ["a", "b"],
        "refusedNamespaces": ["prod"],
        "nameForeignPods": true,
        "dcgmExporterNamespaces": ["monitoring", "gpu"],
        "objectMetrics": false,
        "clusterDomain": "example.org",
        "workers": 24,
        "log": {"level": "debug", "format": "json"},
        "extraEnv": [{"name": "PERFVAL_ENDPOINT_ACCESS", "value": "dns"}],
        "commonLabels": {"team": "gpu"},
        "commonAnnotations": {"owner": "gpu@example.com"},
        "podLabels": {"mesh": "off"},
        "serviceAccount": {"labels": {"identity": "gpu"}},
        "podAnnotations": {"sidecar": "none"},
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "priorityClassName": "system-cluster-critical",
        "rbac": {"aggregate": true},
        "tenantLimits": {"enabled": true},
        "apiPriority": {"enabled": true},
        "runNetworkPolicy": {"enabled": true},
    })
}

/// Everything, with what excludes parts of [`everything`].
fn everything_else() -> Value {
    let mut values = everything();
    values["watchNamespaces"] = json!([]);
    values["runNamespaces"] = json!(["a", "b"]);
    values["serviceMonitor"]["enabled"] = json!(false);
    values["podMonitor"] = json!({"enabled": true});
    values["secureMetrics"]["authorization"] = json!({"credentials": {"name": "prometheus", "key": "token"}});
    values
}

#[test]
fn every_object_fits_its_kubernetes_type_and_has_a_namespace_where_it_needs_one() {
    let kinds = [
        "CustomResourceDefinition",
        "FlowSchema",
        "PriorityLevelConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ];
    for values in [json!({}), everything(), everything_else()] {
        for object in render::chart(&values).expect("well-formed") {
            assert_eq!(unknown_fields(&object), Vec::<String>::new());
            let kind = object["kind"].as_str().expect("well-formed");
            let is_of_the_cluster = kind.starts_with("Cluster") || kinds.contains(&kind);
            assert_eq!(object["metadata"]["namespace"].is_null(), is_of_the_cluster, "{object}");
        }
    }
}

#[test]
fn another_namespace_is_a_value() {
    for mut values in [everything(), everything_else()] {
        let released = render::release(render::RELEASE, "gpu-tools", &values).expect("well-formed");
        values["namespaceOverride"] = json!("gpu-tools");
        assert_eq!(render::chart(&values).expect("well-formed"), released);
    }
}

#[test]
fn helm_has_nothing_to_complain_about() {
    for values in [json!({}), everything(), everything_else()] {
        let said = render::lint(&values).unwrap_or_else(|error| panic!("{error}"));
        assert!(!said.contains("[WARNING]") && !said.contains("[ERROR]"), "{said}");
    }
}

#[test]
fn every_pod_is_restricted() {
    let objects = objects(&everything());
    let deployment = &objects["Deployment perfvalidation-system/perfvalidation-operator"]["spec"]["template"]["spec"];
    let test = &objects["Pod perfvalidation-system/perfvalidation-operator-test"]["spec"];
    for pod in [deployment, test] {
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
        let container = &pod["containers"][0];
        assert_eq!(
            container["securityContext"],
            json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}})
        );
        assert!(!container["resources"]["limits"]["memory"].is_null());
        assert_eq!(
            pod["serviceAccountName"], "perfvalidation-operator",
            "it may have the pull secret"
        );
    }
    assert_eq!(test["automountServiceAccountToken"], false, "the test needs no right");
}

/// The level `restricted-v2` of `OpenShift` refuses a pod that asks for a user of its own.
#[test]
fn no_pod_asks_for_a_user() {
    for (name, object) in objects(&json!({})) {
        let definition = object["kind"] == "CustomResourceDefinition";
        assert!(definition || !object.to_string().contains("runAsUser"), "{name}");
    }
    let user = json!({"runAsNonRoot": true, "runAsUser": 1234});
    let objects = objects(&json!({"podSecurityContext": user, "deploymentAnnotations": {"a": "b"}}));
    let deployment = &objects["Deployment perfvalidation-system/perfvalidation-operator"];
    assert_eq!(deployment["metadata"]["annotations"]["a"], "b");
    let pod = &deployment["spec"]["template"]["spec"]["securityContext"];
    assert_eq!((&pod["runAsUser"], &pod["runAsNonRoot"]), (&json!(1234), &json!(true)));
}

#[test]
fn a_security_context_may_be_left_out() {
    let deployment = deployment(&json!({"podSecurityContext": null, "containerSecurityContext": null}));
    assert!(!deployment.to_string().contains("securityContext"), "{deployment}");
}

#[test]
fn extra_objects_are_templates() {
    let extra = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "{{ .Release.Name }}-extra", "namespace": "{{ .Release.Namespace }}"},
    });
    let objects = objects(&json!({"extraObjects": [extra]}));
    let suffix = "-extra";
    assert!(
        objects
            .keys()
            .any(|name| name.starts_with("ConfigMap perfvalidation-system/") && name.ends_with(suffix))
    );
}

#[test]
fn values_reach_the_pod() {
    let deployment = deployment(&everything());
    for (name, value) in [
        ("PERFVAL_BENCHMARK_IMAGES", "registry.example/team,localhost/aiperf:1"),
        ("PERFVAL_WATCH_NAMESPACES", "a,b"),
        ("PERFVAL_REFUSED_NAMESPACES", "kube-system,perfvalidation-system,prod"),
        ("PERFVAL_NAME_FOREIGN_PODS", "true"),
        ("PERFVAL_DCGM_EXPORTER_NAMESPACES", "monitoring,gpu"),
        ("PERFVAL_OBJECT_METRICS", "false"),
        ("PERFVAL_CLUSTER_DOMAIN", "example.org"),
        ("PERFVAL_WORKERS", "24"),
        ("PERFVAL_LOG", "debug"),
        ("PERFVAL_LOG_FORMAT", "json"),
        ("PERFVAL_ENDPOINT_ACCESS", "dns"),
    ] {
        assert_eq!(variable(&deployment, name).as_deref(), Some(value), "{name}");
    }
    let pod = &deployment["spec"]["template"];
    let labels = &pod["metadata"]["labels"];
    assert_eq!((&labels["team"], &labels["mesh"]), (&json!("gpu"), &json!("off")));
    assert_eq!(pod["metadata"]["annotations"]["sidecar"], "none");
    assert_eq!(pod["metadata"]["annotations"]["owner"], "gpu@example.com");
    assert_eq!(pod["spec"]["nodeSelector"], json!({"pool": "system"}));
    let accounts = objects(&everything());
    let account = &accounts["ServiceAccount perfvalidation-system/perfvalidation-operator"];
    assert_eq!(account["metadata"]["labels"]["identity"], "gpu");
    assert_eq!(pod["spec"]["tolerations"][0]["key"], "system");
    assert_eq!(pod["spec"]["affinity"], json!({"nodeAffinity": {}}));
    assert_eq!(pod["spec"]["priorityClassName"], "system-cluster-critical");
}

#[test]
fn common_labels_are_on_every_object() {
    let objects = [everything(), everything_else()].map(|values| render::chart(&values).expect("well-formed"));
    for object in objects.concat() {
        assert_eq!(object["metadata"]["labels"]["team"], "gpu", "{object}");
        assert_eq!(
            object["metadata"]["annotations"]["owner"], "gpu@example.com",
            "{object}"
        );
    }
}

#[test]
fn one_replica_is_replaced_and_several_are_rolled() {
    const BUDGET: &str = "PodDisruptionBudget perfvalidation-system/perfvalidation-operator";
    let one = objects(&json!({}));
    assert!(!one.contains_key(BUDGET), "with one replica it would only block drains");
    let spec = &one["Deployment perfvalidation-system/perfvalidation-operator"]["spec"];
    assert_eq!(spec["strategy"], json!({"type": "Recreate"}));
    assert!(spec["template"]["spec"]["topologySpreadConstraints"].is_null());

    let two = objects(&json!({"replicas": 2}));
    assert_eq!(two[BUDGET]["spec"]["maxUnavailable"], 1);
    assert_eq!(two[BUDGET]["spec"]["unhealthyPodEvictionPolicy"], "AlwaysAllow");
    let spec = &two["Deployment perfvalidation-system/perfvalidation-operator"]["spec"];
    assert_eq!(spec["strategy"]["type"], "RollingUpdate");
    let spread = &spec["template"]["spec"]["topologySpreadConstraints"][0];
    assert_eq!(spread["topologyKey"], "kubernetes.io/hostname");
    assert_eq!(spread["labelSelector"]["matchLabels"], spec["selector"]["matchLabels"]);

    let without = objects(&json!({"replicas": 2, "podDisruptionBudget": {"enabled": false}}));
    assert!(!without.contains_key(BUDGET));
}

#[test]
fn only_the_operator_is_selected() {
    let objects = objects(&everything());
    let deployment = &objects["Deployment perfvalidation-system/perfvalidation-operator"]["spec"];
    let selector = &deployment["selector"]["matchLabels"];
    let is_selected = |labels: &Value| {
        selector
            .as_object()
            .expect("well-formed")
            .iter()
            .all(|(key, value)| labels[key] == *value)
    };
    assert!(is_selected(&deployment["template"]["metadata"]["labels"]));
    assert!(!is_selected(
        &objects["Pod perfvalidation-system/perfvalidation-operator-test"]["metadata"]["labels"]
    ));
    for (name, selected) in [
        (
            "Service perfvalidation-system/perfvalidation-operator-metrics",
            "/spec/selector",
        ),
        (
            "PodDisruptionBudget perfvalidation-system/perfvalidation-operator",
            "/spec/selector/matchLabels",
        ),
        (
            "NetworkPolicy perfvalidation-system/perfvalidation-operator",
            "/spec/podSelector/matchLabels",
        ),
        (
            "ServiceMonitor perfvalidation-system/perfvalidation-operator",
            "/spec/selector/matchLabels",
        ),
    ] {
        assert_eq!(objects[name].pointer(selected), Some(selector), "{name}");
    }
}

/// `kubectl perfval` finds the operator's pods by this label.
#[test]
fn only_the_operators_pods_are_part_of_the_operator() {
    const PART: &str = "app.kubernetes.io/part-of";
    let other = json!({PART: "platform"});
    let values = json!({"nameOverride": "gpu", "commonLabels": other, "podLabels": other});
    let chart = render::chart(&values).expect("well-formed");
    let kustomized = kustomization(&repository().join("config/default"));
    for object in chart.iter().chain(&kustomized) {
        let part = match object["kind"].as_str() {
            Some("Deployment") => &object["spec"]["template"]["metadata"]["labels"][PART],
            Some("Pod") => {
                assert_eq!(object["metadata"]["labels"][PART], "perfvalidation-operator-test");
                continue;
            }
            _ => continue,
        };
        assert_eq!(part, "perfvalidation-operator", "{object}");
    }
}

/// A Prometheus without its own operator, and `helm test`, reach the operator by this Service.
#[test]
fn the_service_reaches_an_operator_that_is_not_ready() {
    let service = &objects(&json!({}))["Service perfvalidation-system/perfvalidation-operator-metrics"];
    assert_eq!(service["spec"]["publishNotReadyAddresses"], true);
}

#[test]
fn the_network_policy_admits_the_configured_peers() {
    let objects = objects(&everything());
    let policy = &objects["NetworkPolicy perfvalidation-system/perfvalidation-operator"]["spec"];
    assert_eq!(
        policy["ingress"][0]["from"][0]["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"],
        "monitoring"
    );
    let test = &objects["Pod perfvalidation-system/perfvalidation-operator-test"]["metadata"]["labels"];
    let admitted = &policy["ingress"][0]["from"][1]["podSelector"]["matchLabels"];
    let expected = json!({
        "app.kubernetes.io/name": "perfvalidation-operator-test",
        "app.kubernetes.io/instance": "perfvalidation-operator",
        "app.kubernetes.io/part-of": "perfvalidation-operator-test",
    });
    assert_eq!(*admitted, expected, "helm test is let in");
    for (key, value) in expected.as_object().expect("labels") {
        assert_eq!(test[key], *value, "{key}");
    }

    let dns = policy["egress"][0]["ports"].as_array().expect("well-formed");
    for protocol in ["UDP", "TCP"] {
        for port in [53, 5353] {
            assert!(dns.contains(&json!({"protocol": protocol, "port": port})), "{dns:?}");
        }
    }
    assert_eq!(policy["egress"][1]["ports"][0]["port"], 8443);
    assert_eq!(policy["egress"][1]["to"][0]["ipBlock"]["cidr"], "10.0.0.1/32");
    let frontends = &policy["egress"][2]["to"][0]["namespaceSelector"]["matchExpressions"][0];
    assert_eq!(frontends["values"], json!(["a", "b"]));
}

#[test]
fn the_crds_are_kept_by_default() {
    let policies = |values: Value| -> Vec<Value> {
        let mut all = render::chart(&values).expect("well-formed");
        all.retain(|object| object["kind"] == "CustomResourceDefinition");
        let annotations = all.iter().map(|crd| &crd["metadata"]["annotations"]);
        annotations.map(|all| all["helm.sh/resource-policy"].clone()).collect()
    };
    assert_eq!(policies(json!({})), ["keep"; 4]);
    assert_eq!(policies(json!({"crds": {"keep": false}})), vec![Value::Null; 4]);
    assert_eq!(policies(json!({"crds": {"enabled": false}})), Vec::<Value>::new());
}
