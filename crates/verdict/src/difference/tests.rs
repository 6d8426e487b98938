use super::*;

/// xorshift64*, and the sum of twelve numbers for a normal one.
struct Random(u64);

impl Random {
    fn normal(&mut self) -> f64 {
        let uniform = |state: &mut u64| {
            *state ^= *state >> 12;
            *state ^= *state << 25;
            *state ^= *state >> 27;
            let bits = state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
            f64::from(u32::try_from(bits).expect("32 bits")) / f64::from(u32::MAX)
        };
        (0..12).map(|_| uniform(&mut self.0)).sum::<f64>() - 6.0
    }

    /// Trials of a run with this deviation from one to the next, in a start that is this much faster.
    fn trials(&mut self, count: usize, deviation: f64, start: f64) -> Vec<f64> {
        (0..count)
            .map(|_| 1000.0 * (start + deviation * self.normal()).exp())
            .collect()
    }
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
                    let mut run = |trials| {
                        let start = noise.starts * random.normal();
                        random.trials(trials, deviation, start)
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
        let (one, other) = (random.trials(4, 0.025, 0.0), random.trials(4, 0.025, 0.75_f64.ln()));
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
                let before = random.trials(2, deviation, one);
                let mean = mean(&before);
                let after = random.trials(2, deviation, other);
                compare_runs(mean, 2, &after, noise).expect("a mean").is_outside()
            });
            assert!(flagged <= 5.5, "{deviation}: {flagged}");
        }
    }
}
