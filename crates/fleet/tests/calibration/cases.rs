//! Cases of a policy: each plays whole passes and counts right and wrong names.

use perfval_api::fleet::{Outlier, OutlierConfidence};
use perfval_fleet::baseline::Approved;
use perfval_fleet::prior::PriorSpread;

use crate::losses::{is_named, is_true};
use crate::policy::PolicyFleet;
use crate::tally::{Tally, share};
use crate::world::{Fault, Shape, USUAL, name};

/// Passes for which a drift is followed.
const LONGEST: usize = 25;
/// Nodes of a rack.
const RACK: usize = 20;

/// Healthy runs of so many trials after five own ones that lie within the published margin of their own past.
pub fn within_margin(shape: Shape, spread: PriorSpread, trials: i32) -> Tally {
    let fleet = PolicyFleet::new(200, spread, shape, 5600).with_trials(trials);
    let learned = fleet.learn(6);
    let mut within = Tally::default();
    for number in 0..5 {
        for (percent, margin) in learned.branch(number).measure() {
            within.add((percent - 100.0).abs() <= margin);
        }
    }
    within
}

/// Counts of healthy passes.
#[derive(Clone, Copy, Default)]
pub struct Healthy {
    pub acted: Tally,
    /// Right and wrong names.
    pub reported: Tally,
    pub wrong: Tally,
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
        found.reported = found.reported.plus(of(passed.reported().count(), nodes));
        let wrong = passed.reported().filter(|outlier| !is_true(&fleet.fleet, outlier));
        found.wrong = found.wrong.plus(of(wrong.count(), nodes));
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
                if passed.reported().any(|outlier| is_named(fault, outlier, place * 12)) {
                    *first = number.min(*first);
                }
            }
        }
    }
    first.sort_unstable();
    (first[first.len() / 2], first[first.len() * 95 / 100])
}

/// A common loss of 5 % in 100 nodes, after six passes: passes after which the policy names their environment and the approved
/// baseline is called shifted, and nodes that are reported as a whole.
pub fn shifted(shape: Shape) -> (Tally, Tally) {
    let learned = PolicyFleet::new(100, USUAL, shape, 5400).learn(6);
    let (mut named, mut blamed) = (Tally::default(), Tally::default());
    for number in 0..20 {
        let mut fleet = learned.branch(number);
        let baseline = fleet.baseline(|_| true);
        let passed = fleet.pass(&|_, _| Fault::Node(5.0));
        named.add(fleet.has_shifted(&baseline) && passed.comparison.shifted.is_some());
        let whole = passed.reported().filter(|outlier| outlier.gpu.is_none());
        blamed = blamed.plus(of(whole.count(), fleet.fleet.len()));
    }
    (named, blamed)
}

/// A common loss of 10 % in 100 nodes, after six passes, measured by a policy that validates two at a time: passes in which a node
/// may be acted on, and the most nodes that are reported as a whole at a time.
pub fn shifted_in_rounds(shape: Shape) -> (Tally, Tally) {
    let learned = PolicyFleet::new(100, USUAL, shape, 5420).learn(6).with_budget(2);
    let (mut acted, mut most) = (Tally::default(), Tally::default());
    for number in 0..5 {
        let mut fleet = learned.branch(number);
        let (mut acts, mut reported) = (false, 0);
        fleet.pass_in_rounds(&|_, _| Fault::Node(10.0), |comparison| {
            let outliers = comparison.outliers.iter();
            let confirmed = outliers.filter(|outlier| outlier.confidence >= Some(OutlierConfidence::Confirmed));
            let is_acted_on = |outlier: &Outlier| outlier.confidence == Some(OutlierConfidence::Actionable);
            acts |= confirmed.clone().any(is_acted_on);
            reported = reported.max(confirmed.filter(|outlier| outlier.gpu.is_none()).count());
        });
        acted.add(acts);
        most = most.plus(of(reported, fleet.fleet.len()));
    }
    (acted, most)
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
        let is_faulty = |outlier: &Outlier| is_named(fault, outlier, 1);
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
        let is_faulty = |outlier: &Outlier| is_named(fault, outlier, 0);
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
                // Any name of a healthy machine is wrong.
                for at in 0..COLD {
                    blamed.add(passed.reported().any(|outlier| outlier.node == name(at)));
                }
            }
        }
    }
    found
}
