//! The operator is stopped before and after every single call of every scenario, and started again: each run ends as if
//! nothing had happened, nothing is created twice, and no trial is lost or counted twice.

use perfval_testkit::api_server::{Made, Strike};

use crate::scenario::{Ending, Scenario, all};
use crate::{each, play, sample};

/// Places at which the operator was stopped when this was written; there may only be more. There were 2,084 before a run made
/// half of its calls, and 1,247 while passes came in bursts of eight.
const PLACES: usize = 1244;

/// Plays a scenario undisturbed.
fn undisturbed(scenario: &Scenario) -> (Ending, Vec<Made>) {
    let (made, ending) = play(scenario, |_| {}).unwrap_or_else(|why| panic!("{}: {why}", scenario.name));
    (ending, made)
}

#[test]
fn a_run_ends_the_same_wherever_the_operator_is_stopped() {
    let mut places = 0;
    for scenario in all() {
        let (expected, made) = undisturbed(&scenario);
        assert_eq!(expected.matches(&expected), Ok(()), "{}", scenario.name);
        // Nothing differs between two reads: stopped before the second one is stopped after the first one.
        let mut strikes: Vec<(usize, Strike)> = Vec::new();
        let mut wrote = true;
        for call in &made {
            if wrote || call.writes() {
                strikes.push((call.number, Strike::StopBefore));
            }
            wrote = call.writes();
            if call.writes() {
                strikes.push((call.number, Strike::StopAfter));
            }
        }
        eprintln!(
            "{}: {} calls, stopped at {} places",
            scenario.name,
            made.len(),
            strikes.len()
        );
        places += strikes.len();
        each(&sample(&strikes, 6), |(number, strike)| {
            let call = &made[*number].call;
            let at = || {
                format!(
                    "{}: {strike:?} call {number}: {} {} {:?}",
                    scenario.name, call.verb, call.resource, call.name
                )
            };
            let (_, ending) =
                play(&scenario, |rig| rig.wire.strike(*number, *strike)).map_err(|why| format!("{}: {why}", at()))?;
            ending.matches(&expected).map_err(|how| format!("{}: {how}", at()))
        });
    }
    eprintln!("stopped at {places} places");
    assert!(places >= PLACES, "{places} places, {PLACES} before");
}
