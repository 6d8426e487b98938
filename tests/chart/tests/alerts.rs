//! Every alert fires when it should, by Prometheus' own tool.

use std::fs;
use std::process::Command;

use perfval_chart::render::repository;
use serde_json::Value;

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
    let output = Command::new("promtool")
        .args(["test", "rules"])
        .arg(tests)
        .output()
        .expect("promtool is in PATH");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout) + &*String::from_utf8_lossy(&output.stderr)
    );
}
