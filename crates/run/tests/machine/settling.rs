//! A plan is two equal readings at least two seconds apart, and no other run may count on its GPUs meanwhile.

use chrono::TimeDelta;
use perfval_api::Phase;
use perfval_run::{Observed, Run, machine};

use super::story::Story;

#[test]
fn a_plan_is_read_twice_two_seconds_apart() {
    let mut story = Story::new();
    story.until(Phase::Sizing).step();
    assert!(story.status().placement.is_some(), "a candidate");
    assert!(story.status().state.chosen_at.is_some());
    assert!(
        perfval_sizing::holds_node(&story.status()),
        "a candidate holds its node already"
    );
    story.step();
    assert_eq!(story.phase(), Some(Phase::Sizing), "one second is not enough");
    story.step();
    assert_eq!(story.phase(), Some(Phase::Deploying));
}

#[test]
fn a_plan_from_before_the_phase_is_read_twice_too() {
    let mut story = Story::new();
    story.until(Phase::Sizing).wait(60);
    let run = Run::new(&story.object, &story.settings);
    for (ago, next) in [(5, Phase::Deploying), (100, Phase::Sizing)] {
        let seen = Observed {
            chosen_since: Some(story.now - TimeDelta::seconds(ago)),
            ..story.turn()
        };
        let decision = machine::decide(&run, &seen, story.now);
        assert_eq!(decision.status.phase, Some(next), "chosen {ago} s ago");
    }
}

#[test]
fn another_reading_starts_the_settling_again() {
    let mut story = Story::new();
    story.until(Phase::Sizing).step();
    story.step();
    story.free = 1;
    story.step();
    assert_eq!(
        story.phase(),
        Some(Phase::Sizing),
        "the second reading differs from the first"
    );
    assert_eq!(story.status().placement.map(|plan| plan.gpus), Some(1));
    story.step();
    assert_eq!(story.phase(), Some(Phase::Sizing));
    story.step();
    assert_eq!(story.phase(), Some(Phase::Deploying));
}

#[test]
fn a_plan_that_is_not_to_be_had_is_given_back() {
    let mut story = Story::new();
    story.until(Phase::Sizing).step();
    story.free = 0;
    story.step();
    assert_eq!(
        (story.status().placement, story.reason()),
        (None, "Saturated".to_owned())
    );
    assert!(!perfval_sizing::holds_node(&story.status()));
}
