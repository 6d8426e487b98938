//! Baselines: what is learned and frozen, what an approval changes, and how few nodes are compared with one.

use std::collections::BTreeMap;

use perfval_api::Verdict;
use perfval_api::fleet::{
    ComparisonRules, NodePerformanceStatus, OutlierConfidence, OutlierReason, PerfBaseline, PerfBaselineStatus,
};
use perfval_fleet::baseline::Approved;
use perfval_fleet::baselines::{BaselineDecision, approved, decide};
use perfval_fleet::policy::compare_nodes;
use serde_json::{Value, json};

use crate::comparison::{Fleet, found};
use crate::now;

const DIGEST: &str = "0123456789ab";
const NAME: &str = "nvidia-h100-0123456789ab";

/// Healthy nodes with one run each.
fn healthy(nodes: usize) -> Fleet {
    let mut fleet = Fleet::new();
    fleet.run(nodes, 1, |_, _| 0.0);
    fleet
}

/// Changes the verdict of a node's newest run.
fn set_verdict(fleet: &mut Fleet, node: &str, verdict: Verdict) {
    let status = fleet.objects.get_mut(node).and_then(|object| object.status.as_mut());
    status.expect("a status").verdict = verdict;
}

fn decide_for(baselines: &[&PerfBaseline], fleet: &Fleet) -> BaselineDecision {
    decide(baselines, &fleet.statuses(), |_| true, now())
}

/// Object as the API server has it.
fn stored(name: &str, spec: &Value) -> PerfBaseline {
    serde_json::from_value(json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfBaseline",
        "metadata": {"name": name, "uid": format!("uid-{name}"), "generation": 1, "creationTimestamp": "2026-11-01T00:00:00Z"},
        "spec": spec,
    }))
    .expect("a baseline")
}

fn provided(centre: &str) -> Value {
    json!({
        "environment": {"digest": DIGEST}, "source": "Provided", "approvedRevision": 1,
        "metrics": [{"name": "DecodeSpeed", "centre": centre, "spread": {"nodePercent": "0.6"}, "nodes": 40}],
    })
}

/// Learned baseline of an operator that has looked at a fleet.
fn learned(fleet: &Fleet) -> PerfBaseline {
    let created = decide_for(&[], fleet).create.remove(0);
    let spec = serde_json::to_value(&created.spec).expect("JSON");
    let mut baseline = stored(NAME, &spec);
    look(&mut baseline, fleet);
    baseline
}

/// Stores the status that the operator decides.
fn look(baseline: &mut PerfBaseline, fleet: &Fleet) {
    let status = decide_for(&[baseline], fleet).statuses.remove(0);
    baseline.status = Some(status);
}

fn approve(baseline: &mut PerfBaseline, revision: i64, fleet: &Fleet) {
    baseline.spec.approved_revision = Some(revision);
    look(baseline, fleet);
}

fn status(baseline: &PerfBaseline) -> &PerfBaselineStatus {
    baseline.status.as_ref().expect("a status")
}

/// Status, reason and message of a condition.
fn condition<'a>(baseline: &'a PerfBaseline, type_: &str) -> (&'a str, &'a str, &'a str) {
    let mut conditions = status(baseline).conditions.iter();
    let found = conditions.find(|found| found.type_ == type_).expect("a condition");
    (&found.status, &found.reason, &found.message)
}

fn reasons(baseline: &PerfBaseline) -> [(&str, &str); 3] {
    ["Learned", "Approved", "Shifted"].map(|type_| {
        let (status, reason, _) = condition(baseline, type_);
        (status, reason)
    })
}

/// Numbers of the newest and the approved revision.
fn revisions(baseline: &PerfBaseline) -> (Option<i64>, Option<i64>) {
    let status = status(baseline);
    let number =
        |revision: &Option<perfval_api::fleet::BaselineRevision>| revision.as_ref().map(|found| found.revision);
    (number(&status.newest), number(&status.approved))
}

#[test]
fn three_nodes_of_a_policy_get_a_baseline_that_waits_for_its_approval() {
    let fleet = healthy(3);
    let created = decide_for(&[], &fleet).create;
    let written = serde_json::to_value(&created[0]).expect("JSON");
    assert_eq!(created.len(), 1);
    assert_eq!(written["metadata"], json!({"name": NAME}));
    let environment = json!({"digest": DIGEST, "product": "NVIDIA H100", "gpuCount": 8});
    assert_eq!(
        written["spec"],
        json!({"environment": environment, "source": "Learned"})
    );
    assert_eq!(
        decide(&[], &fleet.statuses(), |_| false, now()).create,
        [],
        "no policy selects a node"
    );

    let baseline = learned(&fleet);
    let newest = status(&baseline).newest.as_ref().expect("a revision");
    assert_eq!(
        (newest.nodes, newest.gpus, newest.excluded_nodes),
        (Some(3), Some(24), Some(0))
    );
    let centre: f64 = newest.metrics[0].centre.parse().expect("a number");
    assert!((centre - 125.0).abs() < 0.5, "{centre}");
    assert_eq!(
        reasons(&baseline),
        [
            ("True", "Learned"),
            ("False", "WaitingForApproval"),
            ("Unknown", "NotApproved")
        ]
    );
    assert!(
        condition(&baseline, "Approved")
            .2
            .ends_with(&format!("kubectl perfval approve {NAME}"))
    );
    assert_eq!(approved(&[&baseline]), Approved::new());
    assert_eq!(decide_for(&[&baseline], &fleet).create, [], "one is enough");
}

#[test]
fn two_nodes_are_too_few_for_a_revision() {
    let baseline = learned(&healthy(2));
    assert_eq!(revisions(&baseline), (None, None));
    let (status, reason, message) = condition(&baseline, "Learned");
    assert_eq!((status, reason), ("False", "TooFewNodes"));
    assert!(message.contains("2 nodes and 16 GPUs"), "{message}");
    assert_eq!(condition(&baseline, "Approved").1, "NoRevision");
}

#[test]
fn slow_nodes_are_left_out_and_counted() {
    let mut fleet = healthy(20);
    for node in [4, 9] {
        fleet.run_node(node, 2, "Stale", |_| 10.0);
    }
    let baseline = learned(&fleet);
    let newest = status(&baseline).newest.as_ref().expect("a revision");
    assert_eq!((newest.nodes, newest.excluded_nodes), (Some(18), Some(2)));
    assert_eq!(
        condition(&baseline, "Learned").2,
        "Revision 1 was learned from 18 nodes and 144 GPUs. 2 nodes were left out."
    );
}

#[test]
fn an_approved_revision_is_frozen_until_the_sample_doubles_or_the_nodes_shift() {
    let mut fleet = healthy(3);
    let mut baseline = learned(&fleet);
    approve(&mut baseline, 1, &fleet);
    let frozen = status(&baseline).approved.clone();
    assert_eq!(frozen, status(&baseline).newest);
    assert_eq!(
        reasons(&baseline),
        [("True", "Learned"), ("True", "Approved"), ("False", "AsApproved")]
    );
    assert_eq!(approved(&[&baseline]).len(), 1);

    fleet.run(5, 2, |_, _| 1.0);
    look(&mut baseline, &fleet);
    assert_eq!(
        revisions(&baseline),
        (Some(1), Some(1)),
        "five nodes are less than twice three"
    );
    fleet.run(6, 3, |_, _| 1.0);
    look(&mut baseline, &fleet);
    assert_eq!(
        revisions(&baseline),
        (Some(1), Some(1)),
        "the first run of the sixth node may be cold"
    );
    fleet.run(6, 4, |_, _| 1.0);
    look(&mut baseline, &fleet);
    assert_eq!(revisions(&baseline), (Some(2), Some(1)));
    assert_eq!(
        reasons(&baseline),
        [("True", "Learned"), ("True", "NewerRevision"), ("False", "AsApproved")]
    );

    fleet.run(6, 5, |_, _| 9.0);
    look(&mut baseline, &fleet);
    assert_eq!(revisions(&baseline), (Some(3), Some(1)));
    assert_eq!(status(&baseline).approved, frozen);
    let (shifted, reason, message) = condition(&baseline, "Shifted");
    assert_eq!((shifted, reason), ("True", "CentreMoved"));
    assert!(
        message.starts_with("6 nodes are 9 % slower than revision 1 at the median"),
        "{message}"
    );
    let (_, reason, message) = condition(&baseline, "Approved");
    assert_eq!(reason, "NewerRevision");
    assert!(
        message.starts_with("Revision 1 is approved, and the newer revision 3"),
        "{message}"
    );

    approve(&mut baseline, 3, &fleet);
    assert_eq!(revisions(&baseline), (Some(3), Some(3)));
    assert_eq!(condition(&baseline, "Shifted").1, "AsApproved");
}

/// Each new measurement made another revision with the same numbers.
#[test]
fn a_shift_of_nodes_that_are_not_learned_makes_no_revision() {
    let mut failed = Fleet::new();
    failed.run(8, 1, |node, _| if node < 5 { 10.0 } else { 0.0 });
    for node in 0..5 {
        set_verdict(&mut failed, &format!("n{node}"), Verdict::Failed);
    }
    let mut rebooted = healthy(3);
    rebooted.run(3, 2, |_, _| 0.0);
    let warm = learned(&rebooted);
    for node in 3..8 {
        // The first run of a machine is cold.
        rebooted.run_node(node, 3, "Stale", |_| 9.0);
    }
    for (mut baseline, fleet) in [(learned(&failed), failed), (warm, rebooted)] {
        assert_eq!(revisions(&baseline), (Some(1), None));
        look(&mut baseline, &fleet);
        assert_eq!(revisions(&baseline), (Some(1), None));
    }
}

#[test]
fn an_approval_is_of_a_revision_that_somebody_has_seen() {
    let fleet = healthy(3);
    let mut baseline = learned(&fleet);
    approve(&mut baseline, 7, &fleet);
    assert_eq!(revisions(&baseline), (Some(1), None));
    let (status, reason, message) = condition(&baseline, "Approved");
    assert_eq!((status, reason), ("False", "RevisionMissing"));
    assert!(message.contains("Revision 7 does not exist"), "{message}");
    assert_eq!(approved(&[&baseline]), Approved::new());

    // A wrong number loses no approved revision.
    approve(&mut baseline, 1, &fleet);
    let norms = approved(&[&baseline]);
    assert_ne!(norms, Approved::new());
    approve(&mut baseline, 7, &fleet);
    assert_eq!(condition(&baseline, "Approved").1, "RevisionMissing");
    assert_eq!(approved(&[&baseline]), Approved::new());
    approve(&mut baseline, 1, &fleet);
    assert_eq!(approved(&[&baseline]), norms);

    // The number was written before there was a revision.
    let spec = json!({"environment": {"digest": DIGEST}, "source": "Learned", "approvedRevision": 1});
    let mut early = stored("early", &spec);
    look(&mut early, &fleet);
    assert_eq!(revisions(&early), (Some(2), None));
}

/// Another cluster exports a baseline with its name, and the operator of this one had learned a revision 1 of its own.
#[test]
fn an_import_approves_no_revision_that_the_operator_learned() {
    let fleet = healthy(3);
    let mut baseline = learned(&fleet);
    let learned_spec = baseline.spec.clone();
    baseline.spec = serde_json::from_value(provided("90")).expect("a spec");
    for _ in 0..2 {
        look(&mut baseline, &fleet);
        assert_eq!(revisions(&baseline), (Some(2), None));
        assert_eq!(condition(&baseline, "Approved").1, "RevisionMissing");
        assert_eq!(approved(&[&baseline]), Approved::new());
    }

    // Nor does an approval of learned numbers approve provided ones.
    baseline.spec = learned_spec;
    approve(&mut baseline, 2, &fleet);
    assert_eq!(revisions(&baseline), (Some(3), None));

    // An import with the number of a revision that is in use replaces it.
    approve(&mut baseline, 3, &fleet);
    assert_eq!(revisions(&baseline), (Some(3), Some(3)));
    let mut import = provided("90");
    import["approvedRevision"] = json!(3);
    baseline.spec = serde_json::from_value(import).expect("a spec");
    look(&mut baseline, &fleet);
    assert_eq!(revisions(&baseline), (Some(4), None));

    // Too few nodes to learn from are no reason to keep the import.
    let few = healthy(2);
    let mut baseline = stored("b", &provided("90"));
    look(&mut baseline, &few);
    assert_eq!(revisions(&baseline), (Some(1), Some(1)));
    let learned = json!({"environment": {"digest": DIGEST}, "source": "Learned", "approvedRevision": 1});
    baseline.spec = serde_json::from_value(learned).expect("a spec");
    look(&mut baseline, &few);
    assert_eq!(revisions(&baseline), (None, None));
}

#[test]
fn a_withdrawn_approval_counts_at_once() {
    let fleet = healthy(3);
    let mut baseline = learned(&fleet);
    approve(&mut baseline, 1, &fleet);
    baseline.spec.approved_revision = None;
    assert_eq!(approved(&[&baseline]), Approved::new());
}

#[test]
fn provided_numbers_are_frozen_too_and_others_need_another_approval() {
    let fleet = healthy(1);
    let mut baseline = stored("b", &provided("125"));
    look(&mut baseline, &fleet);
    assert_eq!(revisions(&baseline), (Some(1), Some(1)));
    assert_eq!(
        reasons(&baseline),
        [("True", "Provided"), ("True", "Approved"), ("Unknown", "TooFewNodes")]
    );
    baseline.spec.metrics[0].centre = "90".to_owned();
    look(&mut baseline, &fleet);
    assert_eq!(revisions(&baseline), (Some(2), Some(1)));
    let norms = approved(&[&baseline]);
    let centre = norms[DIGEST].centre;
    assert!((centre - 125.0).abs() < 1e-9, "{centre}");
}

#[test]
fn a_baseline_of_another_environment_is_not_used_and_reports_it() {
    let mut spec = provided("125");
    spec["environment"]["digest"] = json!("ba9876543210");
    let mut baseline = stored("b", &spec);
    let fleet = healthy(3);
    look(&mut baseline, &fleet);
    let (_, _, text) = condition(&baseline, "Approved");
    assert!(
        text.contains("Revision 1 is approved. No node is measured in environment ba9876543210"),
        "{text}"
    );
    let (status, reason, message) = condition(&baseline, "Shifted");
    assert_eq!((status, reason), ("Unknown", "OtherEnvironment"));
    assert!(
        message.contains(DIGEST) && message.contains("ba9876543210"),
        "{message}"
    );
    let mut slow = Fleet::new();
    slow.run(1, 1, |_, _| 20.0);
    assert_eq!(compare(&slow, &approved(&[&baseline])), []);
}

#[test]
fn a_baseline_of_nodes_that_did_not_pass_has_learned_from_none() {
    for verdict in [Verdict::Failed, Verdict::Inconclusive] {
        let mut fleet = healthy(3);
        for node in ["n0", "n1", "n2"] {
            set_verdict(&mut fleet, node, verdict);
        }
        let spec = json!({"environment": {"digest": DIGEST}, "source": "Learned"});
        let mut baseline = stored("b", &spec);
        look(&mut baseline, &fleet);
        let (status, reason, message) = condition(&baseline, "Learned");
        assert_eq!((status, reason), ("False", "TooFewNodes"));
        assert!(message.contains("0 nodes and 0 GPUs with verdict Passed"), "{message}");
    }
}

/// Nothing is learned from them, but they are compared.
#[test]
fn a_baseline_is_in_use_if_all_nodes_missed_a_gate() {
    let mut fleet = healthy(1);
    set_verdict(&mut fleet, "n0", Verdict::Failed);
    let mut baseline = stored("b", &provided("125"));
    look(&mut baseline, &fleet);
    assert_eq!(
        condition(&baseline, "Approved"),
        ("True", "Approved", "Revision 1 is in use.")
    );
}

#[test]
fn the_older_of_two_approved_baselines_is_used() {
    let fleet = healthy(3);
    let mut older = stored("z-older", &provided("125"));
    let mut younger = stored("a-younger", &provided("90"));
    younger.metadata.creation_timestamp = serde_json::from_value(json!("2026-11-02T00:00:00Z")).expect("a time");
    let statuses = decide_for(&[&younger, &older], &fleet).statuses;
    for (baseline, status) in [&mut younger, &mut older].into_iter().zip(statuses) {
        baseline.status = Some(status);
    }
    let (status, reason, message) = condition(&younger, "Approved");
    assert_eq!((status, reason), ("False", "Duplicate"));
    assert!(message.contains("PerfBaseline z-older"), "{message}");
    assert_eq!(condition(&older, "Approved").1, "Approved");
    let norms = approved(&[&younger, &older]);
    let centre = norms[DIGEST].centre;
    assert!((centre - 125.0).abs() < 1e-9, "{centre}");
}

/// Before the first approval a policy has created one for the environment. On real GPUs it stood in the way of provided numbers.
#[test]
fn provided_numbers_count_before_an_older_unapproved_baseline() {
    let fleet = healthy(3);
    let mut learned = learned(&fleet);
    let mut provided = stored("provided", &provided("90"));
    provided.metadata.creation_timestamp = serde_json::from_value(json!("2026-11-02T00:00:00Z")).expect("a time");
    let mut reasons = |is_approved: bool| {
        learned.spec.approved_revision = is_approved.then_some(1);
        let statuses = decide_for(&[&learned, &provided], &fleet).statuses;
        for (baseline, status) in [&mut learned, &mut provided].into_iter().zip(statuses) {
            baseline.status = Some(status);
        }
        let norms = approved(&[&learned, &provided]);
        let centre = norms[DIGEST].centre;
        let reason = |baseline| condition(baseline, "Approved").1.to_owned();
        (reason(&learned), reason(&provided), centre.round())
    };
    let provided_counts = ("Duplicate".to_owned(), "Approved".to_owned(), 90.0);
    let learned_counts = ("Approved".to_owned(), "Duplicate".to_owned(), 125.0);
    assert_eq!(reasons(false), provided_counts, "in the first look");
    assert_eq!(reasons(true), learned_counts, "the older one of two approved ones");
    assert_eq!(reasons(false), provided_counts, "an approval that was withdrawn");
}

#[test]
fn two_unapproved_baselines_both_wait_for_approval() {
    let fleet = healthy(3);
    let learned = learned(&fleet);
    let mut provided = provided("90");
    provided["approvedRevision"] = Value::Null;
    let provided = stored("provided", &provided);
    for status in decide_for(&[&learned, &provided], &fleet).statuses {
        let mut conditions = status.conditions.iter();
        let approved = conditions.find(|found| found.type_ == "Approved");
        assert_eq!(approved.expect("a condition").reason, "WaitingForApproval");
    }
}

/// Its old revision does not count any more, and the operator reads the new approval within seconds.
#[test]
fn no_other_baseline_counts_while_an_approval_is_not_read_yet() {
    let fleet = healthy(3);
    let mut older = learned(&fleet);
    approve(&mut older, 1, &fleet);
    older.spec.approved_revision = Some(2);
    let mut younger = stored("younger", &provided("90"));
    younger.metadata.creation_timestamp = serde_json::from_value(json!("2026-11-02T00:00:00Z")).expect("a time");
    look(&mut younger, &fleet);
    assert_eq!(approved(&[&older, &younger]), Approved::new());
}

#[test]
fn at_most_32_environments_get_a_baseline_those_with_the_most_nodes() {
    let status = healthy(1).objects["n0"].status.clone().expect("a status");
    let mut nodes: BTreeMap<String, NodePerformanceStatus> = BTreeMap::new();
    for environment in 0..40 {
        let count = if environment == 39 { 2 } else { 1 };
        for node in 0..count {
            let mut status = status.clone();
            status.environment = Some(format!("{environment:012x}"));
            nodes.insert(format!("n{environment}-{node}"), status);
        }
    }
    let measured = nodes.iter().map(|(name, status)| (name.clone(), status)).collect();
    let created = decide(&[], &measured, |_| true, now()).create;
    assert_eq!(created.len(), 32);
    assert_eq!(created[0].spec.environment.digest, format!("{:012x}", 39));
}

/// Nothing deletes a baseline, and a user's spec decides the environment.
#[test]
fn environments_of_runs_without_a_policy_get_no_baseline() {
    let mut fleet = healthy(3);
    let mut change = |node: &str, policy: Option<&str>| {
        let status = fleet.objects.get_mut(node).and_then(|object| object.status.as_mut());
        status.expect("a status").validation.policy = policy.map(str::to_owned);
        decide_for(&[], &fleet).create.len()
    };
    change("n0", None);
    assert_eq!(change("n1", None), 1, "the third node has a run of a policy");
    assert_eq!(change("n2", None), 0);
    assert_eq!(change("n0", Some("p")), 1);
}

#[test]
fn the_same_nodes_give_the_same_bytes() {
    let bytes = |fleet: &Fleet| serde_json::to_string(status(&learned(fleet))).expect("JSON");
    assert_eq!(bytes(&healthy(9)), bytes(&healthy(9)));
}

fn compare(fleet: &Fleet, approved: &Approved) -> Vec<(String, OutlierReason, Option<OutlierConfidence>)> {
    let compared = compare_nodes(&ComparisonRules::default(), &fleet.statuses(), approved, |_| true);
    let found = found(&compared.outliers).into_iter();
    found
        .map(|(node, _, reason, confidence)| (node.to_owned(), reason, confidence))
        .collect()
}

#[test]
fn one_node_is_compared_with_an_approved_baseline() {
    let mut baseline = stored("b", &provided("125"));
    look(&mut baseline, &healthy(1));
    let norms = approved(&[&baseline]);
    assert_eq!(compare(&healthy(1), &norms), []);
    let mut slow = Fleet::new();
    slow.run(1, 1, |_, _| 15.0);
    assert_eq!(
        compare(&slow, &Approved::new()),
        [],
        "without a baseline it has no peer"
    );
    let reason = OutlierReason::SlowerThanPeers;
    let suspected = (String::from("n0"), reason, Some(OutlierConfidence::Suspected));
    assert_eq!(compare(&slow, &norms), std::slice::from_ref(&suspected));
    slow.run_node(0, 2, "Confirmation", |_| 15.0);
    assert_eq!(compare(&slow, &norms), [suspected], "few nodes need two");
    slow.run_node(0, 3, "Confirmation", |_| 15.0);
    let confirmed = (String::from("n0"), reason, Some(OutlierConfidence::Confirmed));
    assert_eq!(compare(&slow, &norms), [confirmed]);
}

#[test]
fn a_spread_of_zero_blames_no_node_for_a_usual_difference() {
    let mut spec = provided("125");
    spec["metrics"][0]["spread"]["nodePercent"] = json!("0");
    spec["metrics"][0]["nodes"] = Value::Null;
    let mut baseline = stored("b", &spec);
    look(&mut baseline, &healthy(1));
    let mut usual = Fleet::new();
    usual.run(1, 1, |_, _| 2.5);
    assert_eq!(compare(&usual, &approved(&[&baseline])), []);
}

#[test]
fn a_shift_of_all_nodes_against_the_baseline_blames_none() {
    let mut baseline = stored("b", &provided("125"));
    look(&mut baseline, &healthy(3));
    let norms = approved(&[&baseline]);
    let mut shifted = Fleet::new();
    shifted.run(3, 1, |_, _| 15.0);
    assert_eq!(compare(&shifted, &norms), []);
    // One of them alone is.
    let mut one = Fleet::new();
    one.run(3, 1, |node, _| if node == 1 { 15.0 } else { 0.0 });
    let found = compare(&one, &norms);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, "n1");
}

#[test]
fn many_nodes_are_compared_with_each_other() {
    let mut baseline = stored("b", &provided("250"));
    look(&mut baseline, &healthy(3));
    // Half as fast as the baseline, without a shift that would show on two nodes.
    assert_eq!(compare(&healthy(9), &approved(&[&baseline])), []);
    assert_ne!(compare(&healthy(2), &approved(&[&baseline])), []);
}
