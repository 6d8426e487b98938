//! Runs that keep a node, beside runs at work that give theirs back.

use chrono::TimeDelta;
use perfval_api::{Phase, Reason};
use perfval_run::queue::{Contender, Line, Turn};
use perfval_sizing::Sizing;
use perfval_testkit::inventory::{ClaimBuilder, Cluster};
use serde_json::{Value, json};

use super::{chosen, holder, metadata, now, plan, turn_of, waiting};
use crate::machine::story::Story;

const CLAIMED: &str = "gpu.nvidia.com.deviceclass.resource.k8s.io/devices";

/// Spec of a run that selects one node.
fn only(node: &str) -> Value {
    json!({"placement": {"nodeSelector": {"kubernetes.io/hostname": node}}})
}

/// The four GPUs of a node in use.
fn in_use(cluster: Cluster, node: &str) -> Cluster {
    let claim = ClaimBuilder::named(&format!("on-{node}"));
    cluster.claim((0..4).fold(claim, |claim, gpu| claim.holds(node, &format!("gpu-{gpu}"))))
}

/// Message of a run that waits for kept runs only.
#[track_caller]
fn busy(turn: &Turn) -> &str {
    match turn {
        Turn::Sized(Sizing::Wait {
            reason: Reason::NodeBusy,
            message,
        }) => message,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn behind(turn: &Turn) -> Vec<&str> {
    match turn {
        Turn::Queued(place) => place.behind.iter().map(String::as_str).collect(),
        other @ Turn::Sized(_) => panic!("{other:?}"),
    }
}

#[test]
fn a_run_that_admits_only_a_kept_node_is_not_in_the_queue() {
    let nodes = || Cluster::of_nodes(&["n1", "n2"]);
    for (case, cluster) in [
        ("all GPUs free", nodes()),
        ("the GPUs of the run at work in use", in_use(nodes(), "n1")),
        ("the GPUs of the kept run in use", in_use(nodes(), "n2")),
        ("all GPUs in use", in_use(in_use(nodes(), "n1"), "n2")),
    ] {
        let inventory = cluster.inventory();
        let turn = |spec: Value| {
            let others = [holder("a", "n1", true), holder("k", "n2", false)];
            let runs = others.into_iter().chain([waiting("b", 10, spec)]);
            turn_of("b", runs.collect(), &inventory)
        };
        let kept = turn(only("n2"));
        let message = busy(&kept);
        assert!(
            message.contains("perf/k") && !message.contains("perf/a"),
            "{case}: {message}"
        );
        assert_eq!(behind(&turn(only("n1"))), ["perf/a"], "{case}");
        assert_eq!(behind(&turn(json!({}))), ["perf/a"], "{case}: it admits both");
    }
}

#[test]
fn a_run_that_gets_a_node_in_the_same_plan_counts_only_on_that_node() {
    let inventory = Cluster::of_nodes(&["n1", "n2"]).inventory();
    let turn = |spec: Value| {
        let first = waiting("a", 20, only("n1"));
        let runs = vec![holder("k", "n2", false), first, waiting("b", 10, spec)];
        turn_of("b", runs, &inventory)
    };
    busy(&turn(only("n2")));
    assert_eq!(behind(&turn(only("n1"))), ["perf/a"]);
}

#[test]
fn a_run_at_work_counts_among_many_kept_and_saturated_nodes() {
    let names = ["n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"];
    let saturated = ["n5", "n6", "n7", "n8", "n9"];
    let inventory = saturated
        .into_iter()
        .fold(Cluster::of_nodes(&names), in_use)
        .inventory();
    let turn = |node: &str| {
        let kept = ["n1", "n2", "n3", "n4"].map(|node| holder(&format!("k-{node}"), node, false));
        let others = [holder("a", node, true), waiting("b", 10, json!({}))];
        turn_of("b", kept.into_iter().chain(others).collect(), &inventory)
    };
    assert_eq!(behind(&turn("n9")), ["perf/a"]);
    // A node that is gone.
    busy(&turn("n0"));
}

#[test]
fn a_quota_that_a_run_at_work_uses_is_waited_for_in_the_queue() {
    let inventory = Cluster::of_nodes(&["n1", "n2", "n3"])
        .quota(&json!({"hard": {CLAIMED: "2"}}), &json!({CLAIMED: "0"}))
        .inventory();
    let mut story = Story::new();
    story.until(Phase::Deploying);
    let earlier = metadata("a", now() - TimeDelta::seconds(100));
    let user = Contender::new(&earlier, &story.object.spec, &story.status(), true, now()).expect("it holds a node");
    let turn = |node: &str| {
        let runs = vec![user.clone(), holder("k", "n2", false), waiting("b", 10, only(node))];
        turn_of("b", runs, &inventory)
    };
    assert_eq!(behind(&turn("n3")), ["perf/a"], "two of two GPUs of the quota");
    busy(&turn("n2"));
}

#[test]
fn equal_wishes_beside_a_kept_run_are_sized_a_constant_number_of_times() {
    let inventory = Cluster::of_nodes(&["n1", "n2"]).inventory();
    let others = [holder("a", "n1", true), holder("k", "n2", false)];
    let runs = (0..1000).map(|n| waiting(&format!("u{n:04}"), 5, json!({})));
    let line = Line {
        runs: others.into_iter().chain(runs).collect(),
        usual: None,
    };
    let (turns, sized) = plan(&line, &inventory);
    assert_eq!(
        sized, 3,
        "the first run, and twice more for the kind of runs that it waits for"
    );
    assert_eq!(turns.len(), 1000);
    assert!(turns.iter().all(|(_, turn)| matches!(turn, Turn::Queued(_))));
}

#[test]
fn a_run_is_in_the_queue_if_all_nodes_that_it_admits_are_at_work() {
    let inventory = Cluster::of_nodes(&["n1", "n2"]).inventory();
    let turn = turn_of(
        "b",
        vec![holder("a", "n1", true), waiting("b", 10, json!({}))],
        &inventory,
    );
    assert_eq!(chosen(&turn), Some("n2"));
    let held = [holder("a", "n1", true), holder("c", "n2", true)];
    let runs = held.into_iter().chain([waiting("b", 10, only("n2"))]);
    assert_eq!(behind(&turn_of("b", runs.collect(), &inventory)), ["perf/a", "perf/c"]);
}

#[test]
fn a_wait_for_a_kept_run_ends_with_the_time_limit_while_others_work_elsewhere() {
    let mut story = Story::with(json!({"timeouts": {"sizing": "60s"}}));
    story.until(Phase::Sizing);
    story.others = vec![holder("a", "n9", true), holder("k", "n1", false)];
    story.step();
    let message = story.message();
    assert!(message.contains("perf/k") && !message.contains("perf/a"), "{message}");
    story.wait(70).step();
    story.assert_error("NodeBusy");
}
