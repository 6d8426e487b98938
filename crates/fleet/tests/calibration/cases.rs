//! Cases: each plays whole passes and counts right and wrong answers.

use std::collections::BTreeMap;

use perfval_fleet::baseline::Baseline;
use perfval_fleet::findings::{Answer, Assessment, Certainty, FleetFinding};
use perfval_fleet::metric::FleetMetric;
use perfval_fleet::prior::Spread;
use perfval_fleet::reading::NodePass;

use crate::tally::{Goal, Tally, share};
use crate::world::{Fault, Fleet, GPUS, QUIET, Shape, USUAL, name, slow_gpu, word};

/// Passes for which a drift is followed.
const LONGEST: usize = 25;

/// Findings of statistics; a gate's is none of them.
fn findings(assessment: &Assessment) -> impl Iterator<Item = (&str, &FleetFinding)> {
    let nodes = assessment.nodes.iter();
    let all = nodes.flat_map(|(name, node)| node.findings.iter().map(move |finding| (name.as_str(), finding)));
    all.filter(|(_, finding)| finding.answer != Answer::BelowGate)
}

/// Counts of healthy passes.
#[derive(Clone, Copy, Default)]
pub struct Healthy {
    /// Node-passes at the level that acts.
    pub acted: Tally,
    /// Node-passes that are reported.
    pub reported: Tally,
    /// Alarms of CUSUMs, over all subjects and passes.
    pub alarms: Tally,
    /// Trials per node and pass.
    pub trials: f64,
    /// Passes in which the p-values were called poor.
    pub poor: Tally,
}

/// Healthy fleet of 250 nodes, 5 passes learned and 40 counted.
pub fn healthy(shape: Shape) -> Healthy {
    let mut fleet = Fleet::new(250, USUAL, shape, 1).learn(5);
    let mut found = Healthy::default();
    let (mut trials, mut measured) = (0, 0);
    for _ in 0..40 {
        let passed = fleet.pass(&|_| Fault::None);
        trials += passed.trials;
        measured += fleet.len();
        let nodes = passed.assessment.nodes.values();
        found.alarms.hits += nodes.map(|node| node.drifting.len()).sum::<usize>();
        // Eight GPUs and the node in the decode speed, and the node in the throughput.
        found.alarms.of += fleet.len() * (GPUS + 2);
        found.poor.add(passed.assessment.calibration.is_poor);
        let reported = findings(&passed.assessment).count();
        let acted = findings(&passed.assessment)
            .filter(|(_, finding)| finding.certainty == Certainty::Act)
            .count();
        found.reported.hits += reported;
        found.acted.hits += acted;
        found.reported.of += fleet.len();
        found.acted.of += fleet.len();
    }
    found.trials = share(trials, measured);
    found
}

/// Fleet with a fault in one of a hundred nodes.
#[derive(Clone, Copy)]
pub struct Faulty {
    pub shape: Shape,
    pub spread: Spread,
    pub fault: Fault,
    /// Passes that were learned before.
    pub runs: usize,
    /// Passes counted, over all histories.
    pub passes: usize,
    /// Share of the faulty nodes that should be reported.
    pub goal: Goal,
}

/// Counts of passes with faults.
#[derive(Clone, Copy, Default)]
pub struct Found {
    /// Faulty nodes that are reported, with the right subject.
    pub reported: Tally,
    /// Faulty nodes at the level that acts.
    pub acted: Tally,
    /// Reported names that are wrong.
    pub wrong: Tally,
    /// Names at the level that acts that are wrong.
    pub wrong_acted: Tally,
}

impl Faulty {
    pub fn play(&self) -> Found {
        const NODES: usize = 200;
        const HISTORIES: usize = 2;
        let mut found = Found::default();
        for history in 0..HISTORIES {
            let learned = Fleet::new(NODES, self.spread, self.shape, 100 + history as u64).learn(self.runs);
            for pass in 0..self.passes / HISTORIES {
                let mut fleet = learned.clone();
                // Another pass of the same fleet.
                (0..=pass).for_each(|_| {
                    fleet.dice.below(1000);
                });
                let bad = [fleet.dice.below(NODES / 2), NODES / 2 + fleet.dice.below(NODES / 2)];
                let passed = fleet.pass(&|at| if bad.contains(&at) { self.fault } else { Fault::None });
                self.count(&fleet, &passed.assessment, bad, &mut found);
            }
        }
        found
    }

    /// Fault and past in words.
    pub fn describe(&self) -> String {
        let fault = match self.fault {
            Fault::Gpu(percent) => format!("one GPU {percent} % slower"),
            Fault::Node(percent) | Fault::Cold(percent) => format!("a node {percent} % slower"),
            Fault::None => "no fault".to_owned(),
        };
        match self.runs {
            0 => format!("{fault}, peers alone"),
            runs => format!("{fault}, {runs} own runs"),
        }
    }

    pub fn fleet(&self) -> &'static str {
        word(self.spread)
    }

    fn count(&self, fleet: &Fleet, assessment: &Assessment, bad: [usize; 2], found: &mut Found) {
        let right = |node: &str, finding: &FleetFinding| {
            bad.iter().any(|at| {
                let gpu = matches!(self.fault, Fault::Gpu(_)).then(|| slow_gpu(*at));
                node == name(*at) && finding.gpu == gpu
            })
        };
        for (node, finding) in findings(assessment) {
            let is_wrong = !right(node, finding) && !is_true(fleet, node, finding);
            found.wrong.add(is_wrong);
            if finding.certainty == Certainty::Act {
                found.wrong_acted.add(is_wrong);
            }
        }
        for at in bad {
            let of_node = || findings(assessment).filter(|(node, finding)| *node == name(at) && right(node, finding));
            found.reported.add(of_node().count() > 0);
            found
                .acted
                .add(of_node().any(|(_, finding)| finding.certainty == Certainty::Act));
        }
    }
}

/// True for a report of healthy silicon that is slow.
fn is_true(fleet: &Fleet, node: &str, finding: &FleetFinding) -> bool {
    finding.answer == Answer::SlowerThanPeers && fleet.is_slower_than_peers(node, finding.gpu.as_deref())
}

/// Passes until a drift of 3 % is named, after 20 healthy passes: the median and the 95th of 100.
pub fn drift(fault: Fault, spread: Spread) -> (usize, usize) {
    let mut passes = Vec::new();
    for seed in 7..9 {
        let mut fleet = Fleet::new(120, spread, Shape::Gaussian, seed).learn(20);
        let mut first: BTreeMap<usize, usize> = (0..fleet.len()).step_by(12).map(|at| (at, LONGEST + 1)).collect();
        for pass in 1..=LONGEST {
            let round = fleet.pass(&|at| if at % 12 == 0 { fault } else { Fault::None });
            for (at, first) in &mut first {
                let node = &round.assessment.nodes[&name(*at)];
                let right = |gpu: &Option<String>| gpu.is_some() == matches!(fault, Fault::Gpu(_));
                let drifts = node.drifting.iter().any(|(_, gpu)| right(gpu));
                if drifts || node.findings.iter().any(|finding| right(&finding.gpu)) {
                    *first = pass.min(*first);
                }
            }
        }
        passes.extend(first.into_values());
    }
    passes.sort_unstable();
    (passes[passes.len() / 2], passes[passes.len() * 95 / 100])
}

/// A common shift of all nodes: passes that attribute it to the environment, and nodes that are blamed.
pub fn shifted(percent: f64, shape: Shape) -> (Tally, Tally) {
    let (mut attributed, mut blamed) = (Tally::default(), Tally::default());
    let learned = Fleet::new(100, USUAL, shape, 21).learn(6);
    for pass in 0..60_usize {
        let mut fleet = learned.clone();
        (0..=pass).for_each(|_| {
            fleet.dice.below(1000);
        });
        let passed = fleet.pass(&|_| Fault::Node(percent));
        attributed.add(passed.assessment.shifts.values().any(|shift| shift.is_environment));
        blamed.hits += findings(&passed.assessment).count();
        blamed.of += fleet.len();
    }
    (attributed, blamed)
}

/// A rack of 20 nodes 8 % slower: passes that name the rack and no other, and nodes that are blamed.
pub fn racked(shape: Shape) -> (Tally, Tally) {
    let (mut named, mut blamed) = (Tally::default(), Tally::default());
    let learned = Fleet::new(200, USUAL, shape, 31).learn(6);
    for pass in 0..60_usize {
        let mut fleet = learned.clone();
        (0..=pass).for_each(|_| {
            fleet.dice.below(1000);
        });
        let passed = fleet.pass(&|at| if at / 20 == 4 { Fault::Node(8.0) } else { Fault::None });
        let groups: Vec<&str> = passed
            .assessment
            .groups
            .iter()
            .map(|group| group.group.as_str())
            .collect();
        named.add(groups == ["rack-4"]);
        blamed.hits += findings(&passed.assessment).count();
        blamed.of += fleet.len();
    }
    (named, blamed)
}

/// Healthy machines on their first run, 5 to 9 % slower because they are cold: those that are blamed.
pub fn cold(shape: Shape) -> Tally {
    let mut blamed = Tally::default();
    for seed in 0..20_u64 {
        let mut fleet = Fleet::new(40, USUAL, shape, 400 + seed).learn(5);
        let losses: Vec<f64> = (0..20).map(|_| fleet.dice.uniform(5.0, 9.0)).collect();
        let passed = fleet.pass(&|at| losses.get(at).map_or(Fault::None, |percent| Fault::Cold(*percent)));
        for at in 0..20 {
            blamed.add(findings(&passed.assessment).any(|(node, _)| node == name(at)));
        }
    }
    blamed
}

/// Fleets of a few nodes without a past: fleets with a false name, and slow nodes that are found.
pub fn few(nodes: usize, shape: Shape, fault: Fault, fleets: u64) -> (Tally, Tally) {
    let (mut wrong, mut right) = (Tally::default(), Tally::default());
    for seed in 0..fleets {
        let mut fleet = Fleet::new(nodes, USUAL, shape, 1000 + seed);
        let passed = fleet.pass(&|at| if at == 1 { fault } else { Fault::None });
        let faulty = |node: &str| fault != Fault::None && node == name(1);
        let is_wrong = |(node, finding): (&str, &FleetFinding)| !faulty(node) && !is_true(&fleet, node, finding);
        wrong.add(findings(&passed.assessment).any(is_wrong));
        right.add(findings(&passed.assessment).any(|(node, _)| faulty(node)));
    }
    (wrong, right)
}

/// Baselines from this many nodes of which a tenth is 10 % slower: those whose centre lies more than 0.5 % from that of the
/// healthy ones alone.
pub fn baselines(nodes: usize, shape: Shape) -> Tally {
    let mut off = Tally::default();
    for seed in 0..60 {
        let mut fleet = Fleet::new(nodes, USUAL, shape, 3000 + seed);
        let all: Vec<usize> = (0..nodes).collect();
        let passes = fleet.measure(&all, 1, &|at| {
            if at % 10 == 0 { Fault::Node(10.0) } else { Fault::None }
        });
        let learn = |only_healthy: bool| {
            let used = passes
                .iter()
                .enumerate()
                .filter(|(at, _)| !only_healthy || at % 10 != 0);
            let sample = |(_, (name, pass)): (usize, (&String, &NodePass))| (name.clone(), pass.clone());
            let baseline = Baseline::learn(&used.map(sample).collect()).expect("a baseline");
            baseline.metrics[&FleetMetric::DecodeSpeed].centre
        };
        off.add((learn(false) / learn(true)).ln().abs() > 0.005);
    }
    off
}

/// Cases of power, in the order of the page.
pub fn faulty_cases() -> Vec<Faulty> {
    let mut cases = Vec::new();
    let mut add = |shape, spread, faults: [Fault; 2], runs, passes, goal| {
        cases.extend(faults.map(|fault| Faulty {
            shape,
            spread,
            fault,
            runs,
            passes,
            goal,
        }));
    };
    let large = [Fault::Gpu(10.0), Fault::Node(10.0)];
    let small = [Fault::Gpu(5.0), Fault::Node(5.0)];
    add(Shape::Gaussian, QUIET, large, 5, 50, Goal::Sure(0.99, 0.97));
    add(Shape::Gaussian, USUAL, large, 5, 50, Goal::Sure(0.99, 0.97));
    add(Shape::Heavy, QUIET, large, 5, 50, Goal::Sure(0.99, 0.97));
    add(Shape::Heavy, USUAL, large, 5, 30, Goal::Sure(0.99, 0.97));
    add(Shape::Recorded, USUAL, large, 5, 30, Goal::Sure(0.99, 0.97));
    add(Shape::Gaussian, QUIET, large, 0, 50, Goal::AtLeast(0.95));
    add(Shape::Gaussian, QUIET, small, 8, 24, Goal::AtLeast(0.90));
    cases
}
