//! What pipelines read, read back by other code than wrote it.

use perfval_api::{GateResult, GateStatus, Verdict};
use quick_junit::{Report as Junit, TestCaseStatus};
use serde_json::{Value, json};

use super::recorded::{self, Saved};
use super::report;

fn red(status: &TestCaseStatus) -> bool {
    matches!(status, TestCaseStatus::NonSuccess { .. })
}

/// Suites and cases of a run, in order.
fn expected(run: &Saved) -> Vec<String> {
    let status = run.object.status.as_ref().expect("a status");
    let gates = status.gates.iter().map(|gate| gate.name.clone());
    let trials = status
        .state
        .trials
        .iter()
        .map(|trial| format!("trial {}", trial.number));
    std::iter::once("verdict".to_owned())
        .chain(gates)
        .chain(trials)
        .collect()
}

pub fn junit(text: &str) -> Junit {
    Junit::deserialize_from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn junit_has_a_case_for_each_gate_and_each_trial_and_is_red_as_the_verdict_is() {
    for run in recorded::all() {
        let read = junit(&report(&run).junit());
        let cases: Vec<_> = read.test_suites.iter().flat_map(|suite| &suite.test_cases).collect();
        let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names, expected(&run));
        let verdict = run.object.status.as_ref().and_then(|status| status.verdict);
        let passed = verdict == Some(Verdict::Passed);
        assert_eq!(
            cases.iter().any(|case| red(&case.status)),
            !passed,
            "{verdict:?}: {cases:#?}"
        );
    }
}

#[test]
fn a_miss_that_the_rule_absorbed_is_not_red() {
    let mut run = recorded::healthy();
    let status = run.object.status.as_mut().expect("a status");
    status.state.trials[0].outcome = Some(perfval_api::TrialOutcome::Miss);
    let read = junit(&report(&run).junit());
    let trial = &read.test_suites[2].test_cases[0];
    assert!(matches!(trial.status, TestCaseStatus::Skipped { .. }), "{trial:#?}");
    let ctrf: Value = serde_json::from_str(&report(&run).ctrf()).expect("JSON");
    assert_eq!(ctrf["results"]["summary"]["failed"], 0);
    assert_eq!(ctrf["results"]["summary"]["skipped"], 1);
}

#[test]
fn a_gate_that_has_nothing_to_compare_with_yet_is_not_red() {
    let mut run = recorded::slow();
    let status = run.object.status.as_mut().expect("a status");
    status.gates.push(GateStatus {
        name: "own-past".to_owned(),
        observed: None,
        effective: "90".to_owned(),
        result: GateResult::Unmeasured,
        margin_percent: None,
    });
    for (metric, is_red) in [
        ("OwnPastPercent", false),
        ("BaselinePercent", false),
        ("SlowestWorkerPercent", true),
    ] {
        let gate = json!({"name": "own-past", "metric": metric, "operator": ">=", "threshold": "90"});
        run.object
            .spec
            .gates
            .push(serde_json::from_value(gate).expect("a gate"));
        let read = junit(&report(&run).junit());
        let case = read.test_suites[1].test_cases.last().expect("a gate");
        assert_eq!(red(&case.status), is_red, "{metric}: {case:#?}");
        run.object.spec.gates.pop();
    }
}

#[test]
fn a_run_that_goes_on_is_pending() {
    let mut run = recorded::healthy();
    let status = run.object.status.as_mut().expect("a status");
    (status.verdict, status.message) = (None, None);
    status.phase = Some(perfval_api::Phase::Benchmarking);
    status.state.trials[1].outcome = None;
    let ctrf: Value = serde_json::from_str(&report(&run).ctrf()).expect("JSON");
    assert_eq!(
        ctrf["results"]["summary"]["pending"], 2,
        "the verdict and a trial: {ctrf:#}"
    );
    assert!(report(&run).html().contains("no verdict yet (Benchmarking)"));
}

/// The schema that its project publishes, from its npm package `ctrf` 0.3.0.
pub fn against_the_schema(text: &str) {
    let schema: Value = serde_json::from_str(include_str!("../schema/ctrf-schema-0.0.json")).expect("a schema");
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(&schema)
        .expect("a valid schema");
    let report: Value = serde_json::from_str(text).expect("JSON");
    let wrong: Vec<String> = validator
        .iter_errors(&report)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert_eq!(wrong, Vec::<String>::new(), "{text}");
}

#[test]
fn ctrf_fits_its_published_schema_and_counts_right() {
    for run in recorded::all() {
        let text = report(&run).ctrf();
        against_the_schema(&text);
        let read: Value = serde_json::from_str(&text).expect("JSON");
        let (summary, tests) = (
            &read["results"]["summary"],
            read["results"]["tests"].as_array().expect("tests"),
        );
        let names: Vec<&str> = tests.iter().filter_map(|test| test["name"].as_str()).collect();
        assert_eq!(names, expected(&run));
        assert_eq!(summary["tests"], tests.len());
        for word in ["passed", "failed", "skipped", "pending", "other"] {
            let count = tests.iter().filter(|test| test["status"] == word).count();
            assert_eq!(summary[word], count, "{word}");
        }
        let passed = run.object.status.as_ref().and_then(|status| status.verdict) == Some(Verdict::Passed);
        assert_eq!(summary["failed"] == 0, passed, "{summary}");
        let (start, stop) = (summary["start"].as_i64(), summary["stop"].as_i64());
        assert!(start > Some(0) && stop > start, "{summary}");
    }
}

#[test]
fn openmetrics_holds_the_numbers_of_the_status_in_base_units() {
    let run = recorded::slow();
    let text = report(&run).openmetrics();
    let status = run.object.status.as_ref().expect("a status");
    let gate = status
        .gates
        .iter()
        .find(|gate| gate.name == "slowest-worker")
        .expect("a gate");
    let labels = r#"{namespace="perf",name="h200-slow-gpu"#;
    for line in [
        format!(r#"perfvalidation_last_verdict{labels}",verdict="Failed"}} 1.0"#),
        format!(r#"perfvalidation_last_verdict{labels}",verdict="Passed"}} 0.0"#),
        format!(r#"perfvalidation_gate_met{labels}",gate="slowest-worker"}} 0.0"#),
        format!(r#"perfvalidation_gate_met{labels}",gate="throughput"}} 1.0"#),
        format!(
            r#"perfvalidation_gate_observed{labels}",gate="slowest-worker"}} {}"#,
            gate.observed.as_deref().expect("observed")
        ),
    ] {
        assert!(text.lines().any(|known| known == line), "{line}\nis not in\n{text}");
    }
    let metrics = status.state.metrics.as_ref().expect("metrics");
    let ms: f64 = metrics
        .ttft_p99_ms
        .as_deref()
        .and_then(|ms| ms.parse().ok())
        .expect("a number");
    let line = text
        .lines()
        .find(|line| line.starts_with("perfvalidation_last_time_to_first_token_p99_seconds{"));
    let seconds = line
        .and_then(|line| line.split(' ').next_back()?.parse::<f64>().ok())
        .expect("a value");
    assert!((seconds * 1000.0 - ms).abs() < 1e-6, "{seconds} s, {ms} ms");
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn the_summary_has_the_verdict_every_gate_and_the_remedy() {
    for run in recorded::all() {
        let text = report(&run).markdown();
        let status = run.object.status.as_ref().expect("a status");
        let verdict = status.verdict.expect("a verdict").as_str();
        assert!(
            text.starts_with("## ") && text.lines().next().is_some_and(|line| line.contains(verdict)),
            "{text}"
        );
        for gate in &status.gates {
            assert!(text.contains(&format!("| {} | ", gate.name)), "{text}");
        }
        let remedies = text.matches("*What to do:*").count();
        assert_eq!(remedies, status.diagnosis.len(), "{text}");
    }
}
