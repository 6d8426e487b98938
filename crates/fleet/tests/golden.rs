//! The same measurements give the same bytes: a fixed fleet with three faults, assessed, beside a golden file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use perfval_fleet::findings::{Answer, Certainty, FleetRules, Known, Step, assess};
use perfval_fleet::metric::FleetMetric;
use perfval_fleet::past::Past;
use perfval_fleet::prior::prior;
use perfval_fleet::reading::{NodePass, NodeSpeeds, Speeds, Warmth};

const NODES: usize = 24;

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

/// Node 3 has a slow GPU, node 7 is slow, node 11 is cold, node 15 misses a gate.
fn node(at: usize, trials: usize) -> NodePass {
    let factor = |index: usize| match (at, index) {
        (3, 0) | (7, _) => 0.88,
        (11, _) => 0.92,
        _ => 1.0,
    };
    let gpus = (0..8).map(|index| (format!("GPU-{at:02}-{index}"), gpu(at, index, trials, factor(index))));
    let speeds = NodeSpeeds {
        gpus: gpus.collect(),
        whole: Speeds {
            trials: Vec::new(),
            past: gpu(0, 0, 1, 1.0).past,
        },
    };
    NodePass {
        group: Some(format!("rack-{}", at / 6)),
        warmth: if at == 11 { Warmth::Cold } else { Warmth::Warm },
        missed_gate: at == 15,
        metrics: BTreeMap::from([(FleetMetric::DecodeSpeed, speeds)]),
    }
}

fn assessed(
    screen: &BTreeMap<String, NodePass>,
    fresh: &BTreeMap<String, NodePass>,
) -> perfval_fleet::findings::Assessment {
    let spread = prior("NVIDIA-H100-80GB-HBM3").spread;
    assess(&FleetRules::default(), &Known::new(spread), screen, fresh)
}

#[test]
fn the_same_measurements_give_the_same_bytes() {
    let name = |at: usize| format!("node-{at:02}");
    let screen: BTreeMap<String, NodePass> = (0..NODES).map(|at| (name(at), node(at, 1))).collect();
    let first = assessed(&screen, &BTreeMap::new());
    let suspected = first.nodes.iter().filter(|(_, node)| node.step == Step::Confirm);
    let suspected: Vec<&String> = suspected.map(|(name, _)| name).collect();
    assert_eq!(suspected, ["node-03", "node-07"]);
    let fresh: BTreeMap<String, NodePass> = [3, 7].map(|at| (name(at), node(at, 3))).into();
    let found = assessed(&screen, &fresh);
    assert_eq!(format!("{found:?}"), format!("{:?}", assessed(&screen, &fresh)));

    let answers = |at: usize| -> Vec<(Answer, Certainty, Option<String>)> {
        let findings = found.nodes[&name(at)].findings.iter();
        findings
            .map(|finding| (finding.answer, finding.certainty, finding.gpu.clone()))
            .collect()
    };
    assert_eq!(
        answers(3),
        [(Answer::SlowerThanItself, Certainty::Act, Some("GPU-03-0".to_owned()))]
    );
    assert_eq!(answers(7), [(Answer::SlowerThanItself, Certainty::Act, None)]);
    assert_eq!(answers(11), []);
    assert_eq!(answers(15), [(Answer::BelowGate, Certainty::Act, None)]);
    for not_learned in [3, 7, 11, 15] {
        assert!(found.nodes[&name(not_learned)].pasts.is_empty(), "node {not_learned}");
    }

    let mut text = String::new();
    for (name, node) in &found.nodes {
        let percent = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
        let (itself, peers) = (percent(node.percent_of_itself), percent(node.percent_of_peers));
        let _ = write!(
            text,
            "{name} itself {itself} peers {peers} detectable {}",
            percent(node.detectable_percent)
        );
        for finding in &node.findings {
            let q = finding.q.map_or("-".to_owned(), |q| format!("{q:.2e}"));
            let _ = write!(
                text,
                " | {:?} {:?} {:?} {} q {q}",
                finding.answer,
                finding.certainty,
                finding.gpu,
                percent(finding.percent)
            );
        }
        let pasts = node
            .pasts
            .values()
            .map(|next| serde_json::to_string(&next.whole).expect("JSON"));
        let _ = writeln!(text, " {}", pasts.collect::<String>());
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
fn a_shift_of_all_nodes_blames_none_and_lowers_a_missed_gate() {
    let slower = |at: usize| {
        let mut pass = node(if at == 11 { 0 } else { at }, 1);
        for gpu in pass.metrics.values_mut().flat_map(|speeds| speeds.gpus.values_mut()) {
            gpu.trials.iter_mut().for_each(|speed| *speed *= 0.94);
        }
        (format!("node-{at:02}"), pass)
    };
    let screen: BTreeMap<String, NodePass> = (0..NODES).map(slower).collect();
    let found = assessed(&screen, &screen);
    assert!(found.shifts[&FleetMetric::DecodeSpeed].is_environment);
    let findings: Vec<_> = found.nodes.values().flat_map(|node| &node.findings).collect();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(
        (findings[0].answer, findings[0].certainty),
        (Answer::BelowGate, Certainty::Report)
    );
}

#[test]
#[ignore = "a measurement: run it with --release and look at the time (goal: 1 s)"]
fn forty_thousand_gpus_with_four_metrics() {
    let screen: BTreeMap<String, NodePass> = (0..5000).map(|at| (format!("node-{at:04}"), node(at, 1))).collect();
    let begin = std::time::Instant::now();
    for _ in 0..4 {
        assert_eq!(assessed(&screen, &BTreeMap::new()).nodes.len(), 5000);
    }
    println!("{:.2} s for four metrics", begin.elapsed().as_secs_f64());
}
