//! The rule that turns trials into a verdict: its error bounds, and what never changes it.

use perfval_api::{PerfValidationSpec, TrialOutcome, TrialRule, TrialState, TrialsSpec};
use perfval_testkit::odds::{Odds, correlated_odds, curve, odds};
use perfval_verdict::trials::{
    DEGRADED_PASS_RATE, Finished, HEALTHY_PASS_RATE, Ruling, finished, mean_near_gate, rule, ruling, soak_is_next,
};
use proptest::prelude::*;
use proptest::sample::select;

fn sequential(error_bound_percent: i32, max: i32) -> TrialsSpec {
    TrialsSpec {
        rule: TrialRule::Sequential,
        error_bound_percent,
        max,
        ..TrialsSpec::default()
    }
}

#[test]
fn the_default_rule_keeps_its_error_bounds() {
    let deployments = [
        (0.98, "a quiet deployment"),
        (2.0 / 3.0, "a healthy one that stalls in one trial of three"),
        (HEALTHY_PASS_RATE, "the worst that counts as healthy"),
        (DEGRADED_PASS_RATE, "the best that counts as degraded"),
        (0.01, "a broken one"),
    ];
    // Passed, failed, inconclusive, trials: computed apart from this code.
    let expected = [
        (1.0000, 0.0000, 0.0000, 2.041),
        (0.9767, 0.0136, 0.0098, 3.093),
        (0.9469, 0.0295, 0.0236, 3.452),
        (0.0164, 0.9542, 0.0294, 4.674),
        (0.0006, 0.9979, 0.0015, 4.155),
    ];
    for ((rate, what), (passed, failed, inconclusive, trials)) in deployments.into_iter().zip(expected) {
        let found = odds(&TrialsSpec::default(), 1.0 - rate, 0.0);
        let near = |a: f64, b: f64, within: f64| (a - b).abs() < within;
        assert!(
            near(found.passed, passed, 6e-5)
                && near(found.failed, failed, 6e-5)
                && near(found.inconclusive, inconclusive, 6e-5)
                && near(found.trials, trials, 6e-4),
            "{what}, pass rate {rate}: {found:?}"
        );
        let all = found.passed + found.failed + found.inconclusive;
        assert!(near(all, 1.0, 1e-9), "{what}: probabilities add up to {all}");
    }
}

#[test]
fn a_single_trial_fails_a_deployment_that_stalls_once_in_three() {
    let single = TrialsSpec {
        rule: TrialRule::Single,
        ..TrialsSpec::default()
    };
    let found = odds(&single, 1.0 / 3.0, 0.0);
    let expected = Odds {
        passed: 1.0 - 1.0 / 3.0,
        failed: 1.0 / 3.0,
        inconclusive: 0.0,
        trials: 1.0,
    };
    assert_eq!(found, expected);
}

#[test]
fn far_misses_end_a_run_early_and_are_part_of_the_odds() {
    let always = odds(&TrialsSpec::default(), 0.0, 1.0);
    assert_eq!((always.failed, always.trials), (1.0, 2.0));
    // Two straight far misses: the price of ending early is 1/9 at one far miss in three, so only what no noise explains
    // may count as far.
    let sometimes = odds(&TrialsSpec::default(), 0.0, 1.0 / 3.0);
    assert!(sometimes.failed > 0.1, "{sometimes:?}");
}

#[test]
fn the_page_shows_every_second_point_of_the_curve() {
    let page = std::fs::read_to_string("../../docs/evidence/trial-rule.md").unwrap();
    // The sample of a policy.
    let quick = TrialsSpec {
        error_bound_percent: 10,
        ..TrialsSpec::default()
    };
    let rows: Vec<String> = curve(&TrialsSpec::default())
        .zip(curve(&quick))
        .step_by(2)
        .map(|((rate, odds), (_, quick))| {
            format!(
                "| {rate:.2} | {:.3} | {:.3} | {:.3} | {:.1} | {:.3} | {:.3} | {:.1} |",
                odds.passed, odds.failed, odds.inconclusive, odds.trials, quick.passed, quick.failed, quick.trials
            )
        })
        .collect();
    assert_eq!(rows.len(), 11);
    assert!(
        page.contains(&rows.join("\n")),
        "docs/evidence/trial-rule.md shows another curve than:\n{}",
        rows.join("\n")
    );
    // The odds as the page has them.
    let half = odds(&TrialsSpec::default(), 0.7, 0.0);
    assert!((0.45..0.55).contains(&half.passed), "{half:?}");
}

fn any_trial() -> impl Strategy<Value = Finished> {
    let outcome = select(vec![TrialOutcome::Pass, TrialOutcome::Miss, TrialOutcome::Invalid]);
    (outcome, any::<bool>(), prop::option::of(0..4000_i32)).prop_map(|(outcome, far, distance)| {
        let distance = distance.map(|hundredths| f64::from(hundredths) / 100.0);
        Finished {
            outcome,
            far: far && outcome == TrialOutcome::Miss,
            margins: match outcome {
                TrialOutcome::Pass => distance.into_iter().collect(),
                TrialOutcome::Miss => distance.map(|distance| -distance).into_iter().collect(),
                TrialOutcome::Invalid => Vec::new(),
            },
        }
    })
}

/// A trial reduced to its outcome.
fn plain(outcome: TrialOutcome) -> Finished {
    Finished {
        outcome,
        far: false,
        margins: Vec::new(),
    }
}

/// Specs of every rule without `trials.min`; some have too few trials to be admitted.
fn any_spec() -> impl Strategy<Value = TrialsSpec> {
    let rule = select(vec![TrialRule::Sequential, TrialRule::All, TrialRule::Single]);
    (rule, 1..=20_i32, 1..=20_i32).prop_map(|(rule, error_bound_percent, max)| TrialsSpec {
        rule,
        error_bound_percent,
        max,
        ..TrialsSpec::default()
    })
}

/// Trials until the rule has decided, and its ruling.
fn run(spec: &TrialsSpec, trials: &[Finished]) -> (usize, Ruling) {
    let mut length = 0;
    while rule(spec, &trials[..length]) == Ruling::Continue && length < trials.len() {
        length += 1;
    }
    (length, rule(spec, &trials[..length]))
}

fn status(number: i64, trial: &Finished) -> TrialState {
    TrialState {
        number,
        outcome: Some(trial.outcome),
        far: trial.far,
        margin_percent: trial.margins.first().map(|margin| format!("{margin:.2}")),
        ..TrialState::default()
    }
}

proptest! {
    #[test]
    fn a_run_never_takes_more_than_its_trials(spec in any_spec(), trials in prop::collection::vec(any_trial(), 41)) {
        let (length, ruling) = run(&spec, &trials);
        prop_assert_ne!(ruling, Ruling::Continue);
        let max = usize::try_from(spec.max).unwrap();
        let judged = trials[..length].iter().filter(|trial| trial.outcome != TrialOutcome::Invalid).count();
        let (most_judged, most) = match spec.rule {
            TrialRule::Sequential => (max, max.max(2)),
            // A trial that proved nothing is repeated.
            TrialRule::All => (max, 2 * max),
            TrialRule::Single => (1, 2),
        };
        prop_assert!(judged <= most_judged && length <= most, "{judged} judged of {length}: {:?}", &trials[..length]);
    }

    #[test]
    fn the_order_of_passes_and_misses_does_not_matter(
        spec in any_spec(),
        (trials, shuffled) in prop::collection::vec(any_trial(), 0..20)
            .prop_map(|mut trials| { trials.retain(|trial| trial.outcome != TrialOutcome::Invalid); trials })
            .prop_flat_map(|trials| (Just(trials.clone()), Just(trials).prop_shuffle())),
    ) {
        prop_assert_eq!(rule(&spec, &trials), rule(&spec, &shuffled));
    }

    #[test]
    fn one_more_pass_never_fails_a_run_and_one_more_miss_never_passes_it(spec in any_spec(), trials in prop::collection::vec(any_trial(), 0..20)) {
        let trials: Vec<Finished> = trials.into_iter().map(|trial| Finished { margins: Vec::new(), ..trial }).collect();
        let with = |outcome| {
            let mut trials = trials.clone();
            trials.push(plain(outcome));
            rule(&spec, &trials)
        };
        if rule(&spec, &trials) == Ruling::Continue {
            prop_assert_ne!(with(TrialOutcome::Pass), Ruling::Fail);
            prop_assert_ne!(with(TrialOutcome::Miss), Ruling::Pass);
            prop_assert!(matches!(with(TrialOutcome::Invalid), Ruling::Continue | Ruling::Undecided | Ruling::Unmeasurable));
        }
    }

    #[test]
    fn a_crash_after_any_trial_changes_nothing(spec in any_spec(), trials in prop::collection::vec(any_trial(), 0..41), crash in 0..41_usize) {
        // All that survives is the object in the API server.
        let (length, ruling) = run(&spec, &trials);
        let recorded: Vec<TrialState> = (1..).zip(&trials[..length.min(crash)]).map(|(number, trial)| status(number, trial)).collect();
        let survived: Vec<TrialState> = serde_json::from_str(&serde_json::to_string(&recorded).unwrap()).unwrap();
        let mut resumed = finished(&survived);
        while rule(&spec, &resumed) == Ruling::Continue && resumed.len() < trials.len() {
            resumed.push(trials[resumed.len()].clone());
        }
        prop_assert_eq!((resumed.len(), rule(&spec, &resumed)), (length, ruling));
    }

    #[test]
    fn a_trial_that_still_runs_is_not_one(spec in any_spec(), trials in prop::collection::vec(any_trial(), 0..8)) {
        let mut recorded: Vec<TrialState> = (1..).zip(&trials).map(|(number, trial)| status(number, trial)).collect();
        recorded.push(TrialState { number: 99, ..TrialState::default() });
        prop_assert_eq!(rule(&spec, &finished(&recorded)), rule(&spec, &trials));
    }

    #[test]
    fn the_error_bounds_hold_for_every_admitted_sequential_rule(error_bound_percent in 1..=20_i32, max in 6..=20_i32) {
        let bound = f64::from(error_bound_percent) / 100.0;
        let healthy = odds(&sequential(error_bound_percent, max), 0.4, 0.0);
        let degraded = odds(&sequential(error_bound_percent, max), 0.95, 0.0);
        // Wald's bounds: a wrong answer is at most e/(1-e).
        let most = bound / (1.0 - bound) + 1e-9;
        prop_assert!(healthy.failed <= most, "healthy: {healthy:?}");
        prop_assert!(degraded.passed <= most, "degraded: {degraded:?}");
    }
}

fn spec(soak: Option<&str>) -> PerfValidationSpec {
    serde_json::from_value(serde_json::json!({
        "model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1"}}, "benchmark": {"soak": soak},
    }))
    .expect("a spec")
}

#[test]
fn the_documented_spec_is_the_default_one() {
    assert_eq!(spec(None).trials, sequential(5, 8));
}

/// Trials of a status, `P` passed, `M` missed, `I` invalid; small letters are soaks.
fn recorded(letters: &str) -> Vec<TrialState> {
    let outcome = |letter: char| match letter.to_ascii_uppercase() {
        'P' => TrialOutcome::Pass,
        'I' => TrialOutcome::Invalid,
        _ => TrialOutcome::Miss,
    };
    let trial = |(number, letter): (i64, char)| TrialState {
        soak: letter.is_lowercase(),
        ..status(number, &plain(outcome(letter)))
    };
    (1..).zip(letters.chars()).map(trial).collect()
}

#[test]
fn a_soak_follows_a_pass_and_has_to_pass_too() {
    let with = spec(Some("10m"));
    for (letters, expected, next) in [
        ("", Ruling::Continue, false),
        ("P", Ruling::Continue, false),
        ("PP", Ruling::Continue, true),
        ("PPp", Ruling::Pass, true),
        // One noisy soak decides nothing: it is repeated.
        ("PPm", Ruling::Continue, true),
        ("PPmp", Ruling::Pass, true),
        ("PPmm", Ruling::Continue, true),
        ("PPmmp", Ruling::Pass, true),
        ("PPmmm", Ruling::Fail, true),
        ("PPmimm", Ruling::Fail, true),
        ("PPi", Ruling::Continue, true),
        ("PPip", Ruling::Pass, true),
        ("PPii", Ruling::Unmeasurable, true),
        ("MMMM", Ruling::Fail, false),
        ("PII", Ruling::Unmeasurable, false),
    ] {
        assert_eq!(ruling(&with, &recorded(letters)), expected, "{letters:?}");
        assert_eq!(soak_is_next(&with, &recorded(letters)), next, "{letters:?}");
    }
    assert_eq!(ruling(&spec(None), &recorded("PP")), Ruling::Pass);
    assert!(!soak_is_next(&spec(None), &recorded("PP")));
}

#[test]
fn near_a_gate_the_distances_decide_and_far_from_it_passes_and_misses() {
    let trials = |margins: &[f64]| -> Vec<Finished> {
        let trial = |margin: &f64| Finished::from_margins(vec![*margin]);
        margins.iter().map(trial).collect()
    };
    for (margins, expected) in [
        (&[30.0, 30.0][..], Ruling::Pass),
        // Two lucky trials near the gate are no pass.
        (&[1.0, 1.0], Ruling::Continue),
        (&[-1.5, 1.0, 0.5, -2.0, -2.0, -1.0, -2.0], Ruling::Continue),
        (&[-4.0, -3.0, -3.5, -4.0], Ruling::Fail),
        // Six misses and two passes by outcome, and a mean that is noise around the gate.
        (&[1.0, -0.5, -0.5, -0.5, 1.0, -0.5, -0.5, -0.5], Ruling::Undecided),
        // Stalls that end near the gate, between trials far above it.
        (&[30.0, -5.0, 30.0], Ruling::Pass),
        (&[-5.0, -6.0, 30.0, 30.0], Ruling::Pass),
        (&[-30.0, -30.0, -30.0, -30.0], Ruling::Fail),
        (&[5.0, -40.0, 5.0, 5.0], Ruling::Pass),
        // At the far end of the near range.
        (&[-9.0, -12.0, -11.0, -9.5], Ruling::Fail),
    ] {
        assert_eq!(rule(&TrialsSpec::default(), &trials(margins)), expected, "{margins:?}");
    }
}

/// All soaks a little below a gate that the trials before them had passed: noise, or a slow loss by heat.
#[test]
fn soaks_fail_a_run_where_the_same_gate_is_clearly_missed() {
    let spec = spec(Some("10m"));
    let with = |soaks: [&[&str]; 3]| {
        let mut trials = recorded("PP");
        let soak = |margins: &[&str]| TrialState {
            margins: margins.iter().map(|margin| (*margin).to_owned()).collect(),
            soak: true,
            ..status(3, &plain(TrialOutcome::Miss))
        };
        trials.extend(soaks.map(soak));
        ruling(&spec, &trials)
    };
    assert_eq!(with([&["-3", "8"], &["-4", "8"], &["-4", "8"]]), Ruling::Undecided);
    assert_eq!(with([&["-8", "8"], &["8", "-8"], &["-5", "8"]]), Ruling::Undecided);
    assert_eq!(with([&["-6", "8"], &["-5", "8"], &["-4", "8"]]), Ruling::Fail);
    assert_eq!(with([&["-40", "8"], &["8", "-30"], &["-11", "8"]]), Ruling::Fail);
}

#[test]
fn soaks_decide_the_mean_near_a_gate() {
    let mut trials = recorded("PPmmm");
    for (trial, margin) in trials.iter_mut().zip(["9", "9", "-1", "-3", "-2"]) {
        trial.margin_percent = Some(margin.into());
    }
    assert_eq!(mean_near_gate(&trials), Some(-2.0));
    assert_eq!(mean_near_gate(&trials[..2]), Some(9.0));
}

#[test]
fn correlated_misses_fail_more_healthy_runs_and_the_page_shows_how_many() {
    let page = std::fs::read_to_string("../../docs/evidence/trial-rule.md").unwrap();
    let spec = TrialsSpec::default();
    let percent = |part: f64| format!("{:.1} %", 100.0 * part);
    let rows: Vec<String> = [
        (0.95, "failed"),
        (0.9, "failed"),
        (2.0 / 3.0, "failed"),
        (0.6, "failed"),
        (0.05, "passed"),
        (0.02, "passed"),
    ]
    .into_iter()
    .map(|(rate, wrong)| {
        let found = [0.0, 0.2, 0.4].map(|correlation| {
            let odds = correlated_odds(&spec, 1.0 - rate, correlation);
            percent(if wrong == "failed" { odds.failed } else { odds.passed })
        });
        format!("| {rate:.2} | {wrong} | {} |", found.join(" | "))
    })
    .collect();
    assert!(
        page.contains(&rows.join("\n")),
        "docs/evidence/trial-rule.md shows other figures than:\n{}",
        rows.join("\n")
    );
}
