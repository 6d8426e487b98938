//! Every kind of call goes wrong in every way, once and for long: a run ends the same, and nobody is asked in a hot loop.

use std::collections::BTreeSet;
use std::time::Duration;

use perfval_testkit::api_server::{Fault, Made, Strike};

use crate::scenario::{Scenario, named};
use crate::{each, play, sample, timeless};

const STRIKES: [Strike; 9] = [
    Strike::Refuse(409),
    Strike::Refuse(422),
    Strike::Refuse(429),
    Strike::Refuse(500),
    Strike::Refuse(503),
    Strike::LoseCall,
    Strike::LoseAnswer,
    Strike::Stale(1),
    Strike::Slow(2),
];

/// Calls in one minute, whatever goes wrong: twice what an undisturbed run makes in its busiest one.
const PER_MINUTE: usize = 600;
/// Calls of one kind in one minute that are refused each time: two Jobs are deleted every two seconds, in growing pauses.
const REFUSED_PER_MINUTE: usize = 80;

/// The first call of each kind.
fn kinds(made: &[Made]) -> Vec<&Made> {
    let mut known = BTreeSet::new();
    let kind = |made: &Made| (made.call.verb, made.call.resource.clone(), made.dry_run);
    made.iter()
        .filter(|made| made.call.resource != "events" && known.insert(kind(made)))
        .collect()
}

/// Whether an answer is one that says something true.
fn is_an_answer(made: &Made, strike: Strike) -> bool {
    // A refused dry run is what the API server has against the deployment.
    (made.dry_run && matches!(strike, Strike::Refuse(422)))
        // Reads ask for a quorum: only a watch may be behind.
        || (!made.writes() && strike == Strike::LoseAnswer)
        || (made.writes() && matches!(strike, Strike::Stale(_)))
}

#[test]
fn a_call_that_goes_wrong_once_changes_no_ending() {
    let mut count = 0;
    for scenario in ["passing", "deleted while a trial runs", "with a model cache"].map(named) {
        let (made, expected) = play(&scenario, |rig| rig.patient = true).expect(scenario.name);
        let cases: Vec<(usize, Strike)> = kinds(&made)
            .into_iter()
            .flat_map(|made| STRIKES.map(|strike| (made, strike)))
            .filter(|(made, strike)| !is_an_answer(made, *strike))
            .map(|(made, strike)| (made.number, strike))
            .collect();
        count += cases.len();
        each(&sample(&cases), |(number, strike)| {
            let call = &made[*number].call;
            let at = format!(
                "{}: {strike:?} at call {number}: {} {} {:?}",
                scenario.name, call.verb, call.resource, call.name
            );
            let played = play(&scenario, |rig| {
                rig.patient = true;
                rig.wire.strike(*number, *strike);
            });
            let (calls, ending) = played.map_err(|why| format!("{at}: {why}"))?;
            busiest_minute(&calls, |_| true, PER_MINUTE).map_err(|how| format!("{at}: {how}"))?;
            ending
                .differs(&expected)
                .map_or(Ok(()), |how| Err(format!("{at}: {how}")))
        });
    }
    eprintln!("{count} faults of one call");
}

/// The most calls within any minute.
fn busiest_minute(made: &[Made], of: impl Fn(&Made) -> bool, most: usize) -> Result<(), String> {
    let of: Vec<&Made> = made.iter().filter(|made| of(made)).collect();
    for (from, first) in of.iter().enumerate() {
        let within = of[from..]
            .iter()
            .take_while(|made| made.at - first.at < Duration::from_mins(1));
        let count = within.count();
        if count > most {
            return Err(format!(
                "{count} calls in one minute, from {} {}",
                first.call.verb, first.call.resource
            ));
        }
    }
    Ok(())
}

#[test]
fn a_call_that_is_refused_for_long_is_not_made_in_a_hot_loop() {
    let passing = named("passing");
    let deleted = named("deleted when it is over");
    let mut cases: Vec<(&Scenario, &'static str, String, u16)> = Vec::new();
    for scenario in [&passing, &deleted] {
        let (made, _) = play(scenario, |_| {}).expect(scenario.name);
        for made in kinds(&made).into_iter().filter(|made| made.writes()) {
            for code in [403, 409, 422, 500] {
                cases.push((scenario, made.call.verb, made.call.resource.clone(), code));
            }
        }
    }
    eprintln!("{} kinds of writes, refused for ten minutes", cases.len());
    each(&sample(&cases), |(scenario, verb, resource, code)| {
        timeless(async {
            let at = format!("{}: {code} for every {verb} {resource}", scenario.name);
            let rig = scenario.rig();
            rig.server.fail(Fault::refuse(verb, resource, *code));
            let healed = rig.server.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_mins(10)).await;
                healed.heal();
            });
            let (rig, _) = scenario.play(rig).await.map_err(|why| format!("{at}: {why}"))?;
            let made = rig.wire.made();
            let refused =
                |made: &Made| made.call.verb == *verb && made.call.resource == *resource && made.code == Some(*code);
            busiest_minute(&made, refused, REFUSED_PER_MINUTE).map_err(|how| format!("{at}: {how}"))?;
            busiest_minute(&made, |_| true, PER_MINUTE).map_err(|how| format!("{at}: {how}"))
        })
    });
}

#[test]
fn a_watch_that_is_silent_or_expired_costs_time_only() {
    let scenario = named("passing");
    let (_, expected) = play(&scenario, |_| {}).expect("it passes");
    // 50 s: a watch that says nothing is given up then. 0 s: it expired, and everything is listed anew.
    let cases: Vec<(u64, u64)> = [0, 2, 5, 12, 20, 30]
        .into_iter()
        .flat_map(|from| [(from, 0), (from, 50)])
        .collect();
    each(&cases, |(from, lasts)| {
        let (_, ending) = play(&scenario, |rig| {
            let from = tokio::time::Instant::now() + Duration::from_secs(*from);
            rig.deaf = Some((from, from + Duration::from_secs(*lasts)));
        })?;
        ending
            .differs(&expected)
            .map_or(Ok(()), |how| Err(format!("deaf from {from} s for {lasts} s: {how}")))
    });
}
