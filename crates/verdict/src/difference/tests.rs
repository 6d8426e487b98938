use perfval_testkit::random::Random;

use super::*;

/// Trials of a run with this deviation from one to the next, in a start that is this much faster.
fn trials(random: &mut Random, count: usize, deviation: f64, start: f64) -> Vec<f64> {
    (0..count)
        .map(|_| 1000.0 * (start + deviation * random.normal()).exp())
        .collect()
}

/// Parts of pairs of equal runs (percent).
fn percent(mut holds: impl FnMut() -> bool) -> f64 {
    const PAIRS: usize = 4000;
    100.0 * count((0..PAIRS).filter(|_| holds()).count()) / count(PAIRS)
}

#[test]
fn trials_of_equal_runs_lie_outside_of_the_interval_in_five_of_a_hundred_pairs_at_most() {
    let random = &mut Random(3);
    for (before, after) in [(2, 2), (2, 3), (2, 4), (3, 3), (4, 4), (8, 8)] {
        for (throughput, ttft) in [(0.01, 0.09), (0.025, 0.12), (0.043, 0.22), (0.1, 0.3)] {
            let flagged = percent(|| {
                let mut outside = |deviation: f64, noise: DifferenceNoise| {
                    let mut run = |length| {
                        let start = noise.starts * random.normal();
                        trials(random, length, deviation, start)
                    };
                    let (one, other) = (run(before), run(after));
                    compare_trials(&one, &other, noise).expect("trials").is_outside()
                };
                // Evaluates both, without a short circuit.
                outside(throughput, THROUGHPUT) | outside(ttft, TTFT_P99)
            });
            println!("{before} and {after} trials, noise {throughput} and {ttft}: {flagged:.1} % of equal pairs");
            assert!(flagged <= 5.5, "{before} {after} {throughput} {ttft}: {flagged}");
        }
    }
    assert_eq!(
        compare_trials(&[1000.0], &[900.0, 910.0], THROUGHPUT),
        None,
        "one trial does not vary"
    );
}

#[test]
fn a_loss_of_a_quarter_is_seen() {
    let random = &mut Random(5);
    let seen = percent(|| {
        let (one, other) = (trials(random, 4, 0.025, 0.0), trials(random, 4, 0.025, 0.75_f64.ln()));
        compare_trials(&one, &other, THROUGHPUT).expect("trials").is_outside()
    });
    assert!(seen > 99.0, "{seen}");
}

#[test]
fn equal_runs_of_two_starts_differ_by_more_than_the_interval_in_five_of_a_hundred_cases_at_most() {
    let random = &mut Random(9);
    for (noise, deviations) in [(THROUGHPUT, [0.025, 0.043]), (TTFT_P99, [0.12, 0.22])] {
        for deviation in deviations {
            let flagged = percent(|| {
                let (one, other) = (noise.starts * random.normal(), noise.starts * random.normal());
                let before = trials(random, 2, deviation, one);
                let mean = mean(&before);
                let after = trials(random, 2, deviation, other);
                compare_runs(mean, 2, &after, noise).expect("a mean").is_outside()
            });
            assert!(flagged <= 5.5, "{deviation}: {flagged}");
        }
    }
}
