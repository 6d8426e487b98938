//! Normal speeds that are learned from passes.

use std::collections::BTreeMap;

use perfval_fleet::baseline::Baseline;
use perfval_fleet::past::Past;
use perfval_fleet::prior::prior;
use perfval_fleet::reading::{NodePass, Speeds};

fn node(speeds: &[f64]) -> NodePass {
    let gpus = speeds.iter().enumerate().map(|(at, speed)| {
        let trials = vec![*speed];
        let past = Past::default();
        (format!("GPU-{at}"), Speeds { trials, past })
    });
    NodePass {
        gpus: gpus.collect(),
        ..NodePass::default()
    }
}

/// Twelve nodes within 1 % of a speed.
fn nodes(speed: f64) -> BTreeMap<String, NodePass> {
    let node = |at: u32| {
        let whole = speed * (1.0 + 0.002 * (f64::from(at * 5 % 12) - 5.5));
        let gpus: Vec<f64> = (0..8)
            .map(|gpu| whole * (1.0 + 0.001 * (f64::from(gpu) - 3.5)))
            .collect();
        (format!("n{at:02}"), node(&gpus))
    };
    (0..12).map(node).collect()
}

#[test]
fn faulty_nodes_are_left_out_and_counted_and_few_nodes_are_provisional() {
    let speeds = [99.0, 100.0, 101.0, 100.0, 99.5, 100.5, 100.0, 100.0];
    let mut passes: BTreeMap<String, NodePass> = ["a", "b"].map(|name| (name.to_owned(), node(&speeds))).into();
    let mut faulty = node(&[50.0; 8]);
    faulty.is_unsound = true;
    passes.insert("c".to_owned(), faulty);
    let found = Baseline::learn(&passes).expect("a baseline");
    assert_eq!((found.nodes, found.gpus, found.excluded), (2, 16, 1));
    assert!(found.is_provisional());
    passes.insert("d".to_owned(), node(&speeds));
    let found = Baseline::learn(&passes).expect("a baseline");
    assert!(!found.is_provisional());
    let norm = &found.norm;
    assert!((norm.centre - 100.0).abs() < 0.1, "{norm:?}");
    assert_eq!(Baseline::learn(&BTreeMap::new()), None);
}

#[test]
fn a_node_far_from_the_others_is_left_out_and_does_not_widen_the_spread() {
    let healthy = Baseline::learn(&nodes(100.0)).expect("a baseline");
    let mut passes = nodes(100.0);
    passes.insert("slow".to_owned(), node(&[85.0; 8]));
    let found = Baseline::learn(&passes).expect("a baseline");
    assert_eq!((found.nodes, found.gpus, found.excluded), (12, 96, 1));
    assert_eq!(found.norm, healthy.norm);
    let norm = &found.norm;
    assert!(
        norm.node_percent.is_some_and(|percent| (0.5..1.0).contains(&percent)),
        "{norm:?}"
    );
}

#[test]
fn nodes_that_are_all_slower_have_shifted_and_one_slow_node_has_not() {
    let spread = prior("NVIDIA H100");
    let baseline = Baseline::learn(&nodes(100.0)).expect("a baseline");
    let norm = &baseline.norm;
    let shift = |passes| norm.compare(&passes, &spread);
    assert!(shift(nodes(94.0)).is_environment);
    assert!(shift(nodes(106.0)).is_environment, "faster nodes too");
    assert!(!shift(nodes(98.5)).is_environment);
    let mut one_slow = nodes(100.0);
    one_slow.insert("slow".to_owned(), node(&[70.0; 8]));
    assert!(!shift(one_slow).is_environment);
    let two = BTreeMap::from(["a", "b"].map(|name| (name.to_owned(), node(&[80.0; 8]))));
    let found = shift(two);
    assert_eq!(
        (found.nodes, found.is_environment),
        (0, false),
        "of two nodes either may be the faulty one"
    );
}
