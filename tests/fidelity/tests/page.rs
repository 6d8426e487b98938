//! The page on fidelity says what today's code makes of the recorded runs.

use std::path::Path;

use perfval_fidelity::{corpus, page};
use perfval_testkit::golden::assert_recorded;

#[test]
fn the_page_and_its_file_match_the_recorded_runs() {
    let project = Path::new("../..");
    let runs = corpus::read(&project.join("tests/fidelity/recorded.jsonl.gz")).expect("the recorded runs");
    let texts = page::texts(&runs);
    for (name, text) in [("fidelity.md", texts.page), ("trials.csv", texts.trials)] {
        let how = "run `just fidelity --replay-only` and look at what changed";
        assert_recorded(project.join("docs/evidence").join(name), &text, how);
    }
}

#[test]
fn a_trial_that_does_not_count_has_a_reason() {
    let list = std::fs::read_to_string("excluded.csv").expect("the list");
    let rows = list.lines().filter(|line| !line.starts_with('#')).skip(1);
    for row in rows {
        let cells: Vec<&str> = row.splitn(6, ',').collect();
        assert!(cells.len() == 6 && cells[4].parse::<usize>().is_ok(), "{row}");
        assert!(!cells[5].trim().is_empty(), "no reason: {row}");
    }
}
