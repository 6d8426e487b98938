//! `kubectl get` fits into a terminal of 120 characters for every phase and verdict.

use std::fs;

use perfval_api::{Phase, Verdict, crd, printer_cell};
use serde_json::{Value, json};

const TERMINAL: usize = 120;
/// `kubectl` puts so many spaces behind every column but the last.
const PADDING: usize = 3;
/// The longest age: `2y364d`.
const AGE: &str = "2y364d";

/// Samples with names of 20 characters: every phase, every verdict, and numbers of the longest form.
fn rows() -> Vec<Value> {
    let passed = fs::read_to_string("tests/fixtures/v0.1.0/passed.json").expect("it can be read");
    let base: Value = serde_json::from_str(&passed).expect("it is JSON");
    let both = Phase::ALL
        .iter()
        .flat_map(|&phase| Verdict::ALL.iter().map(move |&verdict| (phase, verdict)));
    both.map(|(phase, verdict)| {
        let mut row = base.clone();
        row["metadata"]["name"] = json!("h100-baseline-eu-001");
        row["metadata"]["creationTimestamp"] = json!(AGE);
        row["status"]["placement"]["node"] = json!("gpu-node-of-20-chars");
        row["status"]["phase"] = json!(phase.as_str());
        row["status"]["verdict"] = json!(verdict.as_str());
        row["status"]["metrics"]["outputTokensPerSecond"] = json!(110_847);
        row["status"]["metrics"]["ttftP99Milliseconds"] = json!(11_910);
        row["status"]["progress"]["summary"] = json!("12: 100%");
        row
    })
    .collect()
}

#[test]
fn the_default_columns_fit_into_a_terminal() {
    let crd = crd();
    let columns = crd.spec.versions[0]
        .additional_printer_columns
        .as_deref()
        .unwrap_or_default();
    let shown = columns.iter().filter(|column| column.priority.unwrap_or_default() == 0);
    let own = [("NAME", ".metadata.name")];
    let all = own
        .into_iter()
        .chain(shown.map(|column| (&*column.name, &*column.json_path)));
    let rows = rows();
    let widths: Vec<(&str, usize)> = all
        .map(|(name, path)| {
            let cells = rows.iter().map(|row| printer_cell(row, path).len());
            let widest = cells.max().unwrap_or_default();
            assert!(widest > 0, "{name}: no value at {path}");
            (name, widest.max(name.len()))
        })
        .collect();
    let names: Vec<&str> = widths.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        [
            "NAME", "PHASE", "VERDICT", "NODE", "TOK/S", "TTFT-P99", "PROGRESS", "AGE"
        ]
    );
    let total = widths.iter().map(|(_, width)| width + PADDING).sum::<usize>() - PADDING;
    assert!(total <= TERMINAL, "{total}: {widths:?}");
}
