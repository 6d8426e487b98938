//! Whole runs, simulated: the page shows what today's rule makes of them, and the goals hold that it calls met.

use std::path::Path;

use perfval_fidelity::whole;

/// Goals that the page shows as missed.
const MISSED: [&str; 0] = [];

#[test]
fn the_page_shows_what_the_rule_makes_of_whole_runs() {
    let (page, missed) = whole::page();
    let docs = Path::new("../../docs/evidence");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(docs.join("simulated.md"), &page).expect("the page");
    }
    let written = std::fs::read_to_string(docs.join("simulated.md")).unwrap_or_default();
    assert!(
        written == page,
        "docs/evidence/simulated.md is stale: run `just fidelity --replay-only` and look at what changed"
    );
    assert_eq!(missed, MISSED);
}

#[test]
fn the_page_on_the_trial_rule_quotes_rows_of_the_simulation() {
    let read = |name| std::fs::read_to_string(Path::new("../../docs/evidence").join(name)).expect("a page");
    let (rule, simulated) = (read("trial-rule.md"), read("simulated.md"));
    let after = rule
        .split("From simulated.md; a test compares them. -->\n")
        .nth(1)
        .expect("the mark");
    let rows: Vec<&str> = after.lines().take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 6, "{rows:#?}");
    for row in rows {
        assert!(
            simulated.lines().any(|line| line == row),
            "docs/evidence/simulated.md has no {row}"
        );
    }
}
