//! A node whose GPUs claims and a device plugin give out at once.

use perfval_api::{Phase, Verdict};
use perfval_run::observed::Need;
use serde_json::json;

use super::story::Story;

fn on_a_dual_node(allocation: &str) -> Story {
    let mut story = Story::with(json!({ "placement": { "allocation": allocation } }));
    story.plugin_pods = Some(0);
    story
}

#[test]
fn such_a_node_is_chosen_only_when_asked_for() {
    let mut story = on_a_dual_node("Auto");
    story.assert_ends_in("MixedAllocation");
}

#[test]
fn an_explicit_choice_measures_there() {
    let mut story = on_a_dual_node("DRA");
    story.assert_passes();
}

#[test]
fn a_pod_of_the_other_way_ends_the_run() {
    for phase in [Phase::WaitingForReady, Phase::Benchmarking] {
        let mut story = on_a_dual_node("DRA");
        story.until(phase);
        story.plugin_pods = Some(1);
        story.until(Phase::Completed);
        story.assert_verdict(Some(Verdict::Error), "MixedAllocation", format!("{phase:?}"));
        story.assert_message("pod other/train-0 got nvidia.com/gpu of n1");
    }
}

#[test]
fn only_such_a_node_is_watched() {
    let watched = |mut story: Story| {
        story.until(Phase::Benchmarking);
        story.needs().contains(&Need::Inventory)
    };
    assert!(watched(on_a_dual_node("DRA")));
    assert!(!watched(Story::new()));
}

#[test]
fn while_it_is_not_known_no_trial_counts() {
    let mut story = on_a_dual_node("DRA");
    story.until(Phase::Benchmarking);
    story.unreadable = true;
    story.steps(20);
    story.assert_at(Phase::Benchmarking, "CallFailed");
    story.assert_message("whether others got GPUs of n1");
}
