//! Cost of a healthy run: its writes, and its requests while it waits and measures.
//!
//! Workers need 75 s to load, and a trial measures for a minute: the times of a model whose weights are on the node.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use perfval_testkit::api_server::Made;
use perfval_testkit::inventory::Cluster as Hardware;
use perfval_testkit::stored::operator_state;
use perfval_testkit::world::Play;
use serde_json::Value;

use crate::rig::{NAMESPACE, Rig};
use crate::scenario::{NAME, named};
use crate::timeless;

/// Times of a run (s).
struct Course {
    /// Of the first worker until it serves, and of the last one.
    loads: [i64; 2],
    /// Of the first pod from its deletion until it is gone, and of the last one.
    ends: [i64; 2],
    measures: i64,
}

/// Time of another pod until its container runs (s).
const STARTS: i64 = 5;

const USUAL: Course = Course {
    loads: [75, 75],
    ends: [2, 2],
    measures: 60,
};

/// The run of 8 minutes that the goal for a fleet assumes, with engines that end slowly. Before a removal read only the pods that end,
/// it made 123 requests.
const LONG: Course = Course {
    loads: [180, 270],
    ends: [20, 30],
    measures: 180,
};

impl Play for Course {
    fn starts_after(&self, pod: &Value) -> i64 {
        if pod["metadata"]["labels"]["perfvalidation.dev/component"] != "worker" {
            return STARTS;
        }
        spread(self.loads, pod)
    }

    fn ends_after(&self, pod: &Value) -> i64 {
        spread(self.ends, pod)
    }

    fn trial_lasts(&self, _: &Value) -> i64 {
        self.measures
    }
}

/// Time of a pod between the first and the last one.
fn spread([first, last]: [i64; 2], pod: &Value) -> i64 {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let place: i64 = name.bytes().map(|byte| i64::from(byte) * 11).sum();
    first + place % (last - first + 1)
}

/// Requests of a run, by the phase in which they were made.
struct Cost {
    /// Phases with the version of the objects at which each began.
    phases: Vec<(String, u64)>,
    made: Vec<Made>,
    watches: Vec<Made>,
}

impl Cost {
    fn of(rig: &Rig) -> Self {
        let mut phases: Vec<(String, u64)> = vec![(String::new(), 0)];
        for change in rig.server.changes_since(0) {
            let phase = change.object["status"]["phase"].as_str().unwrap_or_default();
            let version = change.object["metadata"]["resourceVersion"].as_str();
            let version = version.and_then(|version| version.parse().ok()).unwrap_or_default();
            let is_next = phases.last().is_some_and(|(last, _)| last != phase);
            if change.plural == "perfvalidations" && is_next {
                phases.push((phase.to_owned(), version));
            }
        }
        // All runs share the watches of the inventory.
        let (watches, made) = rig.wire.made().into_iter().partition(|made| made.call.verb == "watch");
        Self { phases, made, watches }
    }

    fn phase(&self, made: &Made) -> &str {
        let began = self.phases.iter().rev().find(|(_, version)| *version <= made.after);
        began.map_or("", |(phase, _)| phase)
    }

    fn writes(&self) -> usize {
        self.made.iter().filter(|made| made.writes()).count()
    }

    /// Requests of a phase in a minute.
    fn a_minute(&self, phase: &str) -> f64 {
        let of_phase: Vec<&Made> = self.made.iter().filter(|made| self.phase(made) == phase).collect();
        let (first, last) = (of_phase.first(), of_phase.last());
        let lasted = first
            .zip(last)
            .map_or(1.0, |(first, last)| (last.at - first.at).as_secs_f64());
        f64::from(u32::try_from(of_phase.len()).unwrap_or(u32::MAX)) * 60.0 / lasted
    }

    fn table(&self) -> String {
        let mut rows: BTreeMap<(bool, String), BTreeMap<&str, usize>> = BTreeMap::new();
        for made in &self.made {
            let dry = if made.call.dry_run { " (dry run)" } else { "" };
            let what = format!("{} {}{dry}", made.call.verb, made.call.resource);
            *rows
                .entry((!made.writes(), what))
                .or_default()
                .entry(self.phase(made))
                .or_default() += 1;
        }
        let mut table = String::new();
        if std::env::var_os("PERFVAL_TIMELINE").is_some() {
            let first = self.made.first().map(|made| made.at);
            for made in &self.made {
                let at = first.map_or(0.0, |first| (made.at - first).as_secs_f64());
                let (verb, resource, name) = (made.call.verb, &made.call.resource, &made.call.name);
                let _ = writeln!(table, "{at:>7.2} s {:<16} {verb} {resource} {name:?}", self.phase(made));
            }
        }
        for ((reads, what), by_phase) in rows {
            let all: usize = by_phase.values().sum();
            let kind = if reads { "read " } else { "write" };
            let _ = writeln!(table, "{kind} {all:>4} {what}: {by_phase:?}");
        }
        let _ = writeln!(table, "{} writes, {} requests", self.writes(), self.made.len());
        for (phase, _) in &self.phases {
            let _ = writeln!(table, "{phase}: {:.1} requests a minute", self.a_minute(phase));
        }
        table
    }
}

async fn usual_run() -> Cost {
    let mut rig = named("passing").rig();
    rig.world.play = Some(Box::new(USUAL));
    played(rig, "passing").await
}

/// A run on eight GPUs with one trial, like those of a policy.
async fn long_run() -> Cost {
    let scenario = "passing with one trial";
    let mut rig = named(scenario).rig();
    for object in Hardware::of_gpus(8).objects() {
        rig.server.put(object);
    }
    rig.world.play = Some(Box::new(LONG));
    played(rig, scenario).await
}

async fn played(rig: Rig, scenario: &str) -> Cost {
    let scenario = named(scenario);
    let (rig, ending) = scenario.play(rig).await.expect("it ends");
    scenario.ends_well(&rig, &ending).expect("it passes");
    let state = operator_state(&rig.get(NAME).unwrap_or_default()["status"]);
    assert_eq!(state["unattendedSeconds"], Value::Null, "each pause was remembered");
    Cost::of(&rig)
}

/// Writes of a run with two trials, of which each adds five: two of its Job, two of the status, one of its progress.
const WRITES: usize = 25;
/// Requests of the run, and in each minute in which it waits for its workers or measures.
const REQUESTS: usize = 109;
/// Watches meanwhile: of four kinds, each for half a minute.
const WATCHES: usize = 40;
const A_MINUTE: f64 = 18.0;

#[test]
fn a_healthy_run_makes_few_writes() {
    let cost = timeless(usual_run());
    println!("{}", cost.table());
    assert!(cost.writes() <= WRITES, "{}", cost.table());
}

#[test]
fn a_run_that_waits_and_measures_makes_few_requests() {
    let cost = timeless(usual_run());
    assert!(cost.made.len() <= REQUESTS, "{}", cost.table());
    assert!(cost.watches.len() <= WATCHES, "{}", cost.watches.len());
    for phase in ["WaitingForReady", "Benchmarking"] {
        assert!(cost.a_minute(phase) <= A_MINUTE, "{}", cost.table());
    }
}

#[test]
fn one_look_checks_the_gpus_and_opens_the_first_trial() {
    let cost = timeless(usual_run());
    let is_probe = |made: &Made| made.call.resource.ends_with("/proxy");
    let completion = cost.made.iter().rposition(is_probe).expect("a probe");
    let after = cost.made[completion + 1..].iter().take_while(|made| !made.writes());
    let own = after.filter(|made| made.call.namespace.as_deref() == Some(NAMESPACE));
    let lists = own.filter(|made| (made.call.verb, made.call.resource.as_str()) == ("list", "pods"));
    assert_eq!(lists.count(), 1, "{}", cost.table());
}

/// Requests of a run of eight minutes. 100 of them at once share some, and make less than 20 a second (`just fleet 5000 0.33 100`).
const REQUESTS_OF_A_LONG_RUN: usize = 104;

#[test]
fn a_long_run_makes_few_requests() {
    let cost = timeless(long_run());
    println!("{}", cost.table());
    assert!(cost.made.len() <= REQUESTS_OF_A_LONG_RUN, "{}", cost.table());
}
