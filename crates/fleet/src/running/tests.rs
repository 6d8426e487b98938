use super::*;

const PRODUCT: &str = "NVIDIA H100";

/// One GPU after these runs.
fn after(speeds: &[f64]) -> Running {
    let (mut known, deviations) = (Running::new(Some("0123")), Deviations::new(PRODUCT, 1));
    for speed in speeds {
        let learned = learn_run(vec![(known, Vec::new())], &mut SharedPast::default(), None, deviations);
        let mut gpus = vec![(learned[0].0.clone(), vec![speed.ln()])];
        add_run(&mut gpus, false);
        known = gpus.remove(0).0;
    }
    known
}

fn confirm(known: &Running, speed: f64) -> Option<Running> {
    Some(confirm_run(&[(known.clone(), vec![speed.ln()])], false)?.remove(0).0)
}

#[test]
fn the_newest_run_is_compared_with_the_past_before_it() {
    let speeds = [100.0, 103.0, 98.0, 101.0, 99.0, 50.0];
    let found = after(&speeds);
    assert_eq!(
        found.past(),
        after(&speeds[..5])
            .learn(NodeRun::default(), Deviations::new(PRODUCT, 1))
            .past()
    );
    let stored = found.to_text().expect("JSON");
    assert_eq!((found.past.count, found.count_runs()), (5, 6));
    assert_eq!(Running::read(&stored, Some("0123")), Some(found.clone()));
    assert_eq!(found.newest(), Some((vec![round(50.0_f64.ln())], [].as_slice())));
}

#[test]
fn the_trials_of_a_run_count_as_their_mean() {
    let known = after(&[100.0; 5]).learn(NodeRun::default(), Deviations::new(PRODUCT, 1));
    let trials = vec![96.0_f64.ln(), 90.0_f64.ln(), 93.0_f64.ln()];
    let mean = trials.iter().sum::<f64>() / 3.0;
    assert!((known.compare(&trials).expect("five runs") - 100.0 * (mean - 100.0_f64.ln()).exp()).abs() < 1e-2);
    let mut gpus = vec![(known, trials)];
    add_run(&mut gpus, false);
    let found = gpus.remove(0).0;
    let stored = found.to_text().expect("JSON");
    assert_eq!(Running::read(&stored, Some("0123")), Some(found.clone()));
    let learned = found.learn(NodeRun::default(), Deviations::new(PRODUCT, 1)).past;
    let expected = (5.0 * 100.0_f64.ln() + mean) / 6.0;
    assert!((learned.mean - expected).abs() < 1e-4, "{learned:?} {expected}");
}

#[test]
fn a_loss_that_two_deployments_show_is_not_learned() {
    let deviations = Deviations::new(PRODUCT, 1);
    let slow = after(&[100.0, 100.0, 100.0, 100.0, 100.0, 90.0]);
    let confirmed = confirm(&slow, 91.0)
        .expect("a run to confirm")
        .learn(NodeRun::default(), deviations);
    assert_eq!((confirmed.past, confirmed.skipped), (slow.past, 1));
    let refuted = confirm(&slow, 100.0)
        .expect("a run to confirm")
        .learn(NodeRun::default(), deviations);
    assert_eq!(refuted.past.count, 6, "noise is learned");
    let few = after(&[110.0, 100.0]);
    let few = confirm(&few, 100.0)
        .expect("a run to confirm")
        .learn(NodeRun::default(), deviations);
    assert_eq!(few.past.count, 2, "so is a loss beside a single run");
    assert!(refuted.past.mean < slow.past.mean);
    assert_eq!(
        slow.clone().learn(NodeRun::default(), deviations).past,
        refuted.past,
        "so is a loss without a confirmation"
    );
    assert!(confirm(&confirmed, 91.0).is_none() && confirm(&refuted, 91.0).is_none());
}

#[test]
fn a_first_run_far_from_the_next_ones_does_not_count() {
    let deviations = Deviations::new(PRODUCT, 1);
    for speeds in [
        &[160.0, 100.0, 100.0][..],
        &[100.0, 60.0, 100.0, 100.0, 100.0, 100.0, 100.0],
    ] {
        let found = learn_run(
            vec![(after(speeds), Vec::new())],
            &mut SharedPast::default(),
            None,
            deviations,
        );
        let found = &found[0].0;
        assert!((found.past.mean - 100.0_f64.ln()).abs() < 2e-2, "{found:?}");
        assert!(found.past.excess(deviations.beside.powi(2)) < 2.0, "{found:?}");
    }
    assert!(after(&[100.0; 7]).first.is_empty());
}

#[test]
fn a_run_has_three_confirmations_and_the_last_one_counts() {
    let deviations = Deviations::new(PRODUCT, 1);
    let slow = after(&[100.0, 100.0, 100.0, 90.0]);
    let first = confirm(&slow, 91.0).expect("a run to confirm");
    let second = confirm(&first, 91.0).expect("a run to confirm");
    let third = confirm(&second, 100.0).expect("a run to confirm");
    let counts = [&slow, &first, &second, &third].map(Running::confirmations);
    assert_eq!(counts, [0, 1, 2, 3]);
    assert_eq!(
        third.clone().learn(NodeRun::default(), deviations).past.count,
        4,
        "noise is learned"
    );
    assert!(confirm(&third, 91.0).is_none());
    let stored = third.to_text().expect("JSON");
    assert_eq!(Running::read(&stored, Some("0123")), Some(third));
}

#[test]
fn a_change_that_all_gpus_share_is_no_residual_of_one() {
    let known = after(&[100.0, 100.0]).learn(NodeRun::default(), Deviations::new(PRODUCT, 2));
    let speeds = [90.0_f64, 90.0, 80.0];
    let mut gpus: Vec<(Running, Vec<f64>)> = speeds.iter().map(|speed| (known.clone(), vec![speed.ln()])).collect();
    add_run(&mut gpus, false);
    let residual = |at: usize| gpus[at].0.newest.as_ref().expect("a run").r;
    assert!((residual(2) - (80.0_f64 / 90.0).ln()).abs() < 2e-4);
    assert!((residual(0) - 0.5 * (90.0_f64 / 80.0).ln()).abs() < 2e-4);
}

#[test]
fn a_confirmation_settles_a_drift() {
    let deviations = Deviations::new(PRODUCT, 1);
    let mut drifting = after(&[100.0; 30]);
    drifting.past.cusum = 9.0;
    assert!(drifting.clone().learn(NodeRun::default(), deviations).past.cusum > 8.0);
    let settled = confirm(&drifting, 100.0)
        .expect("a run to confirm")
        .learn(NodeRun::default(), deviations);
    assert!(settled.past.cusum < 6.0, "{settled:?}");
    let shown = confirm(&drifting, 97.0)
        .expect("a run to confirm")
        .learn(NodeRun::default(), deviations);
    assert!(shown.past.cusum > 8.0, "the loss is still there");
}
