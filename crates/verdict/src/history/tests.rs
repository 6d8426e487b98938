use perfval_api::{Metrics, OperatorState, PlacementStatus, RunStatus};
use perfval_testkit::environment::known;

use super::*;

fn environment(driver: &str) -> Environment {
    Environment {
        gpu_driver: Some(driver.into()),
        ..known()
    }
}

fn measured(throughput: &str) -> TrialState {
    TrialState {
        outcome: Some(TrialOutcome::Pass),
        throughput: Some(throughput.into()),
        ttft_p99_ms: Some("100".into()),
        ..TrialState::default()
    }
}

/// The next run after `last`, with these numbers.
fn next(last: &PerfValidationStatus, verdict: Verdict, driver: &str, throughput: &str) -> PerfValidationStatus {
    let number = last.run.as_ref().map_or(1, |run| run.number + 1);
    PerfValidationStatus {
        run: Some(RunStatus {
            number,
            ..RunStatus::default()
        }),
        verdict: Some(verdict),
        placement: Some(PlacementStatus {
            node: "n1".into(),
            ..PlacementStatus::default()
        }),
        state: Box::new(OperatorState {
            environment: Some(environment(driver)),
            metrics: Some(Metrics::default()),
            trials: vec![measured(throughput), measured(throughput)],
            history: with_last(last, DateTime::UNIX_EPOCH),
            last_passed: last_passed(last),
            ..OperatorState::default()
        }),
        ..PerfValidationStatus::default()
    }
}

/// The next run after `last`, which passed.
fn passed(last: &PerfValidationStatus) -> PerfValidationStatus {
    next(last, Verdict::Passed, "580", "1000")
}

fn first() -> PerfValidationStatus {
    passed(&PerfValidationStatus::default())
}

#[test]
fn a_run_is_compared_with_the_last_passed_one_of_its_environment() {
    use Verdict::{Failed, Passed};
    let first = first();
    assert_eq!(compare(&first), None, "nothing to compare with");
    let failed = next(&first, Failed, "580", "500");
    let other = next(&failed, Passed, "590", "2000");
    let not_compared = compare(&other).expect("a comparison");
    assert_eq!((not_compared.run, not_compared.throughput_percent.clone()), (1, None));
    assert_eq!(not_compared.differs, ["gpuDriver 580, now 590"]);
    assert_eq!(
        in_words(&not_compared),
        "not compared with run 1: gpuDriver 580, now 590"
    );

    // Back on the first driver: run 3 passed later, but run 1 is the one to compare with.
    let back = next(&other, Passed, "580", "1042");
    let compared = compare(&back).expect("a comparison");
    assert_eq!((compared.run, compared.differs.len()), (1, 0));
    assert_eq!(compared.throughput_percent.as_deref(), Some("+4.2"));
    assert_eq!(compared.ttft_p99_percent.as_deref(), Some("0"));
    assert_eq!(in_words(&compared), "against run 1: tok/s +4.2 % ± 21 %");
}

fn slow(last: &PerfValidationStatus, node: &str, gpu: &str) -> PerfValidationStatus {
    let mut status = passed(last);
    status.placement.as_mut().expect("a placement").node = node.into();
    status.state.trials[1].slow_gpus = vec![gpu.to_owned()];
    status
}

#[test]
fn the_same_gpu_twice_is_to_be_replaced_and_another_each_time_is_not() {
    let advice = |status: &PerfValidationStatus, node: &str, gpus: &[&str], shared: bool| {
        let gpus: Vec<String> = gpus.iter().map(|gpu| (*gpu).to_owned()).collect();
        let mut here = status.clone();
        here.placement.as_mut().expect("a placement").node = node.into();
        compare_slow_gpus(&here, &gpus, shared)
    };
    let first = slow(&PerfValidationStatus::default(), "n1", "GPU-a");
    let second = passed(&first);
    let third = passed(&second);
    let mut shared_then = second.clone();
    shared_then.state.history[0].causes = vec!["SlowWorker".into(), "GPUShared".into()];
    let mut judged_twice = passed(&slow(&first, "n1", "GPU-a"));
    judged_twice.state.judged_run = Some(1);
    for (status, node, gpus, why) in [
        (&first, "n1", &["GPU-a"][..], "seen once"),
        (&shared_then, "n1", &["GPU-a"], "something else worked on it in run 1"),
        (&judged_twice, "n1", &["GPU-a"], "the trials of run 1 are judged again"),
        (&second, "n2", &["GPU-b"], "of two nodes each may have a bad one"),
        (&second, "n1", &[], "none is slow now"),
        (&third, "n1", &["GPU-b"], "a clean run lies between"),
    ] {
        assert_eq!(advice(status, node, gpus, false), None, "{why}");
    }
    assert_eq!(
        advice(&second, "n1", &["GPU-a"], false).as_deref(),
        Some("GPU-a was slow in run 1 too: replace or drain it")
    );
    assert_eq!(
        advice(&second, "n1", &["GPU-a"], true).as_deref(),
        Some("GPU-a was slow in run 1 too"),
        "something else works on it: the GPU may be sound"
    );
    let other = advice(&second, "n1", &["GPU-b"], false).expect("another one");
    assert!(
        other.starts_with("in run 1 on this node it was GPU-a: another GPU each time"),
        "{other}"
    );
}

#[test]
fn a_run_that_named_a_cause_is_no_reference() {
    let mut blamed = next(&first(), Verdict::Passed, "580", "900");
    blamed.diagnosis = vec![Cause::SlowWorker.finding("worker w0")];
    let third = passed(&blamed);
    let comparison = compare(&third).expect("a comparison");
    assert_eq!(
        (comparison.run, comparison.throughput_percent.as_deref()),
        (1, Some("0"))
    );
    assert_eq!(third.state.last_passed.as_ref().map(|passed| passed.run), Some(1));
    assert_eq!(third.state.history[0].causes, ["SlowWorker"]);
    let slow = slow(&PerfValidationStatus::default(), "n1", "GPU-a");
    assert_eq!(compare(&passed(&slow)), None);
}

#[test]
fn all_trials_that_decide_are_compared_and_the_soak_is_not() {
    let mut second = passed(&first());
    second.state.trials = vec![
        measured("900"),
        measured("1100"),
        TrialState {
            outcome: Some(TrialOutcome::Invalid),
            ..measured("1")
        },
        TrialState {
            soak: true,
            ..measured("500")
        },
    ];
    let comparison = compare(&second).expect("a comparison");
    assert_eq!(comparison.throughput_percent.as_deref(), Some("0"));
    let kept = &with_last(&second, DateTime::UNIX_EPOCH)[0];
    assert_eq!((kept.throughput.as_deref(), kept.trials), (Some("1000"), Some(2)));
}

#[test]
fn unknown_values_are_not_compared() {
    let mut first = first();
    first.state.environment.as_mut().unwrap().gpu_product = None;
    let mut second = passed(&first);
    second.state.environment.as_mut().unwrap().gpu_product = None;
    let comparison = compare(&second).expect("a comparison");
    assert_eq!(comparison.throughput_percent, None);
    assert_eq!(comparison.differs, ["gpuProduct is not known"]);

    let failed = TrialState {
        outcome: Some(TrialOutcome::Miss),
        ..TrialState::default()
    };
    for trials in [vec![failed], vec![measured("1000"), measured("0")]] {
        let mut second = passed(&passed(&PerfValidationStatus::default()));
        second.state.trials = trials;
        let comparison = compare(&second).expect("a comparison");
        assert_eq!(
            in_words(&comparison),
            "not compared with run 1: a trial measured no throughput"
        );
    }
}

#[test]
fn ten_runs_are_kept_and_the_last_passed_one_for_ever() {
    let mut status = first();
    for _ in 0..12 {
        status = next(&status, Verdict::Failed, "580", "1000");
    }
    let runs: Vec<i64> = status.state.history.iter().map(|entry| entry.run).collect();
    assert_eq!(runs, (3..=12).rev().collect::<Vec<_>>());
    assert_eq!(status.state.last_passed.as_ref().map(|passed| passed.run), Some(1));
    let comparison = compare(&status).expect("a comparison");
    assert_eq!(
        (comparison.run, comparison.throughput_percent.as_deref()),
        (1, Some("0"))
    );
}
