//! Whole passes over simulated fleets, through the public functions, with the knowledge of the product at that moment. The
//! page shows the results beside the goals.

mod cases;
mod losses;
mod page;
mod policy;
mod table;
mod tally;
mod world;

use std::path::Path;

use table::{Page, missed, show_shape};
use world::{Shape, USUAL};

/// The system's allocator took 15 % of the time of the simulations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Goals that the page shows as missed.
const MISSED: &[&str] = &[
    "one GPU 10 % slower, reported, usual, heavy",
    "a node 10 % slower, reported, usual, heavy",
    "one GPU 10 % slower, reported, usual, recorded",
    "a node 10 % slower, reported, usual, recorded",
    "a node 10 % slower, reported, rough, Gaussian",
    "one GPU 10 % slower, reported, rough, heavy",
    "a node 10 % slower, reported, rough, heavy",
    "cold in two runs: reported, usual, heavy",
    "of 10 nodes: off, usual, recorded",
];

/// All rows take forty minutes of one core, so only `UPDATE_GOLDEN=1` plays them. A test run plays those with recorded noise, and compares
/// them with the file's. The page is compared with all rows of the file.
#[test]
fn the_page_shows_how_often_simulated_fleets_are_judged_right() {
    const STALE: &str = "docs/evidence/fleet-simulated.* is stale: run `UPDATE_GOLDEN=1 just unit -p perfval-fleet --test calibration` \
                         and look at what changed";
    let folder = Path::new("../../docs/evidence");
    let (page, rows) = (folder.join("fleet-simulated.md"), folder.join("fleet-simulated.csv"));
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let shapes: &[Shape] = if update { &Shape::ALL } else { &[Shape::Recorded] };
    let played = Page::write(shapes).csv;
    if update {
        std::fs::write(&page, page::text(&played)).expect("the page");
        std::fs::write(&rows, &played).expect("its rows");
    }
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let (text, csv) = (read(&page), read(&rows));
    let is_played = |row: &&str| {
        let mut noises = shapes.iter().map(|shape| format!(",{},", show_shape(*shape)));
        noises.any(|noise| row.contains(&noise))
    };
    let written: Vec<&str> = csv.lines().filter(is_played).collect();
    assert_eq!(played.lines().skip(1).collect::<Vec<_>>(), written, "{STALE}");
    assert_eq!(text, page::text(&csv), "{STALE}");
    assert_eq!(missed(&csv), MISSED);
}

#[test]
fn at_least_95_of_100_healthy_runs_lie_within_the_margin_of_their_own_past() {
    // Runs of two trials vary by 1.6 % and by 2.0 % in common.
    for shape in [Shape::Gaussian, Shape::Recorded] {
        let within = cases::within_margin(shape, USUAL, 2);
        assert!(within.of == 1000 && within.share() >= 0.95, "{shape:?}: {within:?}");
        assert!(within.hits < within.of, "{shape:?}: no run is so far away");
    }
}
