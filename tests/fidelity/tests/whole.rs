//! Whole runs, simulated: the page shows what today's rule makes of them, and the goals hold that it calls met.

use perfval_fidelity::whole;
use perfval_testkit::golden::assert_recorded;

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
        let how = "run `just fidelity --replay-only` and look at what changed";
        assert_recorded(format!("../../docs/evidence/{name}"), &text, how);
    }
    assert_eq!(whole.missed, MISSED);
}
