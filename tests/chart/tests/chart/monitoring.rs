//! Alerts and dashboard ask for series that exist, by labels that they have.

use std::collections::BTreeSet;

use perfval_chart::render::repository;
use serde_json::{Value, json};

use super::series::known;
use crate::objects;

/// Labels that Prometheus adds to every series of one release.
const TARGET: &str = "namespace, job";

/// Names of series in a query.
fn names(query: &str) -> BTreeSet<&str> {
    let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("perfvalidation_")).collect()
}

/// Labels in a query: those of its selectors, and those that it groups and joins by.
fn labels(query: &str) -> BTreeSet<&str> {
    let between = |open: &'static str, close: char| {
        query
            .split(open)
            .skip(1)
            .filter_map(move |rest| rest.split(close).next())
    };
    let selected = between("{", '}').flat_map(|selector| selector.split(','));
    let selected = selected.map(|matcher| matcher.split(['=', '!']).next().unwrap_or_default());
    let grouped = between("by (", ')')
        .map(|list| list.strip_prefix(TARGET).unwrap_or(list).trim_start_matches(", "))
        .chain(between("on (", ')'))
        .filter(|list| !list.is_empty())
        .flat_map(|list| list.split(','));
    selected.chain(grouped).map(str::trim).collect()
}

/// What is wrong with a query.
fn mistakes(query: &str) -> Vec<String> {
    let known = known();
    let (used, unknown): (Vec<_>, Vec<_>) = names(query).into_iter().partition(|name| known.contains_key(*name));
    let mut mistakes: Vec<_> = unknown.into_iter().map(|name| format!("no series {name}")).collect();
    if used.is_empty() {
        mistakes.push("no series at all".to_owned());
    }
    let has = |label: &str| used.iter().any(|name| known[*name].contains(label));
    let labels = labels(query).into_iter().filter(|label| !has(label));
    mistakes.extend(labels.map(|label| format!("no label {label}")));
    mistakes
}

fn assert_correct(query: &str) {
    assert_eq!(mistakes(query), Vec::<String>::new(), "{query}");
}

fn alerts() -> Vec<Value> {
    let objects = objects(&json!({"prometheusRule": {"enabled": true}}));
    let rule = &objects["PrometheusRule perfvalidation-system/perfvalidation-operator"];
    rule["spec"]["groups"][0]["rules"]
        .as_array()
        .expect("well-formed")
        .clone()
}

fn dashboard() -> Value {
    let objects = objects(&json!({"dashboard": {"enabled": true}}));
    let map = &objects["ConfigMap perfvalidation-system/perfvalidation-operator-dashboard"];
    assert_eq!(map["metadata"]["labels"]["grafana_dashboard"], "1");
    serde_json::from_str(map["data"]["perfvalidation.json"].as_str().expect("well-formed")).expect("well-formed")
}

#[test]
fn a_query_for_something_else_is_noticed() {
    assert_eq!(
        mistakes("sum(perfvalidation_runs)"),
        ["no series perfvalidation_runs", "no series at all"]
    );
    assert_eq!(mistakes("sum by (node) (perfvalidation_runs_total)"), ["no label node"]);
    assert_eq!(mistakes("perfvalidation_leader{pod=~\"a\"}"), ["no label pod"]);
    assert_eq!(mistakes("max by (job) (perfvalidation_leader) == 0"), ["no label job"]);
    assert_correct("max by (namespace, job) (perfvalidation_leader) == 0 and on () perfvalidation_leader == 1");
    assert_correct("sum by (le, phase) (rate(perfvalidation_phase_duration_seconds_bucket{phase!=\"Sizing\"}[5m]))");
}

#[test]
fn alerts_ask_for_series_that_exist() {
    let alerts = alerts();
    assert!(alerts.len() >= 6, "{}", alerts.len());
    for alert in &alerts {
        assert_correct(alert["expr"].as_str().expect("well-formed"));
        assert!(
            ["info", "warning", "critical"].contains(&alert["labels"]["severity"].as_str().expect("well-formed")),
            "{alert}"
        );
        for text in ["summary", "description"] {
            assert!(
                !alert["annotations"][text].as_str().unwrap_or_default().is_empty(),
                "{text} of {alert}"
            );
        }
    }
}

#[test]
fn every_alert_links_to_its_own_section() {
    let page = std::fs::read_to_string(repository().join("docs/alerts.md")).expect("a page");
    for alert in alerts() {
        let name = alert["alert"].as_str().expect("well-formed");
        let url = alert["annotations"]["runbook_url"].as_str().unwrap_or_default();
        let anchor = url
            .split_once("/blob/main/docs/alerts.md#")
            .map(|(_, anchor)| anchor.to_owned());
        assert_eq!(anchor, Some(name.to_lowercase()), "{name}");
        assert!(
            page.contains(&format!("\n## {name}\n")),
            "{name} has no section in docs/alerts.md"
        );
    }
}

#[test]
fn every_alert_is_seen_to_fire() {
    let tests = std::fs::read_to_string("tests/alerts.yaml").expect("well-formed");
    for alert in alerts() {
        let name = alert["alert"].as_str().expect("well-formed");
        assert!(
            tests.contains(&format!("alertname=\"{name}\",alertstate=\"firing\"")),
            "{name} has no test in alerts.yaml"
        );
    }
}

#[test]
fn alerts_carry_the_labels_and_links_of_their_owner() {
    let values = json!({"prometheusRule": {
        "enabled": true,
        "namespace": "monitoring",
        "annotations": {"owner": "gpu"},
        "ruleLabels": {"team": "gpu", "severity": "ticket"},
        "disabled": ["PerfValidationStuck"],
        "runbookUrl": "https://wiki.example.com/alerts",
    }});
    let objects = objects(&values);
    let rule = &objects["PrometheusRule monitoring/perfvalidation-operator"];
    assert_eq!(rule["metadata"]["annotations"], json!({"owner": "gpu"}));
    let rules = rule["spec"]["groups"][0]["rules"].as_array().expect("well-formed");
    assert_eq!(rules.len(), alerts().len() - 1, "one alert is left out");
    for rule in rules {
        let name = rule["alert"].as_str().expect("well-formed");
        assert_ne!(name, "PerfValidationStuck");
        assert_eq!(rule["labels"]["team"], "gpu");
        assert_eq!(rule["labels"]["severity"], "ticket");
        let link = format!("https://wiki.example.com/alerts#{}", name.to_lowercase());
        assert_eq!(rule["annotations"]["runbook_url"], link);
    }
}

#[test]
fn a_monitor_in_another_namespace_selects_the_namespace_of_the_release() {
    let options = json!({
        "enabled": true,
        "namespace": "monitoring",
        "relabelings": [{"targetLabel": "cluster", "replacement": "a"}],
        "metricRelabelings": [{"regex": "le", "action": "labeldrop"}],
    });
    for (kind, value, endpoints) in [
        ("ServiceMonitor", "serviceMonitor", "endpoints"),
        ("PodMonitor", "podMonitor", "podMetricsEndpoints"),
    ] {
        let objects = objects(&json!({value: options}));
        let spec = &objects[&format!("{kind} monitoring/perfvalidation-operator")]["spec"];
        assert_eq!(
            spec["namespaceSelector"],
            json!({"matchNames": ["perfvalidation-system"]})
        );
        let endpoint = &spec[endpoints][0];
        assert_eq!(endpoint["relabelings"], options["relabelings"]);
        assert_eq!(endpoint["metricRelabelings"], options["metricRelabelings"]);
    }
    let objects = objects(&json!({"dashboard": {"enabled": true, "namespace": "monitoring"}}));
    assert!(objects.contains_key("ConfigMap monitoring/perfvalidation-operator-dashboard"));
}

#[test]
fn every_panel_asks_for_series_that_exist() {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().expect("well-formed");
    let queries: Vec<_> = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().into_iter().flatten())
        .collect();
    assert!(queries.len() >= 20, "{}", queries.len());
    for query in queries {
        assert_correct(query["expr"].as_str().expect("well-formed"));
    }
    let variables = dashboard["templating"]["list"].as_array().expect("well-formed");
    for variable in variables.iter().filter(|variable| variable["type"] == "query") {
        assert_correct(variable["definition"].as_str().expect("well-formed"));
    }
}

/// Two replicas may export the series of one object, and each of two releases has a leader.
#[test]
fn a_figure_has_each_object_and_each_release_once() {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().expect("well-formed");
    let figures: Vec<_> = panels
        .iter()
        .filter(|panel| panel["type"] == "stat")
        .flat_map(|panel| panel["targets"].as_array().into_iter().flatten())
        .collect();
    assert!(figures.len() >= 7, "{}", figures.len());
    for figure in figures {
        let query = figure["expr"].as_str().expect("well-formed");
        let leaders = format!("sum by ({TARGET}) (perfvalidation_leader)");
        assert!(
            query == leaders || query.contains("max by (") || query.starts_with("max("),
            "{query}"
        );
        let counts_objects = query.contains("_active_runs") || query.contains("_queue_length");
        assert!(!counts_objects || query.contains(&format!("by ({TARGET}")), "{query}");
    }
}

#[test]
fn every_series_of_objects_and_nodes_is_in_a_panel() {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().expect("well-formed");
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let queries = targets.filter_map(|target| target["expr"].as_str());
    let shown: BTreeSet<&str> = queries.flat_map(names).collect();
    let of_one = |labels: &BTreeSet<String>| ["name", "node", "policy"].iter().any(|label| labels.contains(*label));
    for (name, _) in known().iter().filter(|(_, labels)| of_one(labels)) {
        assert!(shown.contains(name.as_str()), "{name}");
    }
}

/// Four hundred validations have four hundred lines.
#[test]
fn a_graph_has_a_limited_number_of_lines() {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().expect("well-formed");
    let mut limited = 0;
    for panel in panels.iter().filter(|panel| panel["type"] == "timeseries") {
        for target in panel["targets"].as_array().expect("well-formed") {
            let query = target["expr"].as_str().expect("well-formed");
            if ["name", "node"].iter().any(|label| labels(query).contains(label)) {
                assert!(query.contains("topk(20, ") || query.contains("bottomk(20, "), "{query}");
                limited += 1;
            }
        }
    }
    assert!(limited >= 5, "{limited}");
}

#[test]
fn panels_do_not_lie_on_each_other() {
    let dashboard = dashboard();
    let mut cells = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for panel in dashboard["panels"].as_array().expect("well-formed") {
        assert!(
            ids.insert(panel["id"].as_u64().expect("well-formed")),
            "{}",
            panel["id"]
        );
        let at = |field: &str| panel["gridPos"][field].as_u64().expect("well-formed");
        assert!(at("x") + at("w") <= 24, "{}", panel["title"]);
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(cells.insert((x, y)), "{} lies on another panel", panel["title"]);
            }
        }
    }
}

#[test]
fn nothing_that_needs_other_peoples_types_is_on_by_default() {
    for (name, object) in objects(&json!({})) {
        assert!(
            !object["apiVersion"]
                .as_str()
                .expect("well-formed")
                .contains("monitoring.coreos.com"),
            "{name}"
        );
        assert!(!name.starts_with("ConfigMap"), "{name}");
    }
}

#[test]
fn a_scrape_keeps_the_namespace_of_the_object() {
    for (kind, value, field) in [
        ("ServiceMonitor", "serviceMonitor", "endpoints"),
        ("PodMonitor", "podMonitor", "podMetricsEndpoints"),
    ] {
        let objects =
            objects(&json!({value: {"enabled": true, "labels": {"release": "prometheus"}, "interval": "1m"}}));
        let monitor = &objects[&format!("{kind} perfvalidation-system/perfvalidation-operator")];
        assert_eq!(monitor["metadata"]["labels"]["release"], "prometheus");
        let scrape = &monitor["spec"][field][0];
        assert_eq!(
            (&scrape["honorLabels"], &scrape["interval"]),
            (&json!(true), &json!("1m"))
        );
        // Prometheus' operator would refuse one above the interval.
        assert_eq!(scrape["scrapeTimeout"], Value::Null);
    }
}

#[test]
fn secure_metrics_have_a_port_a_certificate_and_readers() {
    let values = |monitor: &str, more: &Value| {
        let mut secure = json!({"enabled": true, "secretName": "metrics-tls"});
        secure
            .as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        json!({"secureMetrics": secure, (monitor): {"enabled": true}, "networkPolicy": {"enabled": true}})
    };
    let objects_of_service = objects(&values("serviceMonitor", &json!({})));
    let of = |kind: &str, name: &str| objects_of_service[&format!("{kind} {name}")].clone();
    let name = "perfvalidation-system/perfvalidation-operator";
    assert_eq!(
        of("ServiceMonitor", name)["spec"]["endpoints"][0],
        json!({
            "port": "https", "scheme": "https", "path": "/metrics", "interval": "30s", "honorLabels": true,
            "tlsConfig": {
                "serverName": "perfvalidation-operator-metrics.perfvalidation-system.svc",
                "ca": {"secret": {"name": "metrics-tls", "key": "ca.crt"}},
            },
            "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
        })
    );
    let pod = &of("Deployment", name)["spec"]["template"]["spec"];
    assert_eq!(pod["volumes"][1]["secret"]["secretName"], "metrics-tls");
    assert_eq!(pod["containers"][0]["ports"][1]["containerPort"], 8443);
    assert_eq!(
        of("NetworkPolicy", name)["spec"]["ingress"][0]["ports"][1]["port"],
        "https"
    );
    assert_eq!(
        of("ClusterRoleBinding", "/perfvalidation-operator-auth-delegator")["roleRef"]["name"],
        "system:auth-delegator"
    );
    assert_eq!(
        of("ClusterRole", "/perfvalidation-operator-metrics-reader")["rules"],
        json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}])
    );

    let authorization = json!({"credentials": {"name": "prometheus", "key": "token"}});
    let more = json!({"authorization": authorization, "tlsConfig": {"insecureSkipVerify": true}});
    let objects = objects(&values("podMonitor", &more));
    let endpoint = &objects[&format!("PodMonitor {name}")]["spec"]["podMetricsEndpoints"][0];
    assert_eq!(endpoint["authorization"], authorization);
    assert_eq!(endpoint["tlsConfig"], json!({"insecureSkipVerify": true}));
    assert!(endpoint["bearerTokenFile"].is_null(), "{endpoint}");
}
