//! Agreement of the API server and the operator: it can read every object that passes, and the trial rule cannot
//! decide the refused ones.

use perfval_api::{PerfValidation, Timeouts, TrialOutcome, TrialRule, quantity};
use perfval_testkit::admission::{Rejected, cases};
use perfval_verdict::trials::{Finished, Ruling, rule};

#[test]
fn every_accepted_number_and_duration_can_be_read() {
    for case in cases().into_iter().filter(|case| case.rejected.is_none()) {
        let spec = serde_json::from_value::<PerfValidation>(case.manifest).unwrap().spec;
        let thresholds = spec.gates.iter().map(|gate| &gate.threshold);
        for text in thresholds.chain(spec.benchmark.goodput.iter().map(|objective| &objective.max)) {
            let value = quantity::parse(text);
            assert!(
                value.is_some_and(|value| value.is_sign_positive() && !value.is_zero()),
                "{}: {text:?}",
                case.name
            );
        }
        let Timeouts {
            prerequisites,
            sizing,
            model_cache,
            workload_ready,
            endpoint_ready,
            endpoint_probe,
            benchmark,
            cleanup,
            total,
        } = spec.timeouts;
        let always = [
            prerequisites,
            sizing,
            model_cache,
            workload_ready,
            endpoint_ready,
            endpoint_probe,
            benchmark,
            cleanup,
            spec.benchmark.request_timeout,
        ];
        let others = [total, spec.benchmark.duration, spec.benchmark.soak];
        for text in always.into_iter().chain(others.into_iter().flatten()) {
            assert!(text.parse::<kube::core::Duration>().is_ok(), "{}: {text:?}", case.name);
        }
    }
}

#[test]
fn straight_misses_fail_a_deployment_exactly_where_the_api_server_lets_them() {
    let misses_only = |manifest| {
        let trials = serde_json::from_value::<PerfValidation>(manifest).unwrap().spec.trials;
        let miss = Finished {
            outcome: TrialOutcome::Miss,
            far: false,
            margins: Vec::new(),
        };
        let max = usize::try_from(trials.max).unwrap();
        (trials.rule == TrialRule::Sequential).then(|| rule(&trials, &vec![miss; max]))
    };
    let mut refused = 0;
    for case in cases() {
        match case.rejected {
            None => assert!(
                misses_only(case.manifest).is_none_or(|ruling| ruling == Ruling::Fail),
                "{}",
                case.name
            ),
            Some(Rejected::Rule(words)) if words == "so few trials" => {
                assert_eq!(misses_only(case.manifest), Some(Ruling::Undecided), "{}", case.name);
                refused += 1;
            }
            Some(_) => {}
        }
    }
    assert!(refused > 0);
}
