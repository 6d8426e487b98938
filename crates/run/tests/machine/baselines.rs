//! Gates on an approved baseline.

use perfval_api::fleet::PerfBaseline;
use perfval_api::{GateResult, PerfValidationStatus, Phase, Verdict};
use perfval_sizing::Seen;
use perfval_verdict::environment::digest;
use serde_json::{Value, json};

use super::story::Story;

fn gates(threshold: &str) -> Value {
    json!({"gates": [
        {"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1000"},
        {"name": "norm", "metric": "BaselinePercent", "operator": ">=", "threshold": threshold},
    ]})
}

/// A run whose engines need 12 ms for a token, which is 83.33 tokens a second.
fn story() -> Story {
    let mut story = Story::with(gates("90"));
    story.token_ms = Some(12);
    story
}

/// Baseline of the environment of a story's runs.
fn baseline(centre: &str) -> Seen<Vec<PerfBaseline>> {
    let mut first = story();
    first.until(Phase::Completed);
    let environment = first.status().state.environment.expect("an environment");
    let revision = json!({"revision": 2, "createdAt": "2026-11-01T00:00:00Z", "metrics": [{"name": "DecodeSpeed", "centre": centre}]});
    let baseline = json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfBaseline", "metadata": {"name": "h100"},
        "spec": {"environment": {"digest": digest(&environment)}, "source": "Learned", "approvedRevision": 2},
        "status": {"observedGeneration": 1, "newest": revision, "approved": revision},
    });
    Seen::Present(vec![serde_json::from_value(baseline).expect("a baseline")])
}

fn norm(status: &PerfValidationStatus) -> (GateResult, Option<&str>) {
    let gate = status.gates.iter().find(|gate| gate.name == "norm").expect("judged");
    (gate.result, gate.observed.as_deref())
}

#[test]
fn a_run_is_compared_with_the_baseline_of_its_environment() {
    for (centre, verdict, result, observed) in [
        ("90", Verdict::Passed, GateResult::Met, "92.59"),
        ("100", Verdict::Failed, GateResult::Missed, "83.33"),
    ] {
        let mut story = story();
        story.baselines = baseline(centre);
        story.until(Phase::Completed);
        assert_eq!(story.verdict(), Some(verdict));
        assert_eq!(norm(&story.status()), (result, Some(observed)));
    }
}

#[test]
fn without_an_approved_baseline_the_gate_is_reported_and_decides_nothing() {
    let of_another_environment = || {
        let mut baselines = baseline("100").present().cloned().expect("one");
        "0123456789ab".clone_into(&mut baselines[0].spec.environment.digest);
        Seen::Present(baselines)
    };
    for seen in [Seen::Absent, Seen::Present(Vec::new()), of_another_environment()] {
        let mut story = story();
        story.baselines = seen;
        story.until(Phase::Completed);
        let status = story.status();
        assert_eq!(story.verdict(), Some(Verdict::Passed));
        assert_eq!(norm(&status), (GateResult::Unmeasured, None));
        let finding = status
            .diagnosis
            .iter()
            .find(|finding| finding.evidence.contains("gate norm"));
        assert!(
            finding.is_some_and(|finding| finding.remedy.contains("kubectl perfval approve")),
            "{:?}",
            status.diagnosis
        );
    }
}

#[test]
fn a_baseline_that_cannot_be_read_is_waited_for() {
    let mut story = story();
    story.until(Phase::Benchmarking);
    story.baselines = Seen::Unknown("list PerfBaselines: 503".to_owned());
    story.steps(5);
    assert_eq!(story.phase(), Some(Phase::Benchmarking));
    story.assert_message("list PerfBaselines: 503");
    story.baselines = baseline("100");
    story.until(Phase::Completed);
    assert_eq!(story.verdict(), Some(Verdict::Failed));
}

#[test]
fn nothing_waits_for_the_baseline_of_a_warning() {
    let mut warned = gates("90");
    warned["gates"][1]["mode"] = json!("Warn");
    let mut story = Story::with(warned);
    story.baselines = Seen::Unknown("list PerfBaselines: 403".to_owned());
    story.assert_passes();
}

#[test]
fn the_limit_of_a_trial_ends_the_wait_for_a_baseline() {
    let mut story = story();
    story.until(Phase::Benchmarking);
    story.baselines = Seen::Unknown("list PerfBaselines: 403".to_owned());
    story.steps(5);
    story.wait(4000).until(Phase::Completed);
    assert_eq!(story.verdict(), Some(Verdict::Error));
    story.assert_message("list PerfBaselines: 403");
}

#[test]
fn an_approval_between_two_trials_removes_the_finding() {
    let mut story = story();
    story.spec(json!({"trials": {"rule": "All", "max": 2}}));
    story.until_between_trials();
    let missing = |story: &Story| {
        let found = story.status().diagnosis;
        found.iter().any(|finding| finding.evidence.contains("was not judged"))
    };
    assert!(missing(&story));
    story.baselines = baseline("90");
    story.until(Phase::Completed);
    assert!(!missing(&story));
}

#[test]
fn an_operator_of_single_namespaces_and_a_run_without_such_a_gate_read_none() {
    let mut of_some = story();
    of_some.settings.shares_the_cluster = true;
    let other = Story::new();
    for mut story in [of_some, other] {
        story.baselines = Seen::Unknown("list PerfBaselines: 403".to_owned());
        story.until(Phase::Completed);
        assert_eq!(story.verdict(), Some(Verdict::Passed), "nothing is waited for");
    }
}

#[test]
fn saved_trials_are_judged_again_by_the_baseline_approved_now() {
    let mut story = story();
    story.assert_passes();
    story.baselines = baseline("100");
    story.spec(gates("95"));
    story.until(Phase::Evaluating).until(Phase::Completed);
    let status = story.status();
    assert_eq!(
        (status.verdict, status.state.judged_run),
        (Some(Verdict::Failed), Some(1))
    );
    assert_eq!(norm(&status), (GateResult::Missed, Some("83.33")));
    let stale = status
        .diagnosis
        .iter()
        .find(|finding| finding.evidence.contains("was not judged"));
    assert_eq!(stale, None);
}
