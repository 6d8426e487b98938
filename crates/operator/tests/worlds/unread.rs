//! Every kind of read fails for a while: unknown is not absent, so a run waits, says for what, and ends as if nothing had been.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use perfval_testkit::api_server::{ApiServer, Fault, Made};
use tokio::time::sleep;

use crate::faults::{PER_MINUTE, busiest_minute};
use crate::rig::{NAMESPACE, Rig};
use crate::scenario::{Ending, NAME, Scenario, all};
use crate::{each, play, sample};

/// Less than the shortest deadline of a run.
const LASTS: Duration = Duration::from_secs(100);

/// Longer than one pass, which waits for a log for half a minute.
const LONG: Duration = Duration::from_secs(45);

/// How a read fails, and how that is told.
const WAYS: [(Option<u16>, &str); 3] = [(Some(403), "403 "), (Some(500), "500 "), (None, "no result within")];

/// A kind of read, and how it fails.
type Case = (&'static str, String, (Option<u16>, &'static str));

/// Each kind of read that was made.
fn cases(made: &[Made]) -> Vec<Case> {
    let kinds: BTreeSet<_> = made
        .iter()
        .filter(|made| made.reads())
        .map(|made| (made.call.verb, made.call.resource.clone()))
        .collect();
    let in_each_way = |(verb, resource): (_, String)| WAYS.map(|way| (verb, resource.clone(), way));
    kinds.into_iter().flat_map(in_each_way).collect()
}

/// Reads work again after their time: whether the run was waiting then, with nothing new in its status for long.
fn waits_at_the_end(rig: &Rig) -> Arc<AtomicBool> {
    let (server, waits) = (rig.server.clone(), Arc::new(AtomicBool::new(false)));
    let shown = waits.clone();
    tokio::spawn(async move {
        let told = |server: &ApiServer| {
            let status = server.get("perfvalidations", NAMESPACE, NAME)?["status"].clone();
            let part = |field: &str| status[field].to_string();
            (status["phase"] != "Completed")
                .then(|| [part("phase"), part("message"), part("trials"), part("conditions")])
        };
        sleep(LASTS.saturating_sub(LONG)).await;
        let before = told(&server);
        sleep(LONG).await;
        shown.store(before.is_some() && before == told(&server), Ordering::Relaxed);
        server.heal();
    });
    waits
}

/// Whether any status ever said so.
fn was_reported(server: &ApiServer, what: &str) -> bool {
    let of_ours = |plural: &str| plural == "perfvalidations";
    server
        .changes_since(0)
        .iter()
        .any(|change| of_ours(&change.plural) && change.object["status"].to_string().contains(what))
}

fn play_unread(
    scenario: &Scenario,
    expected: &Ending,
    (verb, resource, (code, told)): &Case,
    would_wait: bool,
    waiting: &AtomicUsize,
) -> Result<Vec<Made>, String> {
    let mut seen = None;
    let (made, ending) = play(scenario, |rig| {
        rig.server.fail(match code {
            Some(code) => Fault::refuse(verb, resource, *code),
            None => Fault::hang(verb, resource),
        });
        seen = Some((rig.server.clone(), waits_at_the_end(rig)));
    })?;
    let (server, waits) = seen.expect("it was prepared");
    let waited = waits.load(Ordering::Relaxed) && !would_wait;
    waiting.fetch_add(usize::from(waited), Ordering::Relaxed);
    if waited && !was_reported(&server, told) {
        return Err(format!("it waited, and no status ever said {told:?}"));
    }
    ending.matches(expected).map(|()| made)
}

#[test]
fn a_read_that_fails_for_a_while_is_reported_and_changes_no_ending() {
    let (count, busiest, waiting) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    for scenario in all() {
        let mut waits = None;
        let undisturbed = play(&scenario, |rig| waits = Some(waits_at_the_end(rig)));
        let (made, expected) = undisturbed.expect(scenario.name);
        let would_wait = waits.expect("it was prepared").load(Ordering::Relaxed);
        let cases = cases(&made);
        count.fetch_add(cases.len(), Ordering::Relaxed);
        each(&sample(&cases, 4), |case| {
            let at = |why: String| format!("{}: {case:?}: {why}", scenario.name);
            let made = play_unread(&scenario, &expected, case, would_wait, &waiting).map_err(at)?;
            busiest_minute(&made, |_| true, PER_MINUTE, &busiest).map_err(at)
        });
    }
    let (count, busiest) = (count.load(Ordering::Relaxed), busiest.load(Ordering::Relaxed));
    let waiting = waiting.load(Ordering::Relaxed);
    eprintln!(
        "{count} kinds of reads failed for {} s; {waiting} runs waited; {busiest} calls in the busiest minute",
        LASTS.as_secs()
    );
    assert!(waiting > 0, "no run waited");
}
