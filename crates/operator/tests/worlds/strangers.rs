//! Somebody else was quicker: at every write of every scenario, the name that it is about is another's by then. What others
//! made stays as it is, what their Jobs say is not believed, and the run still ends.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use perfval_testkit::api_server::{Made, Strike, is_a_strangers};

use crate::rig::{NAMESPACE, Rig};
use crate::scenario::{LIMIT, NAME, Scenario, all};
use crate::{each, laws, play, sample, timeless};

/// Kinds of which others have objects under our names.
const KINDS: [&str; 6] = [
    "jobs",
    "dynamographdeployments",
    "services",
    "resourceclaimtemplates",
    "persistentvolumeclaims",
    "configmaps",
];

/// They take away what they made, but for an object of ours.
fn strangers_leave(rig: &Rig) {
    for plural in KINDS.into_iter().filter(|plural| rig.server.serves(plural)) {
        for object in rig
            .server
            .objects(plural)
            .iter()
            .filter(|object| is_a_strangers(object))
        {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            rig.server.delete(plural, NAMESPACE, name);
        }
    }
}

async fn usurped(scenario: &Scenario, number: usize) -> Result<(), String> {
    let mut rig = scenario.rig();
    rig.wire.strike(number, Strike::Usurp);
    // Where it cannot go on, its user waits in vain.
    let _ = scenario.play_in(&mut rig).await;
    rig.wait(Duration::from_mins(1)).await;
    laws::always(&rig)?;
    // Their pods may carry our labels, and a removal waits for those.
    strangers_leave(&rig);
    rig.until(LIMIT, |rig| laws::rests(rig, NAME))
        .await
        .map_err(|why| format!("it never rests: {why}"))?;
    rig.wait(Duration::from_mins(6)).await;
    laws::always(&rig)?;
    laws::at_rest(&rig, &[NAME])
}

#[test]
fn a_name_that_somebody_else_has_by_then_is_left_alone() {
    let count = AtomicUsize::new(0);
    for scenario in sample(&all(), 4) {
        let (made, _) = play(&scenario, |_| {}).expect(scenario.name);
        let has_a_name = |made: &&Made| made.writes() && made.call.name.is_some() && made.call.resource != "events";
        let cases: Vec<&Made> = made.iter().filter(has_a_name).collect();
        count.fetch_add(cases.len(), Ordering::Relaxed);
        each(&sample(&cases, 3), |made| {
            let call = &made.call;
            let at = |why| {
                let (verb, resource, name) = (call.verb, &call.resource, &call.name);
                format!(
                    "{}: call {}, {verb} {resource} {name:?}, usurped: {why}",
                    scenario.name, made.number
                )
            };
            timeless(usurped(&scenario, made.number)).map_err(at)
        });
    }
    eprintln!("{} names taken", count.load(Ordering::Relaxed));
}
