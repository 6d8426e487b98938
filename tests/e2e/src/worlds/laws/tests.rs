#![expect(clippy::needless_pass_by_value, reason = "a literal is written where it is used")]

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::history::{Change, VALIDATIONS};
use super::*;

/// A history in which each change is one revision later.
#[derive(Default)]
struct Story(Vec<Change>);

impl Story {
    fn and(mut self, plural: &'static str, name: &str, rest: Value) -> Self {
        let labels = json!({"perfvalidation.dev/name": "first", "perfvalidation.dev/run": run_id("first", 1)});
        let mut object = json!({"metadata": {"name": name, "namespace": "w", "uid": name, "labels": labels}});
        for (key, value) in rest.as_object().into_iter().flatten() {
            object[key] = value.clone();
        }
        let revision = self.0.len() as u64 + 1;
        self.0.push(Change {
            revision,
            plural,
            object: Arc::new(object),
            gone: false,
            after_gap: false,
        });
        self
    }

    fn with_status(self, phase: &str, more: Value) -> Self {
        let mut status = json!({"phase": phase, "message": "m", "run": {"number": 1}});
        for (key, value) in more.as_object().into_iter().flatten() {
            status[key] = value.clone();
        }
        self.and(VALIDATIONS, "first", json!({"status": status}))
    }

    fn gone(mut self, plural: &'static str, name: &str) -> Self {
        let is_it = |change: &&Change| change.plural == plural && change.metadata("name") == name;
        let last = self.0.iter().rev().find(is_it).cloned();
        self = self.and(
            plural,
            name,
            last.map_or(json!({}), |change| Value::clone(&change.object)),
        );
        self.last().gone = true;
        self
    }

    fn after_a_gap(mut self) -> Self {
        self.last().after_gap = true;
        self
    }

    fn last(&mut self) -> &mut Change {
        self.0.last_mut().expect("a change")
    }

    fn claim(self, name: &str, run: &str, pool: &str) -> Self {
        let results = json!([{"pool": pool, "device": "gpu-0"}]);
        let mut story = self.and(
            "resourceclaims",
            name,
            json!({"status": {"allocation": {"devices": {"results": results}}}}),
        );
        let object = Arc::make_mut(&mut story.last().object);
        object["metadata"]["labels"]["perfvalidation.dev/run"] = run.into();
        story
    }
}

fn whole_run() -> Story {
    Story::default()
        .with_status("Pending", json!({}))
        .with_status("Sizing", json!({}))
        .with_status("Deploying", json!({}))
        .and("jobs", "job", json!({}))
        .with_status("WaitingForReady", json!({}))
        .with_status("Benchmarking", json!({}))
        .with_status("Evaluating", json!({"verdict": "Passed"}))
        .with_status("CleaningUp", json!({"verdict": "Passed"}))
        .gone("jobs", "job")
        .with_status("Completed", json!({"verdict": "Passed"}))
}

fn broken(story: &Story) -> String {
    of_a_world(&story.0).expect_err("a law is broken")
}

#[test]
fn a_whole_run_breaks_nothing() {
    assert_eq!(of_a_world(&whole_run().0), Ok(()));
}

#[test]
fn a_second_verdict_is_seen_and_one_of_the_next_run_is_not_one() {
    let again = json!({"verdict": "Failed"});
    assert!(broken(&whole_run().with_status("Completed", again)).contains("changed from \"Passed\" to \"Failed\""));
    assert!(broken(&whole_run().with_status("Completed", json!({}))).contains("to null"));
    let next = json!({"run": {"number": 2, "id": "r2"}});
    assert_eq!(of_a_world(&whole_run().with_status("Pending", next).0), Ok(()));
}

#[test]
fn a_wait_without_a_word_is_seen() {
    assert!(broken(&Story::default().with_status("Pending", json!({"message": ""}))).contains("no message"));
}

#[test]
fn a_phase_that_nothing_leads_to_is_seen_unless_something_was_missed() {
    let turned = Story::default()
        .with_status("Benchmarking", json!({}))
        .with_status("Pending", json!({}));
    assert!(broken(&turned).contains("from Benchmarking to Pending"));
    assert_eq!(of_a_world(&turned.after_a_gap().0), Ok(()));
    let earlier = whole_run().with_status("Completed", json!({"run": {"number": 0}}));
    assert!(broken(&earlier).contains("run 0 follows run 1"));
}

#[test]
fn an_object_created_after_the_end_is_found() {
    assert!(broken(&whole_run().and("jobs", "late", json!({}))).contains("late was created in \"Completed\""));
    // Between two statuses, some of which nobody saw.
    let missed = || {
        Story::default()
            .with_status("Sizing", json!({}))
            .and("jobs", "job", json!({}))
    };
    assert!(broken(&missed().with_status("Deploying", json!({}))).contains("in \"Sizing\""));
    let seen_late = missed().with_status("WaitingForReady", json!({})).after_a_gap();
    assert_eq!(of_a_world(&seen_late.0), Ok(()));
    // Its uid was seen before: it only changes.
    let waits = Story::default()
        .with_status("Benchmarking", json!({}))
        .and("jobs", "job", json!({}));
    let leaves = waits.with_status("CleaningUp", json!({})).and("jobs", "job", json!({}));
    assert_eq!(of_a_world(&leaves.0), Ok(()));
}

#[test]
fn a_removal_that_is_confirmed_too_early_is_seen() {
    let begun = || {
        Story::default()
            .with_status("Deploying", json!({}))
            .and("pods", "worker", json!({}))
            .with_status("CleaningUp", json!({}))
    };
    assert!(broken(&begun().with_status("Completed", json!({}))).contains("worker"));
    assert!(broken(&begun().with_status("Suspended", json!({}))).contains("worker"));
    assert!(broken(&begun().gone(VALIDATIONS, "first")).contains("worker"));
    let kept = json!({"operatorState": {"leftovers": "Kept"}});
    assert_eq!(of_a_world(&begun().with_status("Completed", kept).0), Ok(()));
    assert_eq!(
        of_a_world(&begun().gone("pods", "worker").with_status("Completed", json!({})).0),
        Ok(())
    );
}

#[test]
fn two_runs_on_a_node_are_seen_and_one_after_the_other_is_fine() {
    let two = Story::default().claim("a", "r1", "n1").claim("b", "r2", "n1");
    assert!(one_run_has_a_node(&two.0).is_err());
    for fine in [
        Story::default().claim("a", "r1", "n1").claim("b", "r1", "n1"),
        Story::default().claim("a", "r1", "n1").claim("b", "r2", "n2"),
        Story::default()
            .claim("a", "r1", "n1")
            .gone("resourceclaims", "a")
            .claim("b", "r2", "n1"),
        Story::default()
            .claim("a", "r1", "n1")
            .and("resourceclaims", "a", json!({}))
            .claim("b", "r2", "n1"),
    ] {
        assert_eq!(one_run_has_a_node(&fine.0), Ok(()));
    }
}

#[test]
fn an_object_rests_once_it_has_seen_its_spec_and_left_nothing() {
    let object = |phase: &str, seen: i64, leftovers: Value| {
        json!({"metadata": {"generation": 2},
            "status": {"phase": phase, "observedGeneration": seen, "operatorState": {"leftovers": leftovers}}})
    };
    assert!(rests(&object("Completed", 2, Value::Null)) && rests(&object("Suspended", 2, Value::Null)));
    for restless in [
        object("Benchmarking", 2, Value::Null),
        object("Completed", 1, Value::Null),
        object("Completed", 2, json!("Overdue")),
        json!({"metadata": {"generation": 1}}),
    ] {
        assert!(!rests(&restless), "{restless}");
    }
}
