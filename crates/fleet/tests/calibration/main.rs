//! Whole passes over simulated fleets, through the public functions, with the knowledge of the product at that moment. The
//! page shows the results beside the goals.

mod cases;
mod page;
mod policy;
mod table;
mod tally;
mod world;

use std::path::Path;

use table::{Page, show_shape};
use world::Shape;

/// The system's allocator took 15 % of the time of the simulations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Goals that the page shows as missed.
const MISSED: &[&str] = &[
    "a node 10 % slower, reported, usual, heavy",
    "one GPU 10 % slower, reported, usual, recorded",
    "a node 10 % slower, reported, usual, recorded",
    "a node 10 % slower, reported, rough, Gaussian",
    "a node 10 % slower, reported, rough, heavy",
    "of 10 nodes: off, usual, recorded",
];

/// All rows take ten minutes of one core, so only `UPDATE_GOLDEN=1` plays them. A test run plays those with recorded noise, and compares
/// them with the page's.
#[test]
fn the_page_shows_how_often_simulated_fleets_are_judged_right() {
    const STALE: &str = "docs/evidence/fleet-simulated.* is stale: run `UPDATE_GOLDEN=1 just unit -p perfval-fleet --test calibration` \
                         and look at what changed";
    let folder = Path::new("../../docs/evidence");
    let (page, rows) = (folder.join("fleet-simulated.md"), folder.join("fleet-simulated.csv"));
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let shapes: &[Shape] = if update { &Shape::ALL } else { &[Shape::Recorded] };
    let played = Page::write(shapes);
    let missed = played.missed.clone();
    let (text, csv) = played.into_texts();
    if update {
        std::fs::write(&page, &text).expect("the page");
        std::fs::write(&rows, &csv).expect("its rows");
    }
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let (text, written) = (read(&page), read(&rows));
    let is_of = |row: &str| {
        shapes
            .iter()
            .any(|shape| row.contains(&format!(",{},", show_shape(*shape))))
    };
    let recorded: Vec<&str> = written.lines().filter(|row| is_of(row)).collect();
    assert_eq!(csv.lines().skip(1).collect::<Vec<_>>(), recorded, "{STALE}");
    assert!(text.starts_with(page::INTRODUCTION), "{STALE}");
    let is_missed = |name: &&str| {
        shapes
            .iter()
            .any(|shape| name.ends_with(&format!(", {}", show_shape(*shape))))
    };
    assert_eq!(
        missed,
        MISSED
            .iter()
            .copied()
            .filter(|name| is_missed(name))
            .collect::<Vec<_>>()
    );
}
