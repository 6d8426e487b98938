//! Objects that this version and earlier releases store: this version takes each of them over. `PERFVAL_FREEZE=v0.1.0 cargo test
//! -p perfval-run --test machine` writes those of a new release; the files of a release that is out never change.

use std::fs;
use std::path::{Path, PathBuf};

use Phase::{Benchmarking, CleaningUp, Completed, Deploying, Evaluating, Pending, Sizing, Suspended, WaitingForReady};
use perfval_api::{PerfValidation, Phase, meta};
use serde_json::json;

use super::deadline::in_the_queue;
use super::moments::{at, begun, changed, over, saturated, second_trial_hangs, showing, suspended};
use super::story::{Showing, Story};

const RELEASES: &str = "../api/tests/fixtures";

#[rustfmt::skip] // a table: one line an object
fn stories() -> Vec<(&'static str, Story)> {
    vec![
        ("pending", at(Pending)),
        ("sizing", at(Sizing)),
        ("sizing-busy", in_the_queue(json!({}))),
        ("deploying", at(Deploying)),
        ("waiting-for-ready", at(WaitingForReady)),
        ("benchmarking", at(Benchmarking)),
        ("benchmarking-second-trial", second_trial_hangs()),
        ("evaluating", at(Evaluating)),
        ("cleaning-up", at(CleaningUp)),
        ("suspended", suspended()),
        ("passed", over(Story::new())),
        ("passed-second-run", over(changed(over(Story::new()), |s| { s.annotate(meta::RERUN, Some("2")); s.until(Pending); }))),
        ("passed-on-both-ledgers", over(changed(Story::with(json!({"placement": {"allocation": "DRA"}})), |s| s.plugin_pods = Some(0)))),
        ("failed", over(showing(Showing::Slow))),
        ("inconclusive", over(showing(Showing::Starved))),
        ("error", over(saturated())),
        ("skipped", over(begun(json!({"gates": []})))),
    ]
}

#[test]
fn freeze() {
    let Some(release) = std::env::var_os("PERFVAL_FREEZE") else {
        return;
    };
    let folder = Path::new(RELEASES).join(release);
    fs::create_dir_all(&folder).expect("the folder can be made");
    for (name, story) in stories() {
        let text = serde_json::to_string_pretty(&story.object).expect("it is JSON");
        fs::write(folder.join(format!("{name}.json")), text + "\n").expect("it can be written");
    }
}

/// Objects of the releases that are out, by their file. Those of the version in development change with the code.
fn released() -> Vec<(String, PerfValidation)> {
    let files = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        entries.map(|entry| entry.expect("it can be listed").path()).collect()
    };
    let in_development = format!("v{}", env!("CARGO_PKG_VERSION").trim_end_matches("-dev"));
    let mut releases = files(Path::new(RELEASES));
    releases.retain(|release| !release.ends_with(&in_development));
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("it can be read");
        let object = serde_json::from_str(&text).expect("it is read");
        (path.display().to_string(), object)
    };
    releases.iter().flat_map(|release| files(release)).map(read).collect()
}

#[test]
fn every_stored_object_is_taken_over_wherever_it_stands() {
    let stories = stories().into_iter();
    let mut stored: Vec<_> = stories.map(|(name, story)| (name.to_owned(), story.object)).collect();
    let mut phases: Vec<_> = stored
        .iter()
        .filter_map(|(_, object)| object.status.as_ref()?.phase)
        .collect();
    phases.sort();
    phases.dedup();
    assert_eq!(phases, Phase::ALL);
    stored.extend(released());
    for (name, object) in stored {
        let mut story = Story::new();
        story.object = object;
        let before = story.phase();
        // Nothing of the old run is left in this world: it ends, or a new one goes through.
        for _ in 0..80 {
            story.step();
            story.outage(60);
        }
        let rests = matches!(story.phase(), Some(Completed | Suspended));
        let (after, reason) = (story.phase(), story.reason());
        assert!(rests, "{name}: from {before:?} to {after:?} {reason}");
    }
}
