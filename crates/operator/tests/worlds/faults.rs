//! Every call goes wrong in every way, once, and every kind of write for long: a run ends the same, and nobody is asked in a
//! hot loop.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use perfval_testkit::api_server::{Fault, Made, Strike};
use perfval_testkit::world::Play;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::rig::NAMESPACE;
use crate::scenario::{LIMIT, NAME, Scenario, all, named, trial_runs};
use crate::{each, laws, play, sample, timeless};

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

/// Calls in one minute, whatever goes wrong once.
pub const PER_MINUTE: usize = 600;
/// The same write of one object in one minute, refused each time: every two seconds at first, in growing pauses.
const REFUSED_PER_MINUTE: usize = 30;

/// A 500 for a deployment may be a conversion that failed: each time it is asked for at the other version, too.
fn at_most(resource: &str, code: u16) -> usize {
    let versions = if (resource, code) == ("dynamographdeployments", 500) {
        2
    } else {
        1
    };
    versions * REFUSED_PER_MINUTE
}

/// The first write of each kind.
fn kinds_of_writes(made: &[Made]) -> Vec<&Made> {
    let mut known = BTreeSet::new();
    let kind = |made: &Made| (made.call.verb, made.call.resource.clone());
    made.iter()
        .filter(|made| made.writes() && made.call.resource != "events" && known.insert(kind(made)))
        .collect()
}

/// Whether an answer is one that says something true.
fn is_an_answer(made: &Made, strike: Strike) -> bool {
    // A refused dry run is what the API server has against the deployment.
    (made.call.dry_run && matches!(strike, Strike::Refuse(422)))
        // Reads ask for a quorum: only a watch may be behind.
        || (!made.writes() && strike == Strike::LoseAnswer)
        || (made.writes() && matches!(strike, Strike::Stale(_)))
}

#[test]
fn a_call_that_goes_wrong_once_changes_no_ending() {
    let (count, busiest) = (AtomicUsize::new(0), AtomicUsize::new(0));
    for scenario in all() {
        let (made, expected) = play(&scenario, |rig| rig.patient = true).expect(scenario.name);
        let cases: Vec<(usize, Strike)> = made
            .iter()
            .flat_map(|made| STRIKES.map(|strike| (made, strike)))
            .filter(|(made, strike)| !is_an_answer(made, *strike))
            .map(|(made, strike)| (made.number, strike))
            .collect();
        count.fetch_add(cases.len(), Ordering::Relaxed);
        each(&sample(&cases, 5), |(number, strike)| {
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
            busiest_minute(&calls, |_| true, PER_MINUTE, &busiest).map_err(|how| format!("{at}: {how}"))?;
            ending.matches(&expected).map_err(|how| format!("{at}: {how}"))
        });
    }
    eprintln!(
        "{} faults of one call; {} calls in the busiest minute",
        count.load(Ordering::Relaxed),
        busiest.load(Ordering::Relaxed)
    );
}

#[test]
fn two_seconds_for_every_call_change_no_ending() {
    each(&sample(&all(), 3), |scenario| {
        let at = |why: String| format!("{}: {why}", scenario.name);
        let (_, expected) = play(scenario, |_| {}).map_err(at)?;
        let (_, ending) = play(scenario, |rig| rig.wire.slow_down(Duration::from_secs(2))).map_err(at)?;
        ending.matches(&expected).map_err(at)
    });
}

/// The most calls within any minute.
pub fn busiest_minute(
    made: &[Made],
    of: impl Fn(&Made) -> bool,
    most: usize,
    busiest: &AtomicUsize,
) -> Result<(), String> {
    let of: Vec<&Made> = made.iter().filter(|made| of(made)).collect();
    let mut until = 0;
    for (from, first) in of.iter().enumerate() {
        while of
            .get(until)
            .is_some_and(|made| made.at - first.at < Duration::from_mins(1))
        {
            until += 1;
        }
        let count = until - from;
        busiest.fetch_max(count, Ordering::Relaxed);
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
    let scenarios = [
        named("passing"),
        named("deleted when it is over"),
        named("with a model cache"),
    ];
    let mut cases: Vec<(&Scenario, &'static str, String, u16)> = Vec::new();
    for scenario in &scenarios {
        let (made, _) = play(scenario, |_| {}).expect(scenario.name);
        for made in kinds_of_writes(&made) {
            for code in [403, 409, 422, 500] {
                cases.push((scenario, made.call.verb, made.call.resource.clone(), code));
            }
        }
    }
    let (refusals, busiest) = (AtomicUsize::new(0), AtomicUsize::new(0));
    eprintln!("{} kinds of writes, refused for ten minutes", cases.len());
    each(&sample(&cases, 12), |(scenario, verb, resource, code)| {
        timeless(async {
            let at = format!("{}: {code} for every {verb} {resource}", scenario.name);
            let rig = scenario.rig();
            // Its dry run succeeds: without the right the run would only wait in Pending.
            let skipped = usize::from(resource == "dynamographdeployments" && *verb == "create");
            rig.server.fail(Fault::refuse(verb, resource, *code).skip(skipped));
            let healed = rig.server.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_mins(10)).await;
                healed.heal();
            });
            let (rig, _) = scenario.play(rig).await.map_err(|why| format!("{at}: {why}"))?;
            laws::always(&rig).map_err(|why| format!("{at}: {why}"))?;
            let made = rig.wire.made();
            let own = AtomicUsize::new(0);
            let of_a_kind = |made: &&Made| made.call.verb == *verb && made.call.resource == *resource;
            let names: BTreeSet<_> = made
                .iter()
                .filter(of_a_kind)
                .map(|made| made.call.name.clone())
                .collect();
            for name in names {
                let refused = |made: &Made| made.writes() && made.code == Some(*code) && made.call.name == name;
                let refused = |made: &Made| of_a_kind(&made) && refused(made);
                busiest_minute(&made, refused, at_most(resource, *code), &own).map_err(|how| format!("{at}: {how}"))?;
            }
            refusals.fetch_max(own.load(Ordering::Relaxed), Ordering::Relaxed);
            busiest_minute(&made, |_| true, PER_MINUTE, &busiest).map_err(|how| format!("{at}: {how}"))
        })
    });
    let (refusals, busiest) = (refusals.load(Ordering::Relaxed), busiest.load(Ordering::Relaxed));
    eprintln!("at most {refusals} refusals and {busiest} calls in one minute");
    assert!(refusals > 0, "no write was refused");
}

/// A create that is refused until the time of its run is up is asked for in the pass that ends the run, too, unless that pass
/// drops it.
#[test]
fn a_run_whose_time_is_up_creates_nothing_more() {
    let cases = [
        ("jobs", 0),
        ("resourceclaimtemplates", 0),
        ("services", 0),
        // After the dry run: without the right the run waits in Pending.
        ("dynamographdeployments", 1),
        // After the Job that fills the cache.
        ("jobs", 1),
    ];
    let ends = |(resource, skip): &(&str, usize)| {
        timeless(async {
            let scenario = named("with a model cache");
            let mut rig = scenario.rig();
            rig.server.fail(Fault::refuse("create", resource, 403).skip(*skip));
            rig.start();
            scenario.apply(&rig);
            rig.edit(NAME, |object| object["spec"]["timeouts"]["total"] = "1m".into());
            rig.until(LIMIT, |rig| laws::rests(rig, NAME)).await?;
            rig.wait(Duration::from_mins(1)).await;
            let reason = rig.get(NAME).unwrap_or_default()["status"]["reason"].clone();
            if reason != "DeadlineExceeded" {
                return Err(format!("it ended with {reason}"));
            }
            laws::always(&rig)?;
            laws::at_rest(&rig, &[NAME])
        })
    };
    each(&cases, |case| {
        ends(case).map_err(|why| format!("{case:?} refused: {why}"))
    });
}

/// Otherwise its limit stands still, and the run holds its GPUs for hours.
#[test]
fn a_job_that_is_refused_for_long_is_no_outage() {
    let gaps = timeless(async {
        let scenario = named("passing");
        let mut rig = scenario.rig();
        rig.server.fail(Fault::refuse("create", "jobs", 403));
        rig.start();
        scenario.apply(&rig);
        rig.until(LIMIT, |rig| rig.phase(NAME) == "Benchmarking").await?;
        rig.wait(Duration::from_mins(10)).await;
        if rig.phase(NAME) != "Benchmarking" {
            return Err(format!("it is {} by now", rig.phase(NAME)));
        }
        let status = rig.get(NAME).unwrap_or_default()["status"].clone();
        Ok::<Value, String>(status["operatorState"]["gaps"].clone())
    });
    assert_eq!(gaps, Ok(Value::Null));
}

/// A removal that hangs is looked after once a minute in the end, and for ever.
#[test]
fn what_hangs_is_looked_after_in_growing_pauses() {
    let hang = |delete: bool| {
        timeless(async {
            let scenario = named("passing");
            let mut rig = scenario.rig();
            rig.start();
            scenario.apply(&rig);
            rig.until(LIMIT, trial_runs).await?;
            rig.world.faults.stuck = true;
            if delete {
                rig.server.delete("perfvalidations", NAMESPACE, NAME);
            }
            rig.wait(Duration::from_hours(3)).await;
            let since = Instant::now() - Duration::from_hours(1);
            let lists = |made: &&Made| made.at > since && made.call.verb == "list" && made.call.resource == "jobs";
            let looks = rig.wire.made().iter().filter(lists).count();
            rig.world.faults.stuck = false;
            rig.until(LIMIT, |rig| rig.server.objects("pods").is_empty()).await?;
            rig.wait(Duration::from_mins(6)).await;
            laws::always(&rig)?;
            laws::at_rest(&rig, &[NAME])?;
            Ok::<usize, String>(looks)
        })
    };
    for (delete, most) in [(true, 75), (false, 25)] {
        let looks = hang(delete).unwrap_or_else(|why| panic!("deleted: {delete}: {why}"));
        eprintln!("deleted: {delete}: {looks} looks in the third hour");
        assert!(
            (6..=most).contains(&looks),
            "deleted: {delete}: {looks} looks in the third hour"
        );
    }
}

#[test]
fn a_watch_that_is_silent_or_expired_costs_time_only() {
    let scenario = named("passing");
    let (_, expected) = play(&scenario, |_| {}).expect("it passes");
    // 50 s: a watch that says nothing is given up then. 0 s: it expired, and everything is listed anew.
    let cases: Vec<(u64, u64)> = (0..60).flat_map(|from| [(from, 0), (from, 50)]).collect();
    each(&sample(&cases, 12), |(from, lasts)| {
        let (_, ending) = play(&scenario, |rig| {
            let from = tokio::time::Instant::now() + Duration::from_secs(*from);
            rig.deaf = Some((from, from + Duration::from_secs(*lasts)));
        })?;
        let at = |how| format!("deaf from {from} s for {lasts} s: {how}");
        ending.matches(&expected).map_err(at)
    });
}

/// A world whose pods are ready after this time (s).
struct ReadyAfter(i64);

impl Play for ReadyAfter {
    fn starts_after(&self, _: &Value) -> i64 {
        self.0
    }

    fn trial_lasts(&self, _: &Value) -> i64 {
        60
    }
}

#[test]
fn a_limit_is_decided_by_new_reads_and_not_by_copies() {
    // The pods are ready some seconds before the limit, and the watch of their metadata is silent.
    each(&[50, 54, 58], |seconds| {
        let mut spec = json!({
            "model": {"name": "lab/tiny"}, "timeouts": {"workloadReady": "60s"},
            "workload": {"dynamo": {"image": "localhost/dynamo:1.4.2"}},
        });
        spec["gates"] = json!([
            {"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1000"},
        ]);
        timeless(async {
            let mut rig = named("passing").rig();
            rig.world.play = Some(Box::new(ReadyAfter(*seconds)));
            rig.start();
            rig.apply(NAME, &spec);
            rig.until(LIMIT, |rig| rig.phase(NAME) == "WaitingForReady").await?;
            rig.wait(Duration::from_secs(1)).await;
            let now = Instant::now();
            rig.deaf = Some((now, now + Duration::from_mins(2)));
            rig.until(LIMIT, |rig| rig.phase(NAME) == "Completed").await?;
            let status = rig.get(NAME).unwrap_or_default()["status"].clone();
            if status["verdict"] == "Passed" {
                return Ok(());
            }
            Err(format!("ready after {seconds} s: {}", status["message"]))
        })
    });
}
