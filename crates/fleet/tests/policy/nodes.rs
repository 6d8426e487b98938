//! Due nodes, their order, and the nodes that cannot be validated now.

use chrono::TimeDelta;
use perfval_api::fleet::{PolicyEnvironment, PolicyNodes};
use serde_json::json;

use crate::{World, ago, ended, now, phase, policy, ready, targets};

#[test]
fn a_node_is_due_without_a_verdict_or_with_an_old_one() {
    let mut world = World::new(&["fresh", "never", "stale", "failed"], &json!({}));
    world.measure("fresh", "Passed", ago(167));
    world.measure("stale", "Inconclusive", ago(168));
    world.measure("failed", "Failed", ago(1));
    world.measure("foreign", "Failed", ago(1));
    let decision = world.decide();
    assert_eq!(targets(&decision), ["never", "stale"]);
    let expected = PolicyNodes {
        selected: 4,
        fresh: 2,
        passed: 1,
        failed: 1,
        inconclusive: 1,
        never_measured: 1,
        stale: 1,
        ..PolicyNodes::default()
    };
    assert_eq!(decision.status.nodes, Some(expected));
    assert_eq!(decision.status.fresh_percent, Some(50));
    assert_eq!(decision.status.observed_generation, 3);
    assert_eq!(
        ready(&decision),
        ("True", "Reconciled", "2 of 4 nodes have a fresh verdict.")
    );
}

#[test]
fn a_verdict_of_an_earlier_machine_or_of_a_users_run_does_not_count() {
    let mut world = World::new(&["n1"], &json!({}));
    world.now = ago(2);
    world.create(&ended("Passed", ago(2)));
    world.measure("n1", "Passed", ago(2));
    world.now = now();
    assert!(world.decide().create.is_empty());
    world.nodes[0].created_at = ago(1);
    assert_eq!(targets(&world.decide()), ["n1"]);

    let mut world = World::new(&["n1"], &json!({}));
    world.measure("n1", "Failed", ago(1));
    world.measured.get_mut("n1").expect("measured").validation.policy = None;
    let decision = world.decide();
    assert_eq!(targets(&decision), ["n1"]);
    assert_eq!(decision.status.nodes.map(|nodes| nodes.failed), Some(0));
}

/// The cleanup of a run may outlast its machine.
#[test]
fn a_run_that_began_on_an_earlier_machine_does_not_count() {
    let minutes = |minutes| now() - TimeDelta::minutes(minutes);
    let mut status = ended("Failed", now());
    let trial = json!({"number": 1, "outcome": "Miss", "startedAt": minutes(8), "completedAt": minutes(6)});
    status["operatorState"]["trials"] = json!([trial]);
    for (age, due) in [(9, 0), (7, 1), (5, 1)] {
        let mut world = World::new(&["n1"], &json!({}));
        world.create(&status);
        world.nodes[0].created_at = minutes(age);
        assert_eq!(targets(&world.decide()).len(), due, "{age} minutes");
    }
}

#[test]
fn the_age_of_a_stale_verdict_is_the_policy_s() {
    let mut world = World::new(&["n1"], &json!({"freshness": {"maxAge": "24h"}}));
    world.measure("n1", "Passed", ago(23));
    assert!(world.decide().create.is_empty());
    world.measure("n1", "Passed", ago(24));
    assert_eq!(targets(&world.decide()), ["n1"]);
}

#[test]
fn verdicts_from_before_a_given_time_are_stale_once_it_has_come() {
    for (from, due) in [(ago(3), true), (ago(1), true), (ago(5), false), (ago(-1), false)] {
        let mut world = World::new(&["n1"], &json!({"freshness": {"measuredAfter": from}}));
        world.measure("n1", "Passed", ago(4));
        assert_eq!(world.decide().create.len(), usize::from(due), "{from}");
        world.measure("n1", "Passed", now());
        assert!(world.decide().create.is_empty(), "{from}: it was measured since");
    }
}

#[test]
fn a_node_has_one_validation_at_a_time() {
    let mut world = World::new(&["n1"], &json!({}));
    for state in ["Pending", "Deploying", "CleaningUp"] {
        world.validations.clear();
        world.create(&phase(state));
        let decision = world.decide();
        assert!(decision.create.is_empty(), "{state}");
        assert_eq!(decision.status.nodes.map(|nodes| nodes.running), Some(1), "{state}");
    }
}

#[test]
fn the_validation_of_another_owner_makes_a_node_busy() {
    let mut world = World::new(&["n1", "n2", "n3"], &json!({}));
    world.create(&phase("Benchmarking"));
    for validation in &mut world.validations {
        validation.policy = None;
    }
    // One selects its node, one only holds it, and one is over.
    world.validations[1].outline.hostname = None;
    world.validations[1].outline.node = Some("n2".into());
    let child = world.decide();
    assert!(child.create.is_empty());
    let over = world.validations[2].clone();
    world.validations[2].outline = perfval_fleet::policy::Outline {
        state: perfval_fleet::policy::RunState::Ended {
            at: now(),
            verdict: None,
        },
        ..over.outline
    };
    let decision = world.decide();
    assert_eq!(targets(&decision), ["n3"]);
    assert_eq!(decision.status.nodes.map(|nodes| nodes.busy), Some(2));
}

#[test]
fn a_foreign_validation_that_only_waits_holds_no_node() {
    let mut world = World::new(&["n1"], &json!({}));
    world.create(&phase("Sizing"));
    world.validations[0].policy = None;
    assert_eq!(targets(&world.decide()), ["n1"]);
}

#[test]
fn a_validation_in_another_namespace_is_not_the_policy_s() {
    for status in [phase("Suspended"), phase("Sizing"), ended("Passed", now())] {
        let mut world = World::new(&["n1"], &json!({"budgets": [{"nodes": 1}]}));
        world.create(&status);
        assert!(world.decide().create.is_empty(), "{status}");
        "tenant".clone_into(&mut world.validations[0].namespace);
        let decision = world.decide();
        assert_eq!(targets(&decision), ["n1"], "{status}");
        assert_eq!(decision.delete, []);
        assert_eq!(decision.status.nodes.map(|nodes| nodes.never_measured), Some(1));
    }
    let mut world = World::new(&["n1"], &json!({}));
    world.create(&phase("Benchmarking"));
    "tenant".clone_into(&mut world.validations[0].namespace);
    let nodes = world.decide().status.nodes.expect("nodes");
    assert_eq!((nodes.running, nodes.busy), (0, 1), "it uses the node all the same");
}

#[test]
fn trials_that_are_judged_again_are_as_old_as_they_are() {
    let mut status = ended("Passed", now());
    status["operatorState"]["judgedRun"] = json!(1);
    let trial = |hours| json!({"number": 1, "outcome": "Pass", "startedAt": ago(hours), "completedAt": ago(hours)});
    for (hours, due) in [(167, 0), (169, 1)] {
        let mut world = World::new(&["n1"], &json!({}));
        status["operatorState"]["trials"] = json!([trial(hours)]);
        world.create(&status);
        assert_eq!(targets(&world.decide()).len(), due, "{hours} hours");
    }
}

#[test]
fn nodes_without_free_gpus_or_hostname_are_busy() {
    let mut world = World::new(&["free", "full", "nameless"], &json!({}));
    world.nodes[1].is_free = false;
    world.nodes[2].hostname = None;
    let decision = world.decide();
    assert_eq!(targets(&decision), ["free"]);
    assert_eq!(decision.status.nodes.map(|nodes| nodes.busy), Some(2));
    // Its owner has to learn that nothing ever measures it.
    world.nodes[1].is_too_small = true;
    assert_eq!(world.decide().status.nodes.map(|nodes| nodes.busy), Some(1));
}

#[test]
fn nodes_with_too_few_gpus_for_the_template_are_reported_with_the_remedy() {
    let mut world = World::new(&["n1", "n2"], &json!({}));
    world.policies[0].spec.validation_template.spec.placement.min_gpus = 8;
    let remedy = "such as n2. If GPUs are missing there, repair it. Else lower placement.minGPUs in the template, or exclude such nodes in \
                  spec.nodeSelector.";
    world.nodes[1].is_free = false;
    world.nodes[1].is_too_small = true;
    let decision = world.decide();
    let message =
        format!("0 of 2 nodes have a fresh verdict. 1 due node has fewer whole GPUs than a validation needs, {remedy}");
    assert_eq!(ready(&decision), ("True", "Reconciled", message.as_str()));
    // No node is large enough now.
    world.nodes[0].is_free = false;
    world.nodes[0].is_too_small = true;
    let decision = world.decide();
    let message = format!(
        "2 due nodes have fewer whole GPUs than a validation needs, {}",
        remedy.replace("n2", "n1")
    );
    assert_eq!(ready(&decision), ("False", "NoNodes", message.as_str()));
}

#[test]
fn nodes_that_no_wait_makes_usable_are_reported_with_the_obstacle() {
    let mut world = World::new(&["n1", "n2", "n3"], &json!({}));
    let obstacle = "has the taint dedicated=ml:NoSchedule, which is not tolerated";
    world.nodes[1].is_free = false;
    world.nodes[1].unusable = Some(obstacle.into());
    let decision = world.decide();
    let message = format!("0 of 3 nodes have a fresh verdict. 1 due node cannot be validated, such as n2: {obstacle}.");
    assert_eq!(ready(&decision), ("True", "Reconciled", message.as_str()));
    assert_eq!(decision.status.nodes.map(|nodes| nodes.busy), Some(0));
    assert_eq!(targets(&decision), ["n1", "n3"]);
    // Its driver may need some minutes.
    world.nodes[1].created_at = world.now - TimeDelta::minutes(10);
    let starts = world.decide();
    assert_eq!(ready(&starts).2, "0 of 3 nodes have a fresh verdict.");
    assert_eq!(starts.status.nodes.map(|nodes| nodes.busy), Some(1));
    world.nodes[1].created_at = world.now - TimeDelta::hours(1);
    world.nodes[0].is_free = false;
    world.nodes[0].unusable = Some(obstacle.into());
    world.nodes[2].is_free = false;
    world.nodes[2].is_too_small = true;
    let decision = world.decide();
    let message = format!(
        "1 due node has fewer whole GPUs than a validation needs, such as n3. If GPUs are missing there, repair it. Else exclude such \
         nodes in spec.nodeSelector. 2 due nodes cannot be validated, such as n1: {obstacle}."
    );
    assert_eq!(ready(&decision), ("False", "NoNodes", message.as_str()));
}

#[test]
fn a_policy_with_an_active_validation_has_a_node_that_is_large_enough() {
    let mut world = World::new(&["n1", "n2"], &json!({}));
    world.nodes[1].is_free = false;
    world.nodes[1].is_too_small = true;
    world.create(&phase("Benchmarking"));
    let decision = world.decide();
    assert_eq!((ready(&decision).0, ready(&decision).1), ("True", "Reconciled"));
}

#[test]
fn the_remedy_for_a_small_node_changes_the_field_that_rules_it_out() {
    let mut world = World::new(&["n1"], &json!({}));
    world.nodes[0].is_free = false;
    world.nodes[0].is_too_small = true;
    for (min, each, remedy) in [
        (8, 4, "Else lower placement.minGPUs in the template, or exclude"),
        (
            4,
            4,
            "Else lower workload.dynamo.worker.gpus in the template, or exclude",
        ),
        (1, 1, "repair it. Else exclude"),
    ] {
        let spec = &mut world.policies[0].spec.validation_template.spec;
        spec.placement.min_gpus = min;
        spec.dynamo_mut().worker.gpus = each;
        let decision = world.decide();
        let (_, _, message) = ready(&decision);
        assert!(message.contains(remedy), "{message}");
    }
}

#[test]
fn the_older_policy_has_a_node_and_the_other_one_reports_it() {
    let mut world = World::new(&["n2", "n1"], &json!({}));
    world.policies.push(policy("o", &json!({})));
    let [second, first] = &world.decide_all()[..] else {
        panic!("two policies")
    };
    // Equally old: the first by name.
    assert_eq!(targets(first), ["n1", "n2"]);
    assert!(second.create.is_empty());
    let message = "2 selected nodes belong to the older policy o, such as n1. Exclude them in spec.nodeSelector of one of the two policies.";
    assert_eq!(ready(second), ("False", "Overlapping", message));
    assert_eq!(second.status.nodes.map(|nodes| nodes.selected), Some(0));

    world.policies[1].metadata.creation_timestamp = None;
    let [first, second] = &world.decide_all()[..] else {
        panic!("two policies")
    };
    assert_eq!((targets(first), targets(second)), (vec!["n1", "n2"], vec![]));
}

#[test]
fn risky_nodes_come_first_unless_only_age_counts() {
    let order = |order: &str| {
        let mut world = World::new(
            &["old", "alike", "risky", "slow", "overdue", "never"],
            &json!({"order": order}),
        );
        world.measure("old", "Passed", ago(300));
        world.measure("alike", "Passed", ago(300));
        world.measure("overdue", "Passed", ago(337));
        world.measure("risky", "Failed", ago(170));
        world.measure("slow", "Passed", ago(169));
        world.comparison.outliers = serde_json::from_value(json!([
            {"node": "slow", "reason": "SlowerThanPeers", "percent": 90, "validation": "perf/earlier"},
        ]))
        .expect("an outlier");
        targets(&world.decide()).join(" ")
    };
    assert_eq!(order("RiskAndAge"), "never overdue risky slow alike old");
    assert_eq!(order("Age"), "never overdue alike old risky slow");
}

#[test]
fn a_node_that_gave_no_gpus_goes_to_the_back() {
    let mut world = World::new(&["n1", "n2", "n3"], &json!({}));
    world.set_back.insert("n1".to_owned(), now());
    world.set_back.insert("n2".to_owned(), ago(1));
    assert_eq!(targets(&world.decide()), ["n3", "n2", "n1"]);
}

#[test]
fn a_finished_validation_counts_before_its_node_shows_it() {
    let mut world = World::new(&["n1"], &json!({}));
    world.create(&ended("Failed", now()));
    let decision = world.decide();
    assert!(decision.create.is_empty());
    assert_eq!(
        decision.status.nodes.map(|nodes| (nodes.fresh, nodes.failed)),
        Some((1, 1))
    );
    world.now += TimeDelta::hours(168);
    assert_eq!(targets(&world.decide()), ["n1"]);
}

#[test]
fn the_end_is_estimated_from_finished_validations() {
    let mut world = World::new(&["n1", "n2", "n3", "n4", "n5"], &json!({"budgets": [{"nodes": 2}]}));
    assert_eq!(world.decide().status.expected_completion_time, None);
    world.create(&ended("Passed", now()));
    // Three nodes are left, two at a time, ten minutes each.
    let expected = now() + TimeDelta::minutes(30);
    assert_eq!(world.decide().status.expected_completion_time, Some(expected));
    // Only one of them can be validated, once it is free.
    world.nodes[2..].iter_mut().for_each(|node| node.is_free = false);
    world.nodes[3].is_too_small = true;
    world.nodes[4].unusable = Some("has no GPU driver".into());
    let expected = now() + TimeDelta::minutes(20);
    assert_eq!(world.decide().status.expected_completion_time, Some(expected));
}

#[test]
fn environments_of_the_selected_nodes_are_listed_with_their_baselines() {
    let mut world = World::new(&["n1", "n2", "n3", "n4"], &json!({}));
    for (node, environment) in [("n1", "b"), ("n2", "a"), ("n3", "b"), ("foreign", "c")] {
        world.measure(node, "Passed", ago(1));
        let measured = world.measured.get_mut(node).expect("a measurement");
        measured.environment = Some(environment.to_owned());
        measured.product = Some("NVIDIA H100".to_owned());
    }
    world.measure("n4", "Passed", ago(1));
    let baseline = json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfBaseline", "metadata": {"name": "h100-b"},
        "spec": {"environment": {"digest": "b"}, "source": "Learned"},
    });
    world
        .baselines
        .push(serde_json::from_value(baseline).expect("a baseline"));
    let environment = |digest: &str, nodes, baseline: Option<&str>| PolicyEnvironment {
        digest: digest.to_owned(),
        product: Some("NVIDIA H100".to_owned()),
        nodes,
        baseline: baseline.map(str::to_owned),
    };
    let expected = [environment("b", 2, Some("h100-b")), environment("a", 1, None)];
    assert_eq!(world.decide().status.environments, expected);
}

#[test]
fn at_most_32_environments_are_listed_and_the_largest_is_kept() {
    let names: Vec<String> = (10..50).map(|number| format!("n{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut world = World::new(&names, &json!({}));
    for (at, node) in names.iter().enumerate() {
        world.measure(node, "Passed", ago(1));
        let environment = format!("e{:02}", at.min(38));
        world.measured.get_mut(*node).expect("a measurement").environment = Some(environment);
    }
    let environments = world.decide().status.environments;
    assert_eq!((environments.len(), environments[0].digest.as_str()), (32, "e38"));
}
