//! Whole passes over simulated fleets, through the public functions, with the knowledge of the product at that moment. The
//! page shows the results beside the goals.

mod cases;
mod page;
mod policy;
mod policy_cases;
mod policy_page;
mod table;
mod tally;
mod world;

use std::path::Path;

use table::Page;

/// The system's allocator took 15 % of the time of the simulations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Goals that the page shows as missed.
const MISSED: &[&str] = &[
    "a node 10 % slower, 5 own runs, reported, usual, Gaussian",
    "one GPU 10 % slower, 5 own runs, reported, usual, heavy",
    "a node 10 % slower, 5 own runs, reported, usual, heavy",
    "one GPU 10 % slower, 5 own runs, reported, usual, recorded",
    "a node 10 % slower, 5 own runs, reported, usual, recorded",
    "a node 5 % slower, 8 own runs, reported, quiet, Gaussian",
    "a node, usual, Gaussian",
    "alarms of a CUSUM, per subject and pass, usual, heavy",
    "alarms of a CUSUM, per subject and pass, usual, recorded",
    "policy: a node 10 % slower, 5 own runs, reported, usual, Gaussian",
    "policy: one GPU 10 % slower, 5 own runs, reported, usual, heavy",
    "policy: a node 10 % slower, 5 own runs, reported, usual, heavy",
    "policy: one GPU 10 % slower, 5 own runs, reported, usual, recorded",
    "policy: a node 10 % slower, 5 own runs, reported, usual, recorded",
    "policy: a node 10 % slower, 5 own runs, reported, rough, Gaussian",
    "policy: one GPU 10 % slower, 5 own runs, reported, rough, heavy",
    "policy: a node 10 % slower, 5 own runs, reported, rough, heavy",
    "policy: three nodes, all healthy: fleets with a false name, rough, Gaussian",
    "policy: three nodes, 5 own runs, all healthy: fleets with a false name, rough, Gaussian",
    "policy: three nodes, all healthy: fleets with a false name, rough, heavy",
    "policy: three nodes, 5 own runs, all healthy: fleets with a false name, rough, heavy",
    "policy: baselines of 10 nodes that are off, usual, recorded",
    "policy: baselines of 20 nodes that are off, usual, recorded",
    "policy: one GPU drifts by 3 %: passes until reported, usual, Gaussian",
    "policy: one GPU drifts by 3 %: passes until reported, quiet, Gaussian",
    "policy: a node drifts by 3 %: passes until reported, usual, Gaussian",
    "policy: a node drifts by 3 %: passes until reported, quiet, Gaussian",
];

#[test]
fn the_page_shows_how_often_simulated_fleets_are_judged_right() {
    let page = Page::write();
    let missed = page.missed.clone();
    let (text, csv) = page.into_texts();
    for (name, text) in [("fleet-simulated.md", text), ("fleet-simulated.csv", csv)] {
        let path = Path::new("../../docs/evidence").join(name);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &text).expect("the page");
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == text,
            "docs/evidence/{name} is stale: run `UPDATE_GOLDEN=1 just unit -p perfval-fleet --test calibration` and look at what changed"
        );
    }
    assert_eq!(missed, MISSED);
}
