//! Findings of a run of several trials.

use chrono::DateTime;
use perfval_api::{
    Finding, Metric, PerfValidationSpec, PerfValidationStatus, Statistic, TrialOutcome, TrialRule, Verdict,
};
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::frame::TrialRecord;
use perfval_verdict::norms::Norms;
use perfval_verdict::rejudge::rejudge;
use perfval_verdict::saved::SavedRun;
use perfval_verdict::trial::{JudgedTrial, judge};
use perfval_verdict::workers::WorkerSummary;
use serde_json::json;

use super::{balanced, causes, close_next, evidence, peers, pods, report, sample, set, spec, speed, worker};

/// Four workers; `c` decodes at this speed (percent of its peers').
fn decoding(percent: i64) -> Vec<WorkerSummary> {
    let mut workers = balanced();
    for worker in &mut workers {
        let percent = if worker.address == "c" { percent } else { 100 };
        worker.speed = Some(speed(10, Some(peers(percent, 1))));
    }
    workers
}

/// Trials with these workers, each with this value of a metric.
struct Story {
    spec: PerfValidationSpec,
    status: PerfValidationStatus,
}

impl Story {
    fn new(gates: serde_json::Value) -> Self {
        let mut spec = spec();
        spec.gates = serde_json::from_value(gates).expect("gates");
        Self {
            spec,
            status: PerfValidationStatus::default(),
        }
    }

    fn judged(&self, workers: Vec<WorkerSummary>, metric: Metric, statistic: Statistic, value: i64) -> JudgedTrial {
        let mut values = vec![(metric, statistic, value)];
        if statistic == Statistic::P99 {
            values.push((metric, Statistic::P90, value));
        }
        self.judged_with(workers, &values)
    }

    fn judged_with(&self, workers: Vec<WorkerSummary>, values: &[(Metric, Statistic, i64)]) -> JudgedTrial {
        judge(evidence(&measured(workers, values), &pods()), &self.spec)
    }

    fn trial(&mut self, workers: Vec<WorkerSummary>, metric: Metric, statistic: Statistic, value: i64) {
        let judged = self.judged(workers, metric, statistic, value);
        close_next(&self.spec, &mut self.status, &judged);
    }

    fn throughput(&mut self, workers: Vec<WorkerSummary>, value: i64) {
        self.trial(workers, Metric::OutputTokenThroughput, Statistic::Avg, value);
    }

    fn found(&self) -> Vec<String> {
        let causes = self.status.diagnosis.iter().filter_map(Cause::from_finding);
        causes.map(|cause| format!("{cause:?}")).collect()
    }

    fn outcomes(&self) -> Vec<TrialOutcome> {
        let trials = self.status.state.trials.iter();
        trials.filter_map(|trial| trial.outcome).collect()
    }
}

/// Record of a trial with these workers and values.
fn measured(workers: Vec<WorkerSummary>, values: &[(Metric, Statistic, i64)]) -> TrialRecord {
    let mut record = sample("success", workers);
    for (metric, statistic, value) in values {
        set(report(&mut record), *metric, *statistic, *value);
    }
    record
}

fn throughput() -> serde_json::Value {
    json!([{"name": "t", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1500"}])
}

fn tail() -> serde_json::Value {
    json!([{"name": "ttft", "metric": "TimeToFirstToken", "statistic": "P99", "operator": "<=", "threshold": "2000"}])
}

#[test]
fn a_pass_absorbs_the_causes_of_its_missed_trials() {
    use TrialOutcome::{Miss, Pass};
    let mut story = Story::new(throughput());
    story.throughput(decoding(100), 2000);
    story.throughput(decoding(100), 1200);
    assert_eq!(story.found(), ["BalancedDegradation"], "nothing is decided yet");
    story.throughput(decoding(100), 2000);
    assert_eq!(story.outcomes(), [Pass, Miss, Pass]);
    assert_eq!(story.found(), Vec::<&str>::new());
    assert_eq!(
        story.status.state.trials[1].causes,
        ["BalancedDegradation"],
        "the trial keeps it"
    );
}

#[test]
fn a_worker_is_slow_by_all_trials_of_the_run_or_not_at_all() {
    let mut story = Story::new(throughput());
    story.throughput(decoding(89), 1400);
    assert_eq!(story.found(), ["SlowWorker"]);
    story.status.state.trials[0].slow_gpus = vec!["GPU-c".to_owned()];
    story.throughput(decoding(99), 2000);
    story.throughput(decoding(100), 2000);
    assert_eq!(story.found(), Vec::<&str>::new(), "96 % on average");
    assert!(story.status.state.trials.iter().all(|trial| trial.slow_gpus.is_empty()));

    let mut story = Story::new(throughput());
    story.throughput(decoding(96), 1400);
    story.throughput(decoding(84), 1400);
    assert_eq!(story.found(), ["SlowWorker"], "no text beside it denies it");
    let evidence = &story.status.diagnosis[0].evidence;
    assert!(
        evidence.starts_with("worker c (GPU n1/c) decodes at 90 % ± 0.71 % of its peers' speed over 2 trials"),
        "{evidence}"
    );

    // A trial that did not compare it changes nothing.
    let mut story = Story::new(throughput());
    story.throughput(decoding(89), 2000);
    story.status.state.trials[0].slow_gpus = vec!["GPU-c".to_owned()];
    let mut hidden = decoding(100);
    for worker in hidden.iter_mut().filter(|worker| worker.address == "c") {
        worker.speed = None;
    }
    story.throughput(hidden, 2000);
    assert!(story.found().contains(&"SlowWorker".to_owned()), "{:?}", story.found());
    assert_eq!(story.status.state.trials[0].slow_gpus, ["GPU-c"]);
    story.throughput(decoding(91), 2000);
    let slow = |finding: &&Finding| finding.cause == Cause::SlowWorker.as_str();
    let evidence = story
        .status
        .diagnosis
        .iter()
        .find(slow)
        .map(|finding| &finding.evidence);
    assert!(
        evidence.is_some_and(|text| text.contains("90 % ± 0.71 % of its peers' speed over 2 trials")),
        "{evidence:?}"
    );
}

#[test]
fn jitter_is_of_tails_and_of_runs_in_which_a_trial_passed() {
    let (metric, statistic) = (Metric::TimeToFirstToken, Statistic::P99);
    let mut story = Story::new(tail());
    for _ in 0..2 {
        story.trial(decoding(100), metric, statistic, 2400);
        assert_eq!(story.found(), ["BalancedDegradation"], "no trial passed yet");
    }
    story.trial(decoding(100), metric, statistic, 1000);
    story.trial(decoding(100), metric, statistic, 2400);
    assert_eq!(story.found(), ["KneeJitter"]);
    for _ in 0..5 {
        story.trial(decoding(100), metric, statistic, 2400);
    }
    assert_eq!(
        story.found(),
        ["BalancedDegradation"],
        "one lucky trial in a run that fails"
    );
    // A load beyond the knee is missed throughout, and keeps its cause.
    let mut far = Story::new(tail());
    let queueing = [
        (metric, Statistic::P99, 12_000),
        (metric, Statistic::P50, 6_000),
        (Metric::RequestLatency, Statistic::P50, 8_000),
    ];
    for _ in 0..4 {
        let judged = far.judged_with(decoding(100), &queueing);
        close_next(&far.spec, &mut far.status, &judged);
    }
    assert_eq!(far.found(), ["PastKnee"]);
    // With this rule a single miss fails the run.
    let mut strict = Story::new(tail());
    strict.spec.trials.rule = TrialRule::All;
    for value in [1000, 1000, 2400] {
        strict.trial(decoding(100), metric, statistic, value);
    }
    assert_eq!(strict.found(), ["KneeJitter"]);

    let mean = json!([{"name": "itl", "metric": "InterTokenLatency", "operator": "<=", "threshold": "25"}]);
    let mut story = Story::new(mean);
    story.trial(decoding(100), Metric::InterTokenLatency, Statistic::Avg, 20);
    story.trial(decoding(100), Metric::InterTokenLatency, Statistic::Avg, 30);
    assert_eq!(story.found(), ["BalancedDegradation"], "a mean has no tail");
}

#[test]
fn what_explains_many_misses_goes_with_them_when_the_gate_is_looser() {
    let mut story = Story::new(tail());
    let mut saved = SavedRun::default();
    for (number, value) in (1..).zip([1000, 2400, 2400, 2400, 2400, 2400, 2400, 2400]) {
        let values = [Statistic::P99, Statistic::P90].map(|statistic| (Metric::TimeToFirstToken, statistic, value));
        let record = measured(decoding(100), &values);
        let judged = judge(evidence(&record, &pods()), &story.spec);
        close_next(&story.spec, &mut story.status, &judged);
        saved.records.insert(number, record);
    }
    assert_eq!(story.found(), ["BalancedDegradation"]);
    saved.trials.clone_from(&story.status.state.trials);
    saved.diagnosis.clone_from(&story.status.diagnosis);
    assert_eq!(saved.trials[1].causes, ["LatencyMissed"], "no trial has it");

    story.spec.gates[0].threshold = "3000".to_owned();
    let mut status = PerfValidationStatus::default();
    status.state.worker_pods = pods();
    let now = DateTime::UNIX_EPOCH;
    let (verdict, _) = rejudge(&story.spec, &mut status, &saved, &Norms::default(), now).expect("two passes");
    assert_eq!((verdict, status.diagnosis), (Verdict::Passed, Vec::new()));
}

/// Four workers; this one was stopped for 8 s.
fn stopped(name: &str) -> Vec<WorkerSummary> {
    let mut workers = decoding(100);
    let stopped = workers.iter_mut().find(|worker| worker.address == name);
    let stopped = stopped.expect("one of the four");
    *stopped = WorkerSummary {
        speed: stopped.speed.clone(),
        still_seconds: 8,
        still_in_flight: 30,
        ..worker(name, 10, 32)
    };
    workers
}

/// On four H200s each trial had another shared GPU. The last trial passed.
#[test]
fn a_pass_does_not_replace_what_explains_a_miss() {
    let evidence = |values: &[(&str, i64)]| {
        let mut story = Story::new(throughput());
        for (name, value) in values {
            story.throughput(stopped(name), *value);
        }
        assert_eq!(story.found(), ["TransientStall"]);
        story.status.diagnosis[0].evidence.chars().take(8).collect::<String>()
    };
    let (miss, pass) = (1200, 2000);
    assert_eq!(evidence(&[("b", miss), ("c", pass)]), "worker b");
    assert_eq!(evidence(&[("b", miss), ("c", miss)]), "worker c");
    assert_eq!(evidence(&[("b", pass), ("c", pass)]), "worker c");
    assert_eq!(evidence(&[("b", pass), ("c", miss), ("d", pass)]), "worker c");
}

/// On an H200 an engine was stopped for 8 s: nothing is shared by all workers.
#[test]
fn a_standstill_that_explains_a_miss_leaves_no_degradation_of_all() {
    let causes = |value: i64| {
        let story = Story::new(throughput());
        causes(&story.judged(stopped("c"), Metric::OutputTokenThroughput, Statistic::Avg, value))
    };
    assert_eq!(causes(1200), [Cause::TransientStall], "20 % below, and 8 of 30 s");
    // Half of the throughput is not lost in a quarter of the time.
    assert_eq!(
        causes(600),
        [Cause::TransientStall, Cause::FarBelowGate, Cause::BalancedDegradation]
    );
}

#[test]
fn a_worker_that_is_slow_by_all_trials_is_not_called_alike_in_the_place_of_jitter() {
    let uneven = || {
        let mut workers = decoding(100);
        for worker in &mut workers {
            let percent = if worker.address == "c" { 91 } else { 100 };
            worker.speed = Some(speed(10, Some(peers(percent, 5))));
        }
        workers
    };
    let mut story = Story::new(tail());
    story.trial(uneven(), Metric::TimeToFirstToken, Statistic::P99, 2400);
    assert_eq!(story.found(), ["BalancedDegradation"], "one trial is too uneven");
    story.trial(uneven(), Metric::TimeToFirstToken, Statistic::P99, 2400);
    assert_eq!(story.found(), ["SlowWorker"]);
}
