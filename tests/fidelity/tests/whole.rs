//! Whole runs, simulated: the page shows what today's rule makes of them, and the goals hold that it calls met.

use std::path::Path;

use perfval_fidelity::whole;

/// Goals that the page shows as missed.
const MISSED: [&str; 0] = [];

#[test]
fn the_page_shows_what_the_rule_makes_of_whole_runs() {
    let whole = whole::page();
    for (name, text) in [
        ("simulated.md", whole.page),
        ("runs.csv", whole.runs),
        ("claims.csv", whole.claims),
    ] {
        let path = Path::new("../../docs/evidence").join(name);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &text).expect("the text");
        }
        assert!(
            std::fs::read_to_string(&path).unwrap_or_default() == text,
            "docs/evidence/{name} is stale: run `just fidelity --replay-only` and look at what changed"
        );
    }
    assert_eq!(whole.missed, MISSED);
}
