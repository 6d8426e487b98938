//! The goals of the product, and whether the recorded runs meet them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use perfval_api::{TrialOutcome, TrialsSpec};
use perfval_fleet::tail::binomial;
use perfval_testkit::odds::correlated_odds;

use crate::corpus::LabRun;
use crate::fault::{Fault, Truth};
use crate::matrix::{ROUTERS, cases};
use crate::published::{Replayed, percent, share};
use crate::rejudged::{Seen, drawn};
use crate::setting::{Place, freeze};
use crate::silicon::ForeignLoad;

/// Wrong verdicts that are accepted: two in a hundred.
const WRONG: f64 = 0.02;
/// Trials that a healthy run may take on average.
const TRIALS: f64 = 3.2;

/// The table at the top of the page.
pub(super) fn table(
    page: &mut String,
    windows: &[Replayed],
    seen: &[&Seen<'_>],
    ended: &[&LabRun],
    forced: (usize, usize),
) {
    let of = |miss| [0.0, 0.4].map(|correlation| correlated_odds(&TrialsSpec::default(), miss, correlation));
    let [stall, stalls_together] = of(1.0 / 3.0);
    let healthy_windows = || {
        windows
            .iter()
            .filter(|window| window.window.healthy && window.trials.len() > 2)
    };
    let worst = healthy_windows().map(|window| window.odds.failed).fold(0.0, f64::max);
    let longest = healthy_windows().map(|window| window.odds.trials).fold(0.0, f64::max);
    let _ = write!(
        page,
        "\n## The goals\n\nThresholds were fixed on the trials before the **freeze** ({}), so only *later* trials are evidence. *Not refuted*: these trials\n\
         agree, but are too few to prove the goal. Bounds (≥, ≤) are 95 % sure.\n\n\
         | goal | found | |\n|---|---|---|\n\
         | a healthy deployment that misses one of three trials fails in at most 2 % of its runs | {} if its trials are independent, {} with a correlation of 0.4; worst healthy [window](#published-runs) of three trials or more {} | {} |\n\
         | and takes at most 3.2 trials on average | {:.1}; worst of these windows {longest:.1} | {} |\n",
        freeze().format("%Y-%m-%d %H:%M UTC"),
        percent(stall.failed),
        percent(stalls_together.failed),
        percent(worst),
        met(stalls_together.failed <= WRONG && worst <= WRONG),
        stall.trials,
        met(stall.trials <= TRIALS && longest <= TRIALS),
    );
    let [degraded, degraded_together] = of(0.95);
    let broken = windows.iter().filter(|window| !window.window.healthy);
    let passed = broken.map(|window| window.odds.passed).fold(0.0, f64::max);
    let mut degraded_trials: BTreeMap<Fault, Vec<&Seen<'_>>> = BTreeMap::new();
    for seen in seen.iter().filter(|seen| seen.run.fault.truth() == Truth::Degraded) {
        degraded_trials.entry(seen.run.fault).or_default().push(seen);
    }
    let recorded = degraded_trials
        .values()
        .map(|seen| drawn(seen).passed)
        .fold(0.0, f64::max);
    let _ = writeln!(
        page,
        "| a degraded deployment passes in at most 2 % | if it passes 1 trial of 20: {}, or {} with this correlation; published platform fault {}; worst recorded fault {} | {} |",
        percent(degraded.passed),
        percent(degraded_together.passed),
        percent(passed),
        percent(recorded),
        met(degraded_together.passed <= WRONG && passed <= WRONG && recorded <= WRONG),
    );
    named_faults(page, seen, ended);
    healthy(page, seen);
    let (blamed, all) = forced;
    let _ = writeln!(
        page,
        "| a healthy trial under gates that nothing can meet has no cause that accuses a part | {blamed} of all {all} have one | {} |",
        not_refuted(blamed == 0),
    );
    silicon(page, seen);
}

/// Every kind of fault that the matrix has, simulated or on real GPUs.
fn named_faults(page: &mut String, seen: &[&Seen<'_>], ended: &[&LabRun]) {
    let kinds: BTreeSet<Fault> = cases().into_iter().map(|case| case.fault).collect();
    let named_live = |run: &LabRun| {
        let live = run.live.iter();
        let mut words = live.flat_map(|live| live.causes.iter().chain([&live.reason]));
        words.any(|word| run.fault.names().contains(&word.as_str()))
    };
    let of_matrix = |seen: &&&Seen<'_>| seen.run.fault != Fault::Healthy && kinds.contains(&seen.run.fault);
    let trials = seen.iter().filter(of_matrix).map(|seen| (seen.run, seen.named()));
    let runs = ended.iter().map(|run| (*run, named_live(run)));
    let (mut before, mut after) = (Named::default(), Named::default());
    for (run, named) in trials.chain(runs) {
        let named_then = if run.training() { &mut before } else { &mut after };
        named_then.add(run.fault, named);
    }
    let kinds = kinds.len() - 1; // without Healthy
    let ((times, all), (times_before, all_before)) = (after.counts(), before.counts());
    let _ = writeln!(
        page,
        "| every injected fault is named (16 kinds; [others](#fault-by-fault) at times) | {} of {kinds} kinds every time; {times} of {all} later trials and runs, {times_before} of {all_before} earlier ones | {} |",
        after.always(),
        not_refuted(after.always() == kinds),
    );
}

/// Number of times each fault was named, and of all.
#[derive(Default)]
struct Named(BTreeMap<Fault, (usize, usize)>);

impl Named {
    fn add(&mut self, fault: Fault, named: bool) {
        let counts = self.0.entry(fault).or_default();
        counts.0 += usize::from(named);
        counts.1 += 1;
    }

    /// Kinds that were named every time.
    fn always(&self) -> usize {
        self.0.values().filter(|(named, all)| named == all).count()
    }

    fn counts(&self) -> (usize, usize) {
        let sum = |sum: (usize, usize), counts: &(usize, usize)| (sum.0 + counts.0, sum.1 + counts.1);
        self.0.values().fold((0, 0), sum)
    }
}

fn healthy(page: &mut String, seen: &[&Seen<'_>]) {
    let simulated = |seen: &&&Seen<'_>| seen.run.place != Place::Silicon && seen.run.fault == Fault::Healthy;
    let healthy = seen.iter().filter(simulated);
    let (before, after): (Vec<&&Seen<'_>>, Vec<_>) = healthy.partition(|seen| seen.run.training());
    let missed = after.iter().filter(|seen| seen.outcome != TrialOutcome::Pass).count();
    let blamed_before = blamed(before.iter().copied());
    let blamed = blamed(after.iter().copied());
    let _ = writeln!(
        page,
        "| a healthy run on simulated engines has no cause (20 trials or more) | {blamed} of {} later trials had one, {missed} did not pass; {blamed_before} of {} earlier ones had one | {} |",
        after.len(),
        before.len(),
        not_refuted(blamed == 0 && missed == 0 && after.len() >= 20),
    );
}

fn blamed<'a>(trials: impl Iterator<Item = &'a &'a Seen<'a>>) -> usize {
    trials.filter(|seen| !seen.causes.is_empty()).count()
}

/// Goals for real GPUs: on trials recorded after the freeze.
fn silicon(page: &mut String, seen: &[&Seen<'_>]) {
    let held_out = || {
        let of = |seen: &&&Seen<'_>| seen.run.place == Place::Silicon && !seen.run.training();
        seen.iter().filter(of)
    };
    let loss = ForeignLoad::of(seen);
    for (goal, routers) in [
        (
            "the first cause names a GPU that is 10 % slower or more, in 99 % of trials under least-loaded",
            &ROUTERS[..1],
        ),
        (
            "the same if it is 20 % slower or more, under other routers",
            &ROUTERS[1..],
        ),
    ] {
        let slow: Vec<_> = held_out()
            .filter(|seen| routers.contains(&seen.run.router) && loss.has_goal(seen))
            .collect();
        let right = slow.iter().filter(|seen| seen.first_is_right()).count();
        let sure = |all: usize| format!("≥ {}", percent(at_least(right, all)));
        let _ = writeln!(
            page,
            "| {goal} | {} | {} |",
            found(right, slow.len(), sure),
            reached(slow.len(), share(right, slow.len()) >= 0.99),
        );
    }
    let healthy: Vec<_> = held_out().filter(|seen| seen.run.fault == Fault::Healthy).collect();
    let blamed = healthy.iter().filter(|seen| seen.accuses()).count();
    let missed = healthy.iter().filter(|seen| seen.outcome != TrialOutcome::Pass).count();
    let sure = |all: usize| format!("≤ {}", percent(1.0 - at_least(all - blamed, all)));
    let _ = writeln!(
        page,
        "| no healthy trial on real GPUs is blamed (40 or more) | {}; {missed} missed a gate that the others had set | {} |",
        found(blamed, healthy.len(), sure),
        reached(healthy.len(), blamed == 0 && healthy.len() >= 40),
    );
}

fn found(part: usize, all: usize, sure: impl Fn(usize) -> String) -> String {
    if all == 0 {
        "not recorded yet".to_owned()
    } else {
        format!("{part} of {all} later trials, {}", sure(all))
    }
}

/// Smallest share with which `part` or more of `all` is still found in 5 of 100 cases (Clopper and Pearson's bound).
pub(crate) fn at_least(part: usize, all: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        let is_below = binomial(part, all, middle) < 0.05;
        *if is_below { &mut low } else { &mut high } = middle;
    }
    low
}

fn reached(all: usize, good: bool) -> &'static str {
    if all == 0 { "open" } else { not_refuted(good) }
}

/// A goal that a number of trials agrees with: more of them may still miss it.
fn not_refuted(good: bool) -> &'static str {
    if good { "not refuted" } else { "**missed**" }
}

fn met(good: bool) -> &'static str {
    if good { "met" } else { "**missed**" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_bounded_as_the_tables_have_it() {
        // With all of n: the nth root of 0.05. Others from tables of Clopper and Pearson's one-sided bound.
        for (part, all, bound) in [
            (12, 12, 0.779),
            (49, 49, 0.941),
            (9, 10, 0.606),
            (0, 5, 0.0),
            (987, 1000, 0.9794),
        ] {
            let found = at_least(part, all);
            assert!((found - bound).abs() < 0.001, "{part} of {all}: {found}");
        }
    }
}
