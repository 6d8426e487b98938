//! What tools that wait for an object read: `Ready`, `Reconciling` and `Stalled`.

use Phase::{Benchmarking, CleaningUp, Completed, Deploying};
use perfval_api::{Leftovers, Phase, condition, meta};
use serde_json::json;

use super::moments::{at, block, changed, interrupted, kept, overdue};
use super::story::Story;

/// `Ready`, `Reconciling`, `Stalled`, and the reason of the last.
fn conditions(story: &Story) -> [String; 4] {
    let status = story.status();
    let find = |name: &str| condition::find(&status, name).expect("a condition").clone();
    let [ready, reconciling, stalled] = ["Ready", "Reconciling", "Stalled"].map(find);
    [ready.status, reconciling.status, stalled.status, stalled.reason]
}

#[test]
fn a_pass_is_not_ready_while_its_gpus_are_not_back() {
    let mut story = overdue();
    let left = |story: &Story| (story.phase(), story.status().state.leftovers, story.deployed);
    assert_eq!(left(&story), (Some(Completed), Some(Leftovers::Overdue), true));
    assert_eq!(conditions(&story), ["False", "False", "True", "TeardownUnconfirmed"]);
    story.step();
    assert!(story.deployed, "finalizers hold it");
    story.stuck = false;
    story.steps(2);
    assert_eq!(left(&story), (Some(Completed), None, false));
    assert!(condition::is_true(&story.status(), condition::CLEANED_UP));
    assert_eq!(conditions(&story), ["True", "False", "False", "GatesMet"]);
}

#[test]
fn a_removal_that_is_overdue_stalls_a_run_without_a_verdict() {
    let mut story = interrupted(|story| {
        story.stuck = true;
        story.spec(json!({"suspend": true}));
    });
    assert_eq!(conditions(&story)[..3], ["False", "True", "False"]);
    story.wait(4000).step();
    story.wait(1).step();
    assert_eq!(conditions(&story), ["False", "False", "True", "TeardownUnconfirmed"]);
}

#[test]
fn a_pass_is_not_ready_while_its_deployment_is_kept() {
    let mut story = kept();
    assert_eq!(conditions(&story), ["False", "False", "False", "NoCleanupRequested"]);
    story.annotate(meta::NO_CLEANUP, None);
    story.until(CleaningUp).until(Completed);
    assert_eq!(conditions(&story), ["True", "False", "False", "GatesMet"]);
}

#[test]
fn a_run_that_is_blocked_for_ten_minutes_is_stalled() {
    let mut story = changed(at(Benchmarking), block);
    story.wait(590).step();
    assert_eq!(conditions(&story)[..3], ["False", "True", "False"]);
    story.wait(10).step();
    assert_eq!(conditions(&story), ["False", "False", "True", "Refused"]);
    let status = story.object.status.as_mut().expect("a status");
    status.state.blocked = None;
    story.step();
    assert_eq!(conditions(&story)[..3], ["False", "True", "False"]);
}

/// The API server keeps the default's phase beside a condition that was written first.
#[test]
fn a_condition_that_comes_before_the_first_look_keeps_no_run_from_beginning() {
    let mut story = Story::new();
    let blocked = json!({"type": "Stalled", "status": "True", "reason": "SpecUnreadable", "message": "m",
        "lastTransitionTime": "2026-11-20T12:00:00Z"});
    let status =
        json!({"observedGeneration": -1, "phase": "Pending", "message": perfval_api::UNSEEN, "conditions": [blocked]});
    story.object.status = Some(serde_json::from_value(status).expect("a status"));
    story.step();
    assert_eq!(story.status().run.map(|run| run.number), Some(1));
    story.until(Deploying);
}
