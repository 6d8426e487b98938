//! The series of the operator, as docs/metrics.md lists them; that page is generated from the code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use perfval_chart::render::repository;

/// Labels of every series, by the name that a query uses: a histogram has three of them, and its buckets one label more.
pub fn known() -> BTreeMap<String, BTreeSet<String>> {
    let page = fs::read_to_string(repository().join("docs/metrics.md")).expect("well-formed");
    let mut known = BTreeMap::new();
    for row in page.lines().filter(|line| line.starts_with("| `perfvalidation_")) {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let name = cells[1].trim_matches('`');
        let labels = cells[3]
            .split(',')
            .map(|label| label.trim().trim_matches('`').to_owned());
        let labels: BTreeSet<_> = labels.filter(|label| !label.is_empty()).collect();
        if cells[2] == "histogram" {
            let with_buckets = labels.iter().cloned().chain(["le".to_owned()]).collect();
            known.insert(format!("{name}_bucket"), with_buckets);
            known.insert(format!("{name}_count"), labels.clone());
            known.insert(format!("{name}_sum"), labels);
        } else {
            known.insert(name.to_owned(), labels);
        }
    }
    assert!(known.len() > 15, "docs/metrics.md has no table of series: {known:?}");
    known
}
