//! Fleets with a loss in one of a hundred nodes.

use perfval_api::fleet::{Outlier, OutlierReason};
use perfval_fleet::numbers::loss;
use perfval_fleet::prior::PriorSpread;

use crate::policy::{PolicyFleet, PolicyPass};
use crate::tally::{Goal, Tally};
use crate::world::{Fault, Fleet, QUIET, ROUGH, Shape, USUAL, name, slow_gpu, word};

/// Nodes of a fleet with losses.
const NODES: usize = 200;

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

    pub fn play(&self) -> Found {
        let mut found = Found::default();
        for learned in self.fleets() {
            self.play_passes(&learned, &mut found);
        }
        found
    }

    /// Fleets with these own runs. 100 faulty nodes are too few to show a share of 99 %, so there are three; but one with recorded
    /// noise, which each test run plays.
    fn fleets(&self) -> impl Iterator<Item = PolicyFleet> {
        let fleets = if self.shape == Shape::Recorded { 1 } else { 3 };
        (5100..).take(fleets).map(move |seed| {
            let fleet = PolicyFleet::new(NODES, self.spread, self.shape, seed).with_trials(self.trials);
            fleet.learn(self.runs + 1)
        })
    }

    /// Fifty passes of a fleet, each with two faulty nodes.
    fn play_passes(&self, learned: &PolicyFleet, found: &mut Found) {
        const PASSES: usize = 50;
        for number in 0..PASSES {
            let mut fleet = learned.branch(number);
            let dice = &mut fleet.fleet.dice;
            let bad = [dice.below(NODES / 2), NODES / 2 + dice.below(NODES / 2)];
            let one = fleet.pass(&|at, _| if bad.contains(&at) { self.fault } else { Fault::None });
            self.count(&fleet.fleet, &one, bad, found);
        }
    }

    fn count(&self, fleet: &Fleet, passed: &PolicyPass, bad: [usize; 2], found: &mut Found) {
        let is_of = |outlier: &Outlier, at: usize| is_named(self.fault, outlier, at);
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

/// One GPU 10 % slower while all nodes are 5 % slower.
pub fn beside_a_shift(shape: Shape) -> Found {
    let case = Loss {
        shape,
        spread: USUAL,
        fault: Fault::Gpu(10.0),
        trials: 1,
        runs: 5,
        goal: Goal::None,
    };
    let mut found = Found::default();
    for mut learned in case.fleets() {
        learned.fleet.common = loss(5.0);
        case.play_passes(&learned, &mut found);
    }
    found
}

/// Losses that policies call detectable, and the share of them that is reported.
#[derive(Default)]
pub struct Detectable {
    /// Loss (whole percents) of each fleet that states one.
    pub stated: Vec<f64>,
    pub reported: Tally,
}

/// Losses of a GPU and of a node after five own runs. Each fleet gets those that it states itself.
pub fn detectable(shape: Shape, spread: PriorSpread) -> [Detectable; 2] {
    let healthy = Loss {
        shape,
        spread,
        fault: Fault::None,
        trials: 1,
        runs: 5,
        goal: Goal::None,
    };
    let mut found = <[Detectable; 2]>::default();
    for learned in healthy.fleets() {
        let loss = learned.detectable();
        let faults = [
            loss.gpu.map(f64::ceil).map(Fault::Gpu),
            loss.node.map(f64::ceil).map(Fault::Node),
        ];
        for (found, fault) in found.iter_mut().zip(faults) {
            let Some(fault @ (Fault::Gpu(percent) | Fault::Node(percent))) = fault else {
                continue;
            };
            let case = Loss { fault, ..healthy };
            let mut played = Found::default();
            case.play_passes(&learned, &mut played);
            found.stated.push(percent);
            found.reported = found.reported.plus(played.reported);
        }
    }
    found
}

/// True for a report of this fault of a node, with the right subject.
pub fn is_named(fault: Fault, outlier: &Outlier, at: usize) -> bool {
    let gpu = match fault {
        Fault::None => return false,
        Fault::Gpu(_) => Some(slow_gpu(at)),
        Fault::Node(_) => None,
    };
    outlier.node == name(at) && outlier.gpu == gpu
}

/// True for a report of healthy silicon that is slow.
pub fn is_true(fleet: &Fleet, outlier: &Outlier) -> bool {
    outlier.reason == OutlierReason::SlowerThanPeers
        && fleet.is_slower_than_peers(&outlier.node, outlier.gpu.as_deref())
}
