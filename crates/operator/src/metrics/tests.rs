use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::*;
use crate::test_object;

fn object(name: &str, status: &Value) -> PerfValidation {
    test_object::object(&json!({"name": name}), status)
}

/// An object that measured, and holds GPUs for its next trial.
fn measuring(name: &str) -> PerfValidation {
    object(
        name,
        &json!({
            "observedGeneration": 1, "phase": "Benchmarking",
            "placement": {"node": "n1", "allocation": "DRA", "gpus": 8, "nodeGPUs": 8},
            "operatorState": {
                "timeline": [{"phase": "Benchmarking", "startedAt": "2026-11-21T10:00:00Z"}],
                "metrics": {"outputTokenThroughput": "110847.2", "ttftP99Ms": "910", "requestErrorPercent": "0.5", "slowestWorkerPercent": "97.5"},
                "history": [{"run": 1, "verdict": "Failed", "reason": "GatesMissed", "node": "n0", "slowGPUs": ["GPU-a"],
                    "completedAt": "2026-11-20T10:00:00Z"}],
            },
        }),
    )
}

/// An object whose last run found a slow GPU and left something, as the watch's store holds it.
fn over(name: &str, leftovers: &str) -> PerfValidation {
    let slow = |cause: &str| json!({"cause": cause, "severity": "Warning", "evidence": "e", "remedy": "r"});
    let mut object = object(
        name,
        &json!({
            "observedGeneration": 1, "phase": "Completed", "verdict": "Passed",
            "placement": {"node": "n1", "allocation": "DRA", "gpus": 2, "nodeGPUs": 8},
            "run": {"number": 1, "trigger": "Created", "generation": 1,
                "startedAt": "2026-11-20T09:00:00Z", "completedAt": "2026-11-20T10:00:00Z"},
            "operatorState": {
                "leftovers": leftovers,
                "metrics": {"outputTokenThroughput": "20000"},
                "trials": [
                    {"number": 1, "outcome": "Pass", "startedAt": "2026-11-20T10:00:00Z", "slowGPUs": ["GPU-a"]},
                    {"number": 2, "outcome": "Pass", "startedAt": "2026-11-20T10:00:00Z", "slowGPUs": ["GPU-a", "GPU-b"]},
                ],
            },
            "diagnosis": [slow("SlowWorker"), slow("WorkerStall")],
        }),
    );
    crate::resting::reduce(&mut object);
    object
}

/// Everything that can happen has happened.
fn eventful() -> OperatorMetrics {
    let metrics = OperatorMetrics::new(true);
    metrics.reconciled("ok", Duration::from_millis(30));
    metrics.failed("Timeout");
    metrics.left(Phase::Sizing, Duration::from_secs(3));
    metrics.placed(Duration::from_secs(40));
    metrics.measured(TrialOutcome::Pass);
    metrics.judged(Verdict::Failed, "GatesMissed");
    metrics.called("list", "pods", Some(403));
    metrics.called("watch", "jobs", None);
    metrics.watch_failed("Job");
    metrics.lacks(2);
    metrics.unreadable(3);
    metrics.orphaned(4);
    metrics.came_late();
    metrics.calls(Counts {
        timeouts: 3,
        lost_events: 1,
    });
    metrics.leads();
    metrics.planned(7);
    let (node, policy) = fleet();
    metrics.nodes([("n1".to_owned(), &node)].into_iter());
    metrics.policies([("h100".to_owned(), Some(&policy))].into_iter());
    metrics
}

/// One line of samples: name, labels, value.
fn sample(line: &str) -> (String, BTreeMap<String, String>, f64) {
    let (series, value) = line.rsplit_once(' ').expect("a value");
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (name, labels.strip_suffix('}').expect("labels end")),
        None => (series, ""),
    };
    let mut read = BTreeMap::new();
    let mut rest = labels;
    while let Some((label, after)) = rest.split_once("=\"") {
        let mut end = 0;
        while &after[end..=end] != "\"" {
            end += if &after[end..=end] == "\\" { 2 } else { 1 };
        }
        assert!(
            read.insert(label.to_owned(), after[..end].to_owned()).is_none(),
            "{line}"
        );
        rest = after[end + 1..].trim_start_matches(',');
    }
    assert!(rest.is_empty(), "{line}");
    (name.to_owned(), read, value.parse().expect("a number"))
}

#[test]
fn a_scrape_is_well_formed_and_has_the_series_of_the_documented_table() {
    let waiting = object("waiting", &json!({"observedGeneration": 1, "phase": "Sizing"}));
    let judged = over("judged", "Overdue");
    let text = eventful().text([measuring("h100"), waiting, judged]);
    assert_eq!(text.lines().last(), Some("# EOF"));
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut announced: BTreeMap<String, String> = BTreeMap::new();
    for line in text.lines().filter(|line| *line != "# EOF") {
        if let Some(about) = line.strip_prefix("# ") {
            let (word, rest) = about.split_once(' ').unwrap();
            let (name, meaning) = rest.split_once(' ').unwrap();
            assert!(["HELP", "TYPE", "UNIT"].contains(&word), "{line}");
            if word == "TYPE" {
                announced.insert(name.to_owned(), meaning.to_owned());
            }
            continue;
        }
        let (name, mut labels, value) = sample(line);
        assert!(
            value.is_finite() && seen.insert((name.clone(), labels.clone())),
            "{line}"
        );
        labels.remove("le");
        let of = series::ALL.iter().find(|series| {
            let suffixes: &[&str] = match series.kind {
                series::SeriesKind::Histogram => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            suffixes
                .iter()
                .any(|suffix| format!("{}{suffix}", series.name()) == name)
        });
        let of = of.unwrap_or_else(|| panic!("{name} is not in the table"));
        let family = of
            .name()
            .trim_end_matches("_total")
            .trim_end_matches("_info")
            .to_owned();
        let kind = match of.kind {
            series::SeriesKind::Counter => "counter",
            series::SeriesKind::Gauge => "gauge",
            series::SeriesKind::Histogram => "histogram",
            series::SeriesKind::Info => "info",
        };
        assert_eq!(announced.get(&family).map(String::as_str), Some(kind), "{line}");
        found.entry(of.name()).or_default().extend(labels.into_keys());
    }
    let documented: BTreeMap<String, BTreeSet<String>> = series::ALL
        .iter()
        .map(|series| {
            (
                series.name(),
                series.labels.iter().map(|&label| label.to_owned()).collect(),
            )
        })
        .collect();
    assert_eq!(found, documented);
}

#[test]
fn the_values_are_in_base_units() {
    let waiting = object("waiting", &json!({"observedGeneration": 1, "phase": "Sizing"}));
    let text = eventful().text([measuring("h100"), waiting.clone(), waiting]);
    for line in [
        "perfvalidation_reconcile_duration_seconds_bucket{le=\"0.05\",outcome=\"ok\"} 1",
        "perfvalidation_reconcile_errors_total{reason=\"Timeout\"} 1",
        "perfvalidation_phase_duration_seconds_count{phase=\"Sizing\"} 1",
        "perfvalidation_runs_total{verdict=\"Failed\",reason=\"GatesMissed\"} 1",
        "perfvalidation_trials_total{outcome=\"Pass\"} 1",
        "perfvalidation_active_runs{phase=\"Sizing\"} 2",
        "perfvalidation_active_runs{phase=\"Pending\"} 0",
        "perfvalidation_queue_length 2",
        "perfvalidation_planned_runs 7",
        "perfvalidation_queue_wait_seconds_sum 40.0",
        "perfvalidation_last_throughput_tokens_per_second{namespace=\"perf\",name=\"h100\",node=\"n1\"} 110847.2",
        "perfvalidation_last_time_to_first_token_p99_seconds{namespace=\"perf\",name=\"h100\",node=\"n1\"} 0.91",
        "perfvalidation_last_error_ratio{namespace=\"perf\",name=\"h100\",node=\"n1\"} 0.005",
        "perfvalidation_last_slowest_worker_ratio{namespace=\"perf\",name=\"h100\",node=\"n1\"} 0.975",
        "perfvalidation_last_verdict{namespace=\"perf\",name=\"h100\",node=\"n0\",verdict=\"Failed\"} 1",
        "perfvalidation_last_verdict_timestamp_seconds{namespace=\"perf\",name=\"h100\",node=\"n0\"} 1795168800",
        "perfvalidation_phase_since_timestamp_seconds{namespace=\"perf\",name=\"h100\",phase=\"Benchmarking\"} 1795255200",
        "perfvalidation_held_gpus{namespace=\"perf\",name=\"h100\"} 8",
        "perfvalidation_held_gpus{namespace=\"perf\",name=\"waiting\"} 0",
        "perfvalidation_api_requests_total{verb=\"list\",resource=\"pods\",code=\"403\"} 1",
        "perfvalidation_api_requests_total{verb=\"watch\",resource=\"jobs\",code=\"none\"} 1",
        "perfvalidation_watch_errors_total{kind=\"Job\"} 1",
        "perfvalidation_missing_rights 2",
        "perfvalidation_unreadable_objects 3",
        "perfvalidation_orphaned_objects 4",
        "perfvalidation_late_objects_total 1",
        "perfvalidation_api_timeouts_total 3",
        "perfvalidation_lost_events_total 1",
        "perfvalidation_leader 1",
        &format!("perfvalidation_build_info{{version=\"{VERSION}\",revision=\"{REVISION}\"}} 1"),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
    assert!(!text.contains("phase=\"Completed\""), "{text}");
}

#[test]
fn what_has_not_happened_yet_is_zero() {
    let text = OperatorMetrics::new(true).text([]);
    for line in [
        "perfvalidation_phase_duration_seconds_count{phase=\"Evaluating\"} 0",
        "perfvalidation_trials_total{outcome=\"Miss\"} 0",
        "perfvalidation_queue_wait_seconds_count 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
}

#[test]
fn the_series_of_an_object_go_with_it_and_can_be_left_out() {
    let metrics = OperatorMetrics::new(true);
    assert!(metrics.text([measuring("h100")]).contains("name=\"h100\""));
    assert!(!metrics.text([]).contains("h100"), "it is gone");

    let text = OperatorMetrics::new(false).text([measuring("h100")]);
    assert!(!text.contains("h100"), "{text}");
    assert!(
        text.contains("perfvalidation_active_runs{phase=\"Benchmarking\"} 1"),
        "{text}"
    );
}

#[test]
fn while_the_next_run_has_not_measured_the_one_before_is_reported() {
    let next = object(
        "h100",
        &json!({
            "observedGeneration": 1, "phase": "Pending",
            "operatorState": {"history": [
                {"run": 3, "reason": "Suspended", "completedAt": "2026-11-22T10:00:00Z"},
                {"run": 2, "verdict": "Passed", "reason": "GatesMet", "node": "n2", "throughput": "100", "ttftP99Ms": "250",
                    "completedAt": "2026-11-21T10:00:00Z"},
            ]},
        }),
    );
    let text = OperatorMetrics::new(true).text([next]);
    for line in [
        "perfvalidation_last_throughput_tokens_per_second{namespace=\"perf\",name=\"h100\",node=\"n2\"} 100.0",
        "perfvalidation_last_time_to_first_token_p99_seconds{namespace=\"perf\",name=\"h100\",node=\"n2\"} 0.25",
        "perfvalidation_last_verdict{namespace=\"perf\",name=\"h100\",node=\"n2\",verdict=\"Passed\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
    assert!(!text.contains("last_error_ratio{"), "{text}");
}

#[test]
fn runs_that_end_without_numbers_do_not_hide_the_last_that_measured() {
    let mut third = object(
        "h100",
        &json!({
            "observedGeneration": 1, "phase": "Completed", "verdict": "Error",
            "operatorState": {"history": [
                {"run": 5, "verdict": "Error", "reason": "NoCapacity", "completedAt": "2026-11-22T10:00:00Z"},
                {"run": 4, "verdict": "Passed", "reason": "GatesMet", "node": "n2", "throughput": "100", "ttftP99Ms": "250",
                    "completedAt": "2026-11-21T10:00:00Z"},
            ]},
        }),
    );
    crate::resting::reduce(&mut third);
    let text = OperatorMetrics::new(true).text([third]);
    for line in [
        "perfvalidation_last_throughput_tokens_per_second{namespace=\"perf\",name=\"h100\",node=\"n2\"} 100.0",
        "perfvalidation_last_verdict{namespace=\"perf\",name=\"h100\",node=\"\",verdict=\"Error\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
}

#[test]
fn an_unknown_reason_does_not_become_a_label() {
    let metrics = OperatorMetrics::new(true);
    metrics.judged(Verdict::Error, "pod perf/x-7f9c is gone");
    assert!(metrics.text([]).contains("reason=\"Other\"} 1"));
}

#[test]
fn a_finished_run_shows_its_slow_gpus_its_node_and_what_it_left() {
    let text = OperatorMetrics::new(true).text([over("h200", "Overdue"), over("kept", "Kept")]);
    let of = "namespace=\"perf\",name=\"h200\",node=\"n1\"";
    for line in [
        format!("perfvalidation_slow_gpu{{{of},gpu_uuid=\"GPU-a\"}} 1"),
        format!("perfvalidation_slow_gpu{{{of},gpu_uuid=\"GPU-b\"}} 1"),
        format!("perfvalidation_last_verdict{{{of},verdict=\"Passed\"}} 1"),
        format!("perfvalidation_last_verdict_timestamp_seconds{{{of}}} 1795168800"),
        format!("perfvalidation_leftovers{{{of},state=\"Overdue\"}} 1"),
        format!("perfvalidation_unsaved_results{{{of}}} 1"),
        "perfvalidation_leftovers{namespace=\"perf\",name=\"kept\",node=\"n1\",state=\"Kept\"} 1".to_owned(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
    assert!(!text.contains("phase_since_timestamp_seconds{"), "it is over: {text}");
}

/// Makes an object a validation of a policy.
fn adopt(object: &mut PerfValidation, policy: &str) {
    let owner = json!([{"apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidationPolicy", "name": policy,
        "uid": policy, "controller": true}]);
    object.metadata.owner_references = serde_json::from_value(owner).unwrap();
}

#[test]
fn results_of_a_policy_are_shown_by_its_nodes_alone() {
    let mut object = over("h100-n1-x7", "Overdue");
    let own = OperatorMetrics::new(true).text([object.clone()]);
    adopt(&mut object, "p");
    let text = OperatorMetrics::new(true).text([object.clone()]);
    let has = |text: &str, series: &str| text.contains(&format!("\nperfvalidation_{series}"));
    for series in [
        "slow_gpu{",
        "last_verdict{",
        "last_verdict_timestamp_seconds{",
        "last_throughput",
    ] {
        assert!(has(&own, series) && !has(&text, series), "{series}: {text}");
    }
    for series in ["leftovers{", "unsaved_results{", "held_gpus{"] {
        assert!(has(&text, series), "{series}: {text}");
    }
    // The alert on these ends a day after the run.
    object.status.as_mut().unwrap().verdict = Some(Verdict::Error);
    let text = OperatorMetrics::new(true).text([object]);
    assert!(text.contains("verdict=\"Error\"} 1"), "{text}");
    assert!(has(&text, "last_verdict_timestamp_seconds{"), "{text}");
    for series in ["slow_gpu{", "last_throughput"] {
        assert!(has(&own, series) && !has(&text, series), "{series}: {text}");
    }
}

/// A validation of a policy that ended at this hour.
fn ended(policy: &str, hostname: &str, name: &str, hour: u8, verdict: &str) -> PerfValidation {
    let mut object = object(
        name,
        &json!({
            "observedGeneration": 1, "phase": "Completed", "verdict": verdict,
            "run": {"number": 1, "trigger": "Created", "generation": 1,
                "startedAt": "2026-11-20T00:00:00Z", "completedAt": format!("2026-11-20T{hour:02}:00:00Z")},
        }),
    );
    adopt(&mut object, policy);
    let selector = [("kubernetes.io/hostname".to_owned(), hostname.to_owned())];
    object.spec.placement.node_selector = selector.into();
    object
}

#[test]
fn an_error_of_a_policy_ends_with_a_newer_result_of_the_node() {
    let with_result = |objects: Vec<PerfValidation>| {
        let text = OperatorMetrics::new(true).text(objects);
        let lines = text
            .lines()
            .filter_map(|line| line.strip_prefix("perfvalidation_last_verdict{"));
        let names = lines.filter_map(|line| line.split('"').nth(3).map(str::to_owned));
        names.collect::<BTreeSet<String>>()
    };
    let error = || ended("p", "n1", "error", 10, "Error");
    let later = |verdict| vec![ended("p", "n1", "later", 11, verdict), error()];
    for verdict in ["Passed", "Failed"] {
        assert!(with_result(later(verdict)).is_empty(), "{verdict}");
    }
    let newest = BTreeSet::from(["later".to_owned()]);
    assert_eq!(with_result(later("Inconclusive")), newest, "one for a node");
    let only = BTreeSet::from(["error".to_owned()]);
    assert_eq!(with_result(later("Skipped")), only, "a skipped run is no result");
    let mut foreign = ended("p", "n1", "other-namespace", 11, "Passed");
    foreign.metadata.namespace = Some("tenant".to_owned());
    for other in [
        ended("p", "n1", "earlier", 9, "Passed"),
        ended("p", "n2", "other-node", 11, "Passed"),
        ended("q", "n1", "other-policy", 11, "Passed"),
        foreign,
    ] {
        assert_eq!(with_result(vec![error(), other.clone()]), only, "{other:?}");
        assert_eq!(with_result(vec![other.clone(), error()]), only, "{other:?}");
    }
}

#[test]
fn a_gpu_that_the_verdict_does_not_blame_is_not_slow() {
    let mut object = over("h200", "Overdue");
    object.status.as_mut().unwrap().diagnosis.clear();
    let text = OperatorMetrics::new(true).text([object, measuring("h100")]);
    assert!(!text.contains("slow_gpu{"), "{text}");
}

#[test]
fn a_slow_worker_without_a_uuid_is_shown_with_its_node() {
    let mut object = over("plugin", "Overdue");
    object.status.as_mut().unwrap().state.trials.clear();
    let text = OperatorMetrics::new(true).text([object]);
    let line = "perfvalidation_slow_gpu{namespace=\"perf\",name=\"plugin\",node=\"n1\",gpu_uuid=\"\"} 1";
    assert!(text.lines().any(|found| found == line), "{text}");
}

fn ready(status: &str, reason: &str) -> Value {
    json!({"type": "Ready", "status": status, "reason": reason, "message": "", "lastTransitionTime": "2026-11-20T10:00:00Z"})
}

/// A node and a policy with every number.
fn fleet() -> (NodePerformanceStatus, PerfValidationPolicyStatus) {
    let node = json!({
        "verdict": "Failed", "measuredAt": "2026-11-20T10:00:00Z", "percentOfGate": 84, "percentOfOwnPast": 101, "percentOfPeers": 97,
        "validation": {"namespace": "perf", "name": "h100", "uid": "u", "run": 1},
    });
    let policy = json!({
        "nodes": {"selected": 12, "stale": 3}, "gpuMinutesToday": 96,
        "conditions": [ready("True", "Reconciled")],
        "outliers": [
            {"node": "n1", "reason": "BelowGate", "percent": 84, "validation": "perf/h100"},
            {"node": "n2", "reason": "SlowerThanItself", "confidence": "Confirmed", "percent": 90, "validation": "perf/h100", "gpu": "GPU-a"},
            {"node": "n2", "reason": "SlowerThanItself", "confidence": "Confirmed", "percent": 91, "validation": "perf/h100", "gpu": "GPU-b"},
            {"node": "n3", "reason": "SlowerThanItself", "confidence": "Suspected", "percent": 90, "validation": "perf/h100"},
        ],
    });
    (
        serde_json::from_value(node).unwrap(),
        serde_json::from_value(policy).unwrap(),
    )
}

#[test]
fn nodes_and_policies_have_series_until_they_are_gone() {
    let metrics = OperatorMetrics::new(true);
    let (mut node, policy) = fleet();
    node.percent_of_own_past = None;
    metrics.nodes([("n1".to_owned(), &node)].into_iter());
    metrics.policies([("h100".to_owned(), Some(&policy))].into_iter());
    let text = metrics.text([]);
    for line in [
        "perfvalidation_node_verdict{node=\"n1\",verdict=\"Failed\"} 1",
        "perfvalidation_node_measured_timestamp_seconds{node=\"n1\"} 1795168800",
        "perfvalidation_node_of_gate_ratio{node=\"n1\"} 0.84",
        "perfvalidation_node_of_peers_ratio{node=\"n1\"} 0.97",
        "perfvalidation_policy_ready{policy=\"h100\",reason=\"Reconciled\"} 1",
        "perfvalidation_policy_nodes{policy=\"h100\",state=\"Stale\"} 3",
        "perfvalidation_policy_gpu_minutes_today{policy=\"h100\"} 96",
        "perfvalidation_node_outlier{policy=\"h100\",node=\"n1\",reason=\"BelowGate\"} 1",
        "perfvalidation_node_outlier{policy=\"h100\",node=\"n2\",reason=\"SlowerThanItself\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
    assert!(!text.contains("node_of_own_past_ratio{"), "it is unknown: {text}");
    let of_n2 = text
        .matches("perfvalidation_node_outlier{policy=\"h100\",node=\"n2\"")
        .count();
    assert_eq!(of_n2, 1, "both of its GPUs are slow: {text}");
    assert!(!text.contains("node=\"n3\""), "a suspicion is no alert: {text}");
    let mut blind = policy;
    blind.conditions = vec![serde_json::from_value(ready("Unknown", "NodesUnreadable")).unwrap()];
    metrics.policies([("h100".to_owned(), Some(&blind))].into_iter());
    let text = metrics.text([]);
    let of_policy: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("perfvalidation_policy_ready{"))
        .collect();
    assert_eq!(
        of_policy,
        ["perfvalidation_policy_ready{policy=\"h100\",reason=\"NodesUnreadable\"} 0"]
    );
    blind.nodes = None;
    metrics.policies([("h100".to_owned(), Some(&blind))].into_iter());
    let text = metrics.text([]);
    assert!(text.contains("perfvalidation_policy_ready{policy=\"h100\""), "{text}");
    assert!(!text.contains("perfvalidation_policy_nodes{"), "never read: {text}");
    metrics.nodes(std::iter::empty());
    metrics.policies(std::iter::empty());
    let text = metrics.text([]);
    assert!(
        !text.contains("node=\"n1\"") && !text.contains("policy=\"h100\""),
        "{text}"
    );
}
