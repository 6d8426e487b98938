//! Every alert fires when it should, by Prometheus' own tool.

use std::fs;
use std::process::Command;

use perfval_chart::render::repository;
use serde_json::{Value, json};

/// Seconds at which the phases of a healthy run on two H100s began (docs/evidence/silicon.md), and its end.
const PHASES: [(&str, i64); 5] = [
    ("Sizing", 0),
    ("WaitingForReady", 2),
    ("Benchmarking", 104),
    ("CleaningUp", 206),
    ("", 215),
];
const NODES: i64 = 100;
const MINUTES: i64 = 180;

/// Phase of a node's run at a time, and when it began. Runs follow each other at once; each node began at another time.
fn phase(node: i64, now: i64) -> (&'static str, i64) {
    let into = (now + node * 97) % 215;
    let (phase, began) = PHASES
        .iter()
        .rev()
        .find(|(_, began)| *began <= into)
        .expect("it has begun");
    (phase, now - (into - began))
}

/// Samples of one series, one a minute.
fn series(name: &str, values: &[String]) -> Value {
    json!({"series": name, "values": values.join(" ")})
}

/// The series of a hundred nodes that are measured side by side, one sample a minute.
fn fleet() -> Value {
    let minutes = || (0..=MINUTES).map(|minute| minute * 60);
    let mut all = vec![series("perfvalidation_leader", &[format!("1x{MINUTES}")])];
    for (name, _) in &PHASES[..4] {
        let active = |now| {
            (0..NODES)
                .filter(|node| phase(*node, now).0 == *name)
                .count()
                .to_string()
        };
        all.push(series(
            &format!("perfvalidation_active_runs{{phase=\"{name}\"}}"),
            &minutes().map(active).collect::<Vec<_>>(),
        ));
        for node in 0..NODES {
            let of = format!("namespace=\"perf\",name=\"n{node}\",phase=\"{name}\"");
            let since = |now| {
                let (current, since) = phase(node, now);
                if current == *name {
                    since.to_string()
                } else {
                    "_".to_owned()
                }
            };
            all.push(series(
                &format!("perfvalidation_phase_since_timestamp_seconds{{{of}}}"),
                &minutes().map(since).collect::<Vec<_>>(),
            ));
        }
    }
    for node in 0..NODES {
        let held = |now| if phase(node, now).0 == "Sizing" { "0" } else { "8" }.to_owned();
        all.push(series(
            &format!("perfvalidation_held_gpus{{namespace=\"perf\",name=\"n{node}\"}}"),
            &minutes().map(held).collect::<Vec<_>>(),
        ));
    }
    json!({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [{
        "name": "a hundred healthy nodes are measured side by side",
        "interval": "1m",
        "input_series": all,
        "promql_expr_test": [{
            "expr": format!("count_over_time(count(ALERTS{{alertstate=\"firing\"}})[{MINUTES}m:1m])"),
            "eval_time": format!("{MINUTES}m"),
            "exp_samples": [],
        }],
    }]})
}

/// The query of docs/install.md, over nodes of two products.
fn products() -> Value {
    let page = fs::read_to_string(repository().join("docs/install.md")).expect("well-formed");
    let (_, query) = page.split_once("```promql\n").expect("a query");
    let (query, _) = query.split_once("```").expect("an end");
    let nodes = [("n1", "H100", "1.1"), ("n2", "H100", "0.9"), ("n3", "H200", "1.3")];
    let input: Vec<Value> = nodes
        .iter()
        .flat_map(|(node, product, ratio)| {
            let measured = format!("perfvalidation_node_of_gate_ratio{{node=\"{node}\",pod=\"a\"}}");
            // Two replicas of kube-state-metrics.
            let labels = ["x", "y"].map(|instance| {
                format!("kube_node_labels{{node=\"{node}\",label_nvidia_com_gpu_product=\"{product}\",instance=\"{instance}\"}}")
            });
            let [x, y] = labels.map(|labels| series(&labels, &["1".to_owned()]));
            [series(&measured, &[(*ratio).to_owned()]), x, y]
        })
        .collect();
    let sample = |node: &str, product: &str, value: f64| json!({"labels": format!("{{node=\"{node}\",label_nvidia_com_gpu_product=\"{product}\"}}"), "value": value});
    let expected = [sample("n2", "H100", 0.9), sample("n3", "H200", 1.3)];
    json!({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [{
        "name": "products are compared by labels of nodes",
        "interval": "1m",
        "input_series": input,
        "promql_expr_test": [{"expr": query, "eval_time": "0m", "exp_samples": expected}],
    }]})
}

/// The rules as Prometheus reads them: what its operator takes out of the object.
#[test]
#[ignore = "needs promtool: just alerts"]
fn every_alert_fires_when_it_should_and_only_then() {
    let folder = tempfile::tempdir().expect("well-formed");
    let object = fs::read_to_string(repository().join("config/components/alerts/alerts.yaml")).expect("well-formed");
    let object: Value = serde_saphyr::from_str(&object).expect("well-formed");
    let tests = folder.path().join("tests.yaml");
    fs::write(folder.path().join("rules.yaml"), object["spec"].to_string()).expect("well-formed");
    fs::copy("tests/alerts.yaml", &tests).expect("well-formed");
    let fleet_tests = folder.path().join("fleet.yaml");
    fs::write(&fleet_tests, fleet().to_string()).expect("well-formed");
    let products_tests = folder.path().join("products.yaml");
    fs::write(&products_tests, products().to_string()).expect("well-formed");
    let output = Command::new("promtool")
        .args(["test", "rules"])
        .args([tests, fleet_tests, products_tests])
        .output()
        .expect("promtool is in PATH");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout) + &*String::from_utf8_lossy(&output.stderr)
    );
}
