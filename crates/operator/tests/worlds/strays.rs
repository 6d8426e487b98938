//! What no run looks after any more: calls that land after the end, and what a vanished object leaves.

use std::time::Duration;

use perfval_testkit::api_server::{Call, Fault, Made, Strike};
use serde_json::Value;

use crate::laws::CREATED;
use crate::rig::{NAMESPACE, Rig};
use crate::scenario::{self, Ending, LIMIT, NAME, all, named};
use crate::{each, laws, play, sample, timeless};

#[test]
fn a_create_that_lands_after_the_end_of_its_run_is_removed() {
    let scenarios = ["passing", "rerun", "suspended and resumed"].map(named);
    for scenario in &scenarios {
        let (made, _) = play(scenario, |_| {}).expect(scenario.name);
        let creates = |made: &&Made| {
            made.call.verb == "create" && made.writes() && CREATED.contains(&made.call.resource.as_str())
        };
        let cases: Vec<usize> = made.iter().filter(creates).map(|made| made.number).collect();
        assert!(cases.len() >= 4, "{}: {cases:?}", scenario.name);
        each(&cases, |number| {
            timeless(async {
                let rig = scenario.rig();
                // As long as the API server lets a call wait; a run that was not disturbed is over by then.
                rig.wire.strike(*number, Strike::Late(60));
                let (mut rig, _) = scenario.play(rig).await?;
                rig.wait(Duration::from_mins(6)).await;
                let at = |why| format!("{}: call {number} landed late: {why}", scenario.name);
                laws::at_rest(&rig, &[NAME]).map_err(at)
            })
        });
    }
}

#[test]
fn a_write_that_lands_late_turns_nothing_back() {
    let mut count = 0;
    for scenario in sample(&all(), 4) {
        let (made, expected) = play(&scenario, |_| {}).expect(scenario.name);
        // An apply of the results creates them, too: after their object has gone they are the garbage collector's.
        let creates = |call: &Call| call.verb == "create" || call.resource == "configmaps";
        let changes = |made: &&Made| made.writes() && !creates(&made.call);
        // A successor is just at work, or long done: the API server lets no call wait for more than a minute.
        let cases: Vec<(&Made, u64)> = made
            .iter()
            .filter(changes)
            .flat_map(|made| [(made, 5), (made, 60)])
            .collect();
        count += cases.len();
        each(&sample(&cases, 3), |(made, seconds)| {
            let (name, call) = (scenario.name, &made.call);
            let at = |why| format!("{name}: {} {} landed {seconds} s late: {why}", call.verb, call.resource);
            let ending = timeless(async {
                let rig = scenario.rig();
                rig.wire.strike(made.number, Strike::Late(*seconds));
                let (mut rig, _) = scenario.play(rig).await?;
                rig.wait(Duration::from_mins(2)).await;
                laws::always(&rig)?;
                laws::at_rest(&rig, &[NAME])?;
                Ok(Ending::of(&rig))
            });
            let ending = ending.map_err(at)?;
            ending.matches(&expected).map_err(at)
        });
    }
    eprintln!("{count} writes landed late");
}

/// The object vanishes in the middle of a trial, and no garbage collector works.
async fn vanished() -> Rig {
    let mut rig = named("passing").rig();
    rig.start();
    named("passing").apply(&rig);
    rig.until(LIMIT, scenario::trial_runs).await.expect("a trial runs");
    rig.world.faults.no_garbage_collector = true;
    // Somebody's own, with all our labels.
    let mut copy = rig.server.objects("services").remove(0);
    let metadata = copy["metadata"].as_object_mut().expect("an object");
    metadata.retain(|field, _| matches!(field.as_str(), "namespace" | "labels"));
    copy["metadata"]["name"] = "copy".into();
    rig.server.put(copy);
    rig.server.delete("perfvalidations", NAMESPACE, NAME);
    rig.edit(NAME, |object| {
        object["metadata"]["finalizers"] = Value::Array(Vec::new());
    });
    assert!(rig.get(NAME).is_none());
    rig.wait(Duration::from_mins(30)).await;
    rig
}

fn count(rig: &Rig, plural: &str) -> usize {
    rig.server.objects(plural).len()
}

#[test]
fn what_a_vanished_object_leaves_is_reported() {
    let rig = timeless(vanished());
    let left: Vec<usize> = CREATED.iter().map(|plural| count(&rig, plural)).collect();
    assert_eq!(left, [1, 1, 2, 1], "one Service is somebody's copy");
    let events = rig.server.objects("events");
    let mut reported: Vec<&str> = events
        .iter()
        .filter(|event| event["reason"] == "TeardownUnconfirmed" && event["action"] == "Orphaned")
        .filter_map(|event| event["regarding"]["kind"].as_str())
        .collect();
    reported.sort_unstable();
    assert_eq!(
        reported,
        ["DynamoGraphDeployment", "Job", "ResourceClaimTemplate", "Service"]
    );
}

#[test]
fn what_cannot_be_seen_for_a_while_is_not_reported_again() {
    let reports = timeless(async {
        let mut rig = vanished().await;
        rig.server.fail(Fault::refuse("list", "jobs", 500));
        rig.wait(Duration::from_mins(15)).await;
        rig.server.heal();
        rig.wait(Duration::from_mins(15)).await;
        rig.server.objects("events")
    });
    let orphans: Vec<&Value> = reports.iter().filter(|event| event["action"] == "Orphaned").collect();
    assert_eq!(orphans.len(), 4, "one for each object: {orphans:#?}");
    let are_single = orphans.iter().all(|event| event["series"].is_null());
    assert!(are_single, "none was published again: {orphans:#?}");
}
