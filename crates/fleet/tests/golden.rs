//! The same measurements give the same bytes: a fixed fleet with three faults, assessed, beside a golden file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use perfval_api::fleet::ComparisonRules;
use perfval_api::fleet::OutlierConfidence::{Actionable, Suspected};
use perfval_api::fleet::OutlierReason::SlowerThanItself;
use perfval_fleet::findings::{Assessment, assess};
use perfval_fleet::past::Past;
use perfval_fleet::prior::prior;
use perfval_fleet::reading::{NodePass, Speeds};

const NODES: usize = 80;

/// Noise without chance: between -1 and 1.
fn noise(at: usize) -> f64 {
    let step = u32::try_from(at * 7919 % 101).expect("a small number");
    f64::from(step) / 50.0 - 1.0
}

fn gpu(node: usize, gpu: usize, trials: usize, factor: f64) -> Speeds {
    let trial = |trial: usize| 100.0 * factor * (1.0 + 0.01 * noise(node * 64 + gpu * 8 + trial));
    Speeds {
        trials: (0..trials).map(trial).collect(),
        past: Past {
            count: 8,
            mean: 100.0_f64.ln(),
            m2: 0.0007,
            cusum: 0.0,
        },
    }
}

/// Node 3 has a slow GPU, node 7 is slow, node 11 is slow and cold.
fn node(at: usize, trials: usize) -> NodePass {
    let factor = |index: usize| match (at, index) {
        (3, 0) | (7 | 11, _) => 0.88,
        _ => 1.0,
    };
    let gpus = (0..8).map(|index| (format!("GPU-{at:02}-{index}"), gpu(at, index, trials, factor(index))));
    NodePass {
        is_cold: at == 11,
        confirmations: u32::from(trials > 1),
        past: gpu(0, 0, 1, 1.0).past,
        gpus: gpus.collect(),
        ..NodePass::default()
    }
}

fn name(at: usize) -> String {
    format!("node-{at:02}")
}

fn assessed(screen: &BTreeMap<String, NodePass>, fresh: &BTreeMap<String, NodePass>) -> Assessment {
    let spread = prior("NVIDIA-H100-80GB-HBM3");
    assess(&ComparisonRules::default(), &spread, None, screen, fresh, |_| true)
}

fn count(fresh: &mut BTreeMap<String, NodePass>, confirmations: u32) {
    for pass in fresh.values_mut() {
        pass.confirmations = confirmations;
    }
}

fn unconfirmed(found: &Assessment) -> Vec<&str> {
    let nodes = found.nodes.iter().filter(|(_, node)| node.is_unconfirmed);
    nodes.map(|(name, _)| name.as_str()).collect()
}

#[test]
fn the_same_measurements_give_the_same_bytes() {
    let screen: BTreeMap<String, NodePass> = (0..NODES).map(|at| (name(at), node(at, 1))).collect();
    let first = assessed(&screen, &BTreeMap::new());
    assert_eq!(unconfirmed(&first), ["node-03", "node-07", "node-11"]);
    let fresh: BTreeMap<String, NodePass> = [3, 7, 11].map(|at| (name(at), node(at, 3))).into();
    let found = assessed(&screen, &fresh);
    assert_eq!(format!("{found:?}"), format!("{:?}", assessed(&screen, &fresh)));

    let loss = |found: &Assessment, at: usize| {
        let loss = found.nodes[&name(at)].loss.clone().expect("a loss");
        (loss.reason, loss.confidence, loss.gpu)
    };
    let slow_gpu = Some("GPU-03-0".to_owned());
    assert_eq!(
        unconfirmed(&found),
        ["node-03", "node-07", "node-11"],
        "the first confirmation only chooses"
    );
    assert_eq!(loss(&found, 3).1, Suspected);
    let mut twice = fresh;
    count(&mut twice, 2);
    let found = assessed(&screen, &twice);
    assert_eq!(loss(&found, 3), (SlowerThanItself, Actionable, slow_gpu));
    assert_eq!(loss(&found, 7), (SlowerThanItself, Actionable, None));
    assert_eq!(loss(&found, 11), (SlowerThanItself, Actionable, None));
    assert_eq!(unconfirmed(&found), Vec::<&str>::new());

    let mut text = String::new();
    for (name, node) in &found.nodes {
        let _ = match &node.loss {
            Some(loss) => writeln!(
                text,
                "{name} {:?} {:?} {:?} {:.3}",
                loss.reason, loss.confidence, loss.gpu, loss.percent
            ),
            None => writeln!(text, "{name}"),
        };
    }
    let path = Path::new("tests/golden/assessment.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all("tests/golden").expect("a folder");
        std::fs::write(path, &text).expect("the golden file");
    }
    assert_eq!(
        std::fs::read_to_string(path).unwrap_or_default(),
        text,
        "run `UPDATE_GOLDEN=1 just unit -p perfval-fleet` and look"
    );
}

#[test]
fn of_few_nodes_two_new_deployments_show_a_loss() {
    let screen: BTreeMap<String, NodePass> = [1, 2, 7].map(|at| (name(at), node(at, 1))).into();
    let mut fresh: BTreeMap<String, NodePass> = BTreeMap::from([(name(7), node(7, 3))]);
    let confidence = |found: &Assessment| found.nodes[&name(7)].loss.as_ref().map(|loss| loss.confidence);
    let once = assessed(&screen, &fresh);
    assert_eq!(
        (confidence(&once), unconfirmed(&once)),
        (Some(Suspected), vec!["node-07"])
    );
    count(&mut fresh, 2);
    let twice = assessed(&screen, &fresh);
    assert_eq!((confidence(&twice), unconfirmed(&twice)), (Some(Actionable), vec![]));
}

#[test]
fn few_noisy_nodes_with_one_gpu_are_not_confirmed_for_ever() {
    let node = |speed: f64, confirmations: u32| NodePass {
        confirmations,
        gpus: BTreeMap::from([(
            "GPU".to_owned(),
            Speeds {
                trials: vec![speed; 5],
                past: Past::default(),
            },
        )]),
        ..NodePass::default()
    };
    let speeds = [100.0, 78.0, 118.0, 109.0];
    let screen: BTreeMap<String, NodePass> = (0..4).map(|at| (name(at), node(speeds[at], 0))).collect();
    let first = assessed(&screen, &BTreeMap::new());
    assert_eq!(unconfirmed(&first), ["node-01"]);
    let fresh = BTreeMap::from([(name(1), node(95.0, 1))]);
    let found = assessed(&screen, &fresh);
    assert_eq!(unconfirmed(&found), Vec::<&str>::new());
    let loss = found.nodes[&name(1)].loss.as_ref().expect("neither healthy nor slow");
    assert_eq!(loss.confidence, Suspected);
    let as_fast = BTreeMap::from([(name(1), node(112.0, 1))]);
    assert_eq!(
        assessed(&screen, &as_fast).nodes[&name(1)].loss,
        None,
        "no slower than its peers"
    );
}

#[test]
fn a_shift_of_all_nodes_blames_no_node_and_hides_no_gpu() {
    let slower = |at: usize| {
        let mut pass = node(if at == 11 { 0 } else { at }, 1);
        for gpu in pass.gpus.values_mut() {
            gpu.trials.iter_mut().for_each(|speed| *speed *= 0.94);
        }
        (name(at), pass)
    };
    let screen: BTreeMap<String, NodePass> = (0..NODES).map(slower).collect();
    let mut fresh = screen.clone();
    count(&mut fresh, 2);
    let found = assessed(&screen, &fresh);
    let shift = found.shift.expect("a shift");
    assert!(shift.nodes == NODES && shift.value < -0.05, "{shift:?}");
    let losses: Vec<_> = found
        .nodes
        .iter()
        .filter_map(|(name, node)| Some((name.as_str(), node.loss.as_ref()?.gpu.as_deref())))
        .collect();
    assert_eq!(losses, [("node-03", Some("GPU-03-0"))]);
}

#[test]
#[ignore = "a measurement: run it with --release and look at the time (goal: 1 s)"]
fn forty_thousand_gpus() {
    let screen: BTreeMap<String, NodePass> = (0..5000).map(|at| (format!("node-{at:04}"), node(at, 1))).collect();
    let begin = std::time::Instant::now();
    assert_eq!(assessed(&screen, &BTreeMap::new()).nodes.len(), 5000);
    println!("{:.2} s", begin.elapsed().as_secs_f64());
}
