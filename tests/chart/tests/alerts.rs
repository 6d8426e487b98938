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

/// The series of a hundred nodes that are measured side by side, one sample a minute.
fn fleet() -> Value {
    let minutes = || (0..=MINUTES).map(|minute| minute * 60);
    let series = |name: String, values: Vec<String>| json!({"series": name, "values": values.join(" ")});
    let mut all = vec![series("perfvalidation_leader".to_owned(), vec![format!("1x{MINUTES}")])];
    for (name, _) in &PHASES[..4] {
        let active = |now| {
            (0..NODES)
                .filter(|node| phase(*node, now).0 == *name)
                .count()
                .to_string()
        };
        all.push(series(
            format!("perfvalidation_active_runs{{phase=\"{name}\"}}"),
            minutes().map(active).collect(),
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
                format!("perfvalidation_phase_since_timestamp_seconds{{{of}}}"),
                minutes().map(since).collect(),
            ));
        }
    }
    for node in 0..NODES {
        let held = |now| if phase(node, now).0 == "Sizing" { "0" } else { "8" }.to_owned();
        all.push(series(
            format!("perfvalidation_held_gpus{{namespace=\"perf\",name=\"n{node}\"}}"),
            minutes().map(held).collect(),
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
    let output = Command::new("promtool")
        .args(["test", "rules"])
        .args([tests, fleet_tests])
        .output()
        .expect("promtool is in PATH");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout) + &*String::from_utf8_lossy(&output.stderr)
    );
}
