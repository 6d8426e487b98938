//! Objects as the API server stores them, one of every kind that a `GitOps` tool meets: what Argo CD's and Flux' own
//! engines are tested on (`just gitops`). `UPDATE_GOLDEN=1 cargo test -p perfval-run --test machine` writes them.

use std::collections::BTreeSet;

use Phase::{Benchmarking, CleaningUp, Deploying, Evaluating, Pending, Sizing, WaitingForReady};
use Verdict::{Error, Failed, Inconclusive, Passed, Skipped};
use perfval_api::{Phase, Verdict, meta};
use perfval_run::status::summarize;
use perfval_testkit::golden::assert_recorded;
use serde_json::{Value, json};

use super::moments::{at, begun, block, changed, interrupted, over, overdue, saturated, showing, suspended};
use super::story::{Showing, Story};

const FOLDER: &str = "../../config/argocd/resource_customizations/perfvalidation.dev/PerfValidation";

/// As the API server creates it: the CRD's default is in its status.
fn untouched() -> Story {
    let mut story = Story::new();
    let default = json!({"observedGeneration": -1, "phase": "Pending", "message": perfval_api::UNSEEN});
    story.object.status = Some(serde_json::from_value(default).expect("a status"));
    story
}

fn suspend(story: &mut Story) {
    story.spec(json!({"suspend": true}));
}

/// Finalizer of Argo CD, which holds a hook until its result was read.
const HOOK: &str = "argocd.argoproj.io/hook-finalizer";

fn hold(story: &mut Story) {
    story
        .object
        .metadata
        .finalizers
        .get_or_insert_default()
        .push(HOOK.into());
}

/// Deleted, and the operator has confirmed that nothing is left: only another client's finalizer holds the object.
fn released(mut story: Story) -> Story {
    hold(&mut story);
    story.delete();
    story.until_that(|story| story.gone);
    story.object.metadata.finalizers = Some(vec![HOOK.into()]);
    story
}

/// Deleted while another client holds it too, as of the operator's first pass.
fn leaving(mut story: Story) -> Story {
    hold(&mut story);
    story.delete().step();
    story
        .object
        .metadata
        .finalizers
        .get_or_insert_default()
        .retain(|name| name != HOOK);
    story
}

/// Everything of the run is kept for a post-mortem.
fn kept(mut story: Story) -> Story {
    story.annotate(meta::NO_CLEANUP, Some("true"));
    over(story)
}

fn blocked(story: &mut Story) {
    block(story);
    summarize(story.object.status.as_mut().expect("a status"), story.now);
}

/// A finished run, and an edit that asks for the next one while `spec.suspend` holds it back.
fn held_back() -> Story {
    changed(over(Story::new()), |s| {
        s.spec(json!({"suspend": true, "placement": {"maxGPUs": 1}}));
        s.step();
    })
}

#[rustfmt::skip] // a table: one line an object
fn stories() -> Vec<(&'static str, Story)> {
    let rerun = |s: &mut Story| { s.annotate(meta::RERUN, Some("2026-11-20")); };
    vec![
        ("without-status", Story::new()),
        ("untouched", untouched()),
        ("pending", at(Pending)),
        ("sizing", at(Sizing)),
        ("sizing-saturated", changed(at(Sizing), |s| { s.free = 0; s.step(); })),
        ("deploying", at(Deploying)),
        ("waiting-for-ready", at(WaitingForReady)),
        ("benchmarking", at(Benchmarking)),
        ("benchmarking-blocked", changed(at(Benchmarking), blocked)),
        ("benchmarking-blocked-for-long", changed(at(Benchmarking), |s| { blocked(s); s.wait(600); s.step(); })),
        ("evaluating", at(Evaluating)),
        ("cleaning-up", at(CleaningUp)),
        ("passed", over(Story::new())),
        ("failed", over(showing(Showing::Slow))),
        ("inconclusive", over(showing(Showing::Starved))),
        ("skipped", over(begun(json!({"gates": []})))),
        ("error", over(saturated())),
        ("passed-edited", changed(over(Story::new()), |s| { s.spec(json!({"placement": {"maxGPUs": 1}})); })),
        ("passed-rerun-asked", changed(over(Story::new()), rerun)),
        ("passed-rerun-done", over(changed(Story::new(), rerun))),
        ("passed-rerun-held-back", changed(over(Story::new()), |s| { suspend(s); rerun(s); s.step(); })),
        ("passed-suspended", changed(over(Story::new()), |s| { suspend(s); s.step(); })),
        ("failed-suspended", changed(over(showing(Showing::Slow)), |s| { suspend(s); s.step(); })),
        ("passed-held-back", held_back()),
        ("suspended", suspended()),
        ("suspended-from-the-start", changed(Story::with(json!({"suspend": true})), |s| { s.step(); })),
        ("suspending", interrupted(suspend)),
        ("passed-kept", kept(Story::new())),
        ("failed-kept", kept(showing(Showing::Slow))),
        ("passed-leftovers", overdue()),
        ("failed-leftovers", over(changed(showing(Showing::Slow), |s| { s.until(CleaningUp); s.stuck = true; s.step(); s.wait(4000); }))),
        ("suspending-leftovers", changed(interrupted(|s| { s.stuck = true; suspend(s); }), |s| { s.wait(4000); s.step(); s.wait(1); s.step(); })),
        ("deleting", changed(at(Benchmarking), |s| { s.step(); s.delete(); s.step(); })),
        ("deleting-passed", leaving(over(Story::new()))),
        ("deleted-running", released(at(WaitingForReady))),
        ("deleted-passed", released(over(Story::new()))),
        ("deleted-failed", released(over(showing(Showing::Slow)))),
    ]
}

/// As the API server would return it.
fn stored(story: &Story) -> Value {
    let mut object = json!(story.object);
    object["metadata"]["creationTimestamp"] = json!("2026-11-20T12:00:00Z");
    if story.object.status.is_none() {
        object.as_object_mut().expect("an object").remove("status");
    }
    object
}

/// An object that this version cannot parse, with the conditions that the operator wrote
/// (`an_object_that_cannot_be_parsed_keeps_no_old_health`).
fn unreadable() -> Value {
    let mut object = stored(&over(Story::new()));
    object["spec"]["gates"][0]["metric"] = json!("MetricOfAnotherVersion");
    let conditions = object["status"]["conditions"].as_array_mut().expect("conditions");
    conditions.retain(|condition| {
        !["Ready", "Reconciling", "Stalled"].contains(&condition["type"].as_str().unwrap_or_default())
    });
    for (name, value) in [("Ready", "False"), ("Reconciling", "False"), ("Stalled", "True")] {
        conditions.push(json!({
            "type": name, "status": value, "reason": "SpecUnreadable", "observedGeneration": 1,
            "message": "this operator version cannot parse the object: unknown variant `MetricOfAnotherVersion`",
            "lastTransitionTime": "2026-11-20T12:00:00Z",
        }));
    }
    object
}

/// What a later version may write: words that this one does not know.
fn of_a_later_version() -> [(&'static str, Value); 3] {
    let mut verdict = stored(&over(Story::new()));
    verdict["status"]["verdict"] = json!("Doubtful");
    let mut phase = stored(&at(Deploying));
    phase["status"]["phase"] = json!("Warming");
    [
        ("later-verdict", verdict),
        ("later-phase", phase),
        ("later-spec", unreadable()),
    ]
}

/// What Argo CD's actions are to make of some of these objects.
fn after_actions() -> [(&'static str, Value); 4] {
    let annotated = |mut story: Story, key: &str, value: Option<&str>| stored(story.annotate(key, value));
    let suspended = |story: Story, value: bool| {
        let mut object = stored(&story);
        object["spec"]["suspend"] = json!(value);
        object
    };
    [
        (
            "rerun",
            annotated(over(Story::new()), meta::RERUN, Some("0001-01-01T00:00:00Z")),
        ),
        ("suspend", suspended(over(Story::new()), true)),
        ("resume", suspended(super::moments::suspended(), false)),
        ("clean-up", annotated(kept(Story::new()), meta::NO_CLEANUP, None)),
    ]
}

/// Every file with its object.
fn files() -> Vec<(String, Value)> {
    let stories = stories().into_iter().map(|(name, story)| (name, stored(&story)));
    let objects = stories.chain(of_a_later_version());
    let objects = objects.map(|(name, object)| (format!("{FOLDER}/testdata/{name}.yaml"), object));
    let after = after_actions();
    let after = after.map(|(name, object)| (format!("{FOLDER}/actions/testdata/{name}.yaml"), object));
    objects.chain(after).collect()
}

#[test]
fn saved_objects_are_as_recorded() {
    for (path, object) in files() {
        let text = serde_saphyr::to_string(&object).expect("YAML");
        assert_recorded(path, &text, "see the header of tests/machine/saved_objects.rs");
    }
}

#[test]
fn every_saved_object_is_made_here() {
    let list = |folder: &str| {
        let folder = format!("{FOLDER}/{folder}");
        let files = std::fs::read_dir(&folder).expect("a folder");
        let name = |file: std::io::Result<std::fs::DirEntry>| file.expect("a file").file_name();
        files
            .map(move |file| format!("{folder}/{}", name(file).to_string_lossy()))
            .collect::<Vec<_>>()
    };
    let found: BTreeSet<String> = list("testdata").into_iter().chain(list("actions/testdata")).collect();
    let made = files().into_iter().map(|(path, _)| path).collect();
    assert_eq!(found, made);
}

#[test]
fn every_phase_and_verdict_is_among_them() {
    let shown = |field: &str| -> BTreeSet<String> {
        let word = |object: &Value| object["status"][field].as_str().map(str::to_owned);
        stories().iter().filter_map(|(_, story)| word(&stored(story))).collect()
    };
    let phases = Phase::ALL.iter().map(|phase| phase.as_str().to_owned()).collect();
    assert_eq!(shown("phase"), phases);
    let verdicts = [Passed, Failed, Inconclusive, Skipped, Error];
    assert_eq!(
        shown("verdict"),
        verdicts.map(|verdict| verdict.as_str().to_owned()).into()
    );
}
