//! Cases of a policy: each plays whole passes and counts right and wrong names.

use perfval_api::fleet::{Outlier, OutlierReason};
use perfval_fleet::baseline::Approved;
use perfval_fleet::prior::PriorSpread;

use crate::policy::{PolicyFleet, PolicyPass};
use crate::tally::{Goal, Tally, share};
use crate::world::{Fault, Fleet, QUIET, ROUGH, Shape, USUAL, name, slow_gpu, word};

/// Passes for which a drift is followed.
const LONGEST: usize = 25;
/// Nodes of a fleet with losses.
const NODES: usize = 200;
/// Nodes of a rack.
const RACK: usize = 20;

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

/// Fleet with a fault in one of a hundred nodes.
#[derive(Clone, Copy)]
pub struct Loss {
    pub shape: Shape,
    pub spread: PriorSpread,
    pub fault: Fault,
    /// Trials of a run.
    pub trials: i32,
    /// Own runs that were learned before. The first run of a machine is not learned.
    pub runs: usize,
    /// Share of the faulty nodes that should be reported.
    pub goal: Goal,
}

impl Loss {
    /// Cases in the order of the page.
    pub fn all() -> Vec<Self> {
        let fleets = [
            (Shape::Gaussian, QUIET),
            (Shape::Gaussian, USUAL),
            (Shape::Heavy, QUIET),
            (Shape::Heavy, USUAL),
            (Shape::Recorded, USUAL),
            (Shape::Gaussian, ROUGH),
            (Shape::Heavy, ROUGH),
        ];
        let of = |shape, spread, runs, percent, goal| {
            [Fault::Gpu(percent), Fault::Node(percent)].map(|fault| Self {
                shape,
                spread,
                fault,
                trials: 1,
                runs,
                goal,
            })
        };
        let twice = |case: Self| (case.spread == USUAL).then_some(Self { trials: 2, ..case });
        let large = fleets
            .into_iter()
            .flat_map(|(shape, spread)| of(shape, spread, 5, 10.0, Goal::Sure(0.99, 0.97)))
            .flat_map(|case| [Some(case), twice(case)])
            .flatten();
        let quiet = |runs, percent, goal| of(Shape::Gaussian, QUIET, runs, percent, goal);
        let alone = quiet(0, 10.0, Goal::AtLeast(0.95));
        large.chain(alone).chain(quiet(8, 5.0, Goal::AtLeast(0.90))).collect()
    }

    /// Fault and past in words; five own runs of one trial need none.
    pub fn describe(&self) -> String {
        let fault = match self.fault {
            Fault::Gpu(percent) => format!("one GPU {percent} % slower"),
            Fault::Node(percent) => format!("a node {percent} % slower"),
            Fault::None => "no fault".to_owned(),
        };
        let trials = if self.trials == 1 { "" } else { ", two trials" };
        match self.runs {
            0 => format!("{fault}, peers alone"),
            5 => format!("{fault}{trials}"),
            runs => format!("{fault}, {runs} own runs{trials}"),
        }
    }

    pub fn fleet(&self) -> &'static str {
        word(self.spread)
    }

    /// Fifty passes of each fleet: 200 nodes, two of them faulty. 100 faulty nodes are too few to show a share of 99 %, so
    /// there are three fleets; but one with recorded noise, which each test run plays.
    pub fn play(&self) -> Found {
        const PASSES: usize = 50;
        let fleets = if self.shape == Shape::Recorded { 1 } else { 3 };
        let mut found = Found::default();
        for seed in (5100..).take(fleets) {
            let fleet = PolicyFleet::new(NODES, self.spread, self.shape, seed).with_trials(self.trials);
            let learned = fleet.learn(self.runs + 1);
            for number in 0..PASSES {
                let mut fleet = learned.branch(number);
                let dice = &mut fleet.fleet.dice;
                let bad = [dice.below(NODES / 2), NODES / 2 + dice.below(NODES / 2)];
                let one = fleet.pass(&|at, _| if bad.contains(&at) { self.fault } else { Fault::None });
                self.count(&fleet.fleet, &one, bad, &mut found);
            }
        }
        found
    }

    fn count(&self, fleet: &Fleet, passed: &PolicyPass, bad: [usize; 2], found: &mut Found) {
        let is_of = |outlier: &Outlier, at: usize| {
            let gpu = matches!(self.fault, Fault::Gpu(_)).then(|| slow_gpu(at));
            outlier.node == name(at) && outlier.gpu == gpu
        };
        let is_right = |outlier: &Outlier| bad.iter().any(|at| is_of(outlier, *at)) || is_true(fleet, outlier);
        passed
            .reported()
            .for_each(|outlier| found.wrong.add(!is_right(outlier)));
        passed
            .acted()
            .for_each(|outlier| found.wrong_acted.add(!is_right(outlier)));
        for at in bad {
            found.reported.add(passed.reported().any(|outlier| is_of(outlier, at)));
            found.acted.add(passed.acted().any(|outlier| is_of(outlier, at)));
        }
    }
}

/// Losses of a GPU and of a node that the policy calls detectable after five own runs (whole percents), each with the share of
/// them that is reported. `None` if it calls none detectable.
pub fn detectable(shape: Shape, spread: PriorSpread) -> [Option<(f64, Tally)>; 2] {
    let learned = PolicyFleet::new(NODES, spread, shape, 5100).learn(6);
    let stated = learned.detectable();
    let play = |fault: Fault| {
        let case = Loss {
            shape,
            spread,
            fault,
            trials: 1,
            runs: 5,
            goal: Goal::AtLeast(0.9),
        };
        case.play().reported
    };
    let gpu = stated
        .gpu
        .map(f64::ceil)
        .map(|percent| (percent, play(Fault::Gpu(percent))));
    let node = stated
        .node
        .map(f64::ceil)
        .map(|percent| (percent, play(Fault::Node(percent))));
    [gpu, node]
}

/// True for a report of healthy silicon that is slow.
fn is_true(fleet: &Fleet, outlier: &Outlier) -> bool {
    outlier.reason == OutlierReason::SlowerThanPeers
        && fleet.is_slower_than_peers(&outlier.node, outlier.gpu.as_deref())
}

/// Counts of healthy passes.
#[derive(Clone, Copy, Default)]
pub struct Healthy {
    pub acted: Tally,
    pub reported: Tally,
    /// Trials per node and pass.
    pub trials: f64,
}

/// Healthy fleet of 250 nodes, 5 passes learned and 40 counted.
pub fn healthy(shape: Shape, spread: PriorSpread) -> Healthy {
    let mut fleet = PolicyFleet::new(250, spread, shape, 5200).learn(6);
    let nodes = fleet.fleet.len();
    let mut found = Healthy::default();
    let (mut trials, mut measured) = (0, 0);
    for _ in 0..40 {
        let passed = fleet.pass(&|_, _| Fault::None);
        trials += passed.trials;
        measured += nodes;
        found.acted = found.acted.plus(of(passed.acted().count(), nodes));
        let wrong = passed.reported().filter(|outlier| !is_true(&fleet.fleet, outlier));
        found.reported = found.reported.plus(of(wrong.count(), nodes));
    }
    found.trials = share(trials, measured);
    found
}

fn of(hits: usize, of: usize) -> Tally {
    Tally { hits, of }
}

/// Passes until a drift of 3 % is reported, after 20 healthy passes that were learned: the median and the 95th of 100.
pub fn drift(fault: Fault, spread: PriorSpread) -> (usize, usize) {
    let mut first = [LONGEST + 1; 50];
    for (seed, first) in (5300..).zip(first.chunks_mut(10)) {
        let mut fleet = PolicyFleet::new(120, spread, Shape::Gaussian, seed).learn(21);
        for number in 1..=LONGEST {
            let passed = fleet.pass(&|at, _| if at % 12 == 0 { fault } else { Fault::None });
            for (place, first) in first.iter_mut().enumerate() {
                let is_named = |outlier: &Outlier| outlier.node == name(place * 12);
                if passed.reported().any(is_named) {
                    *first = number.min(*first);
                }
            }
        }
    }
    first.sort_unstable();
    (first[first.len() / 2], first[first.len() * 95 / 100])
}

/// A common loss of 5 % in 100 nodes, after six passes: passes after which the approved baseline is called shifted, and nodes that
/// are reported.
pub fn shifted(shape: Shape) -> (Tally, Tally) {
    let learned = PolicyFleet::new(100, USUAL, shape, 5400).learn(6);
    let (mut named, mut blamed) = (Tally::default(), Tally::default());
    for number in 0..20 {
        let mut fleet = learned.branch(number);
        let baseline = fleet.baseline(|_| true);
        let passed = fleet.pass(&|_, _| Fault::Node(5.0));
        named.add(fleet.has_shifted(&baseline));
        blamed = blamed.plus(of(passed.reported().count(), fleet.fleet.len()));
    }
    (named, blamed)
}

/// A common loss of 3 % in 100 nodes for ten passes, and ten passes without it, after 20: nodes that are reported.
pub fn shifted_for_a_while(shape: Shape) -> Tally {
    let mut fleet = PolicyFleet::new(100, USUAL, shape, 5450).learn(21);
    let mut blamed = Tally::default();
    for fault in [[Fault::Node(3.0); 10], [Fault::None; 10]].into_iter().flatten() {
        let passed = fleet.pass(&|_, _| fault);
        let wrong = passed.reported().filter(|outlier| !is_true(&fleet.fleet, outlier));
        blamed = blamed.plus(of(wrong.count(), fleet.fleet.len()));
    }
    blamed
}

/// A rack of 20 nodes 8 % slower beside 180 others, after six passes: passes in which a node of it may be acted on, and other
/// nodes that are reported.
pub fn racked(shape: Shape) -> (Tally, Tally) {
    let learned = PolicyFleet::new(200, USUAL, shape, 5500).learn(6);
    let (mut acted, mut others) = (Tally::default(), Tally::default());
    let is_bad = |at: usize| at / RACK == 4;
    for number in 0..15 {
        let mut fleet = learned.branch(number);
        let passed = fleet.pass(&|at, _| if is_bad(at) { Fault::Node(8.0) } else { Fault::None });
        acted.add(passed.acted().count() > 0);
        let rack: Vec<String> = (0..fleet.fleet.len()).filter(|at| is_bad(*at)).map(name).collect();
        let outside = passed
            .reported()
            .filter(|outlier| !rack.contains(&outlier.node))
            .count();
        others = others.plus(of(outside, fleet.fleet.len() - RACK));
    }
    (acted, others)
}

/// Fleets of three nodes after some own runs: those with a false name, and slow nodes that are found.
pub fn three(shape: Shape, spread: PriorSpread, runs: usize, fault: Fault, fleets: u64) -> (Tally, Tally) {
    let (mut wrong, mut right) = (Tally::default(), Tally::default());
    for seed in 0..fleets {
        let mut fleet = PolicyFleet::new(3, spread, shape, 6000 + seed).learn(if runs > 0 { runs + 1 } else { 0 });
        let passed = fleet.pass(&|at, _| if at == 1 { fault } else { Fault::None });
        let is_faulty = |outlier: &Outlier| fault != Fault::None && outlier.node == name(1);
        let is_wrong = |outlier: &Outlier| !is_faulty(outlier) && !is_true(&fleet.fleet, outlier);
        wrong.add(passed.reported().any(is_wrong));
        right.add(passed.reported().any(is_faulty));
    }
    (wrong, right)
}

/// Baselines from one run on each of `nodes` nodes, a tenth of them 10 % slower: those whose centre lies more than 0.5 % from
/// that of the healthy ones alone.
pub fn baselines(nodes: usize, shape: Shape) -> Tally {
    let mut off = Tally::default();
    for seed in 0..60 {
        let mut fleet = PolicyFleet::new(nodes, USUAL, shape, 8000 + seed);
        fleet.pass(&|at, _| if at % 10 == 0 { Fault::Node(10.0) } else { Fault::None });
        let centre = |approved: &Approved| approved.values().next().expect("a norm").centre;
        let bad: Vec<String> = (0..nodes).step_by(10).map(name).collect();
        let healthy = fleet.approve(|node| !bad.iter().any(|bad| bad == node));
        off.add((centre(&fleet.approve(|_| true)) / centre(&healthy)).ln().abs() > 0.005);
    }
    off
}

/// Fleets of few nodes without a past, beside the approved baseline of 20 others: those with a false name, and slow nodes that
/// are found.
pub fn beside_baseline(nodes: usize, shape: Shape, fault: Fault, fleets: u64) -> (Tally, Tally) {
    let (mut wrong, mut right) = (Tally::default(), Tally::default());
    for seed in 0..fleets {
        let mut learned = PolicyFleet::new(20, USUAL, shape, 9000 + seed);
        learned.pass(&|_, _| Fault::None);
        let mut fleet = PolicyFleet::new(nodes, USUAL, shape, 12_000 + seed);
        fleet.approved = learned.approve(|_| true);
        let passed = fleet.pass(&|at, _| if at == 0 { fault } else { Fault::None });
        let is_faulty = |outlier: &Outlier| fault != Fault::None && outlier.node == name(0);
        let is_wrong = |outlier: &Outlier| !is_faulty(outlier) && !is_true(&fleet.fleet, outlier);
        wrong.add(passed.reported().any(is_wrong));
        right.add(passed.reported().any(is_faulty));
    }
    (wrong, right)
}

/// Healthy machines whose first run after a restart loses 5 to 9 %, four beside 36 others with five own runs: those that are
/// reported if the confirmation is warm, and if it is as cold.
pub fn cold(shape: Shape) -> [Tally; 3] {
    const COLD: usize = 4;
    let mut found = [Tally::default(); 3];
    for seed in 0..10 {
        let learned = PolicyFleet::new(40, USUAL, shape, 7000 + seed).learn(6);
        for number in 0..5 {
            for (last, blamed) in found.iter_mut().enumerate() {
                let mut fleet = learned.branch(number);
                fleet.rebooted = COLD;
                let losses: Vec<f64> = (0..COLD).map(|_| fleet.fleet.dice.uniform(5.0, 9.0)).collect();
                let passed = fleet.pass(&|at, run| match losses.get(at) {
                    Some(percent) if run <= last => Fault::Node(*percent),
                    _ => Fault::None,
                });
                for at in 0..COLD {
                    blamed.add(passed.reported().any(|outlier| outlier.node == name(at)));
                }
            }
        }
    }
    found
}
