//! Runs that are played again and again, and how each of them ends.

mod stories;

use std::collections::BTreeMap;
use std::time::Duration;

use perfval_testkit::stored::operator_state;
use perfval_testkit::world::Trial;
use serde_json::{Value, json};

use crate::rig::{NAMESPACE, Rig};
pub use stories::{all, lagging, tensor_parallel};

/// Name of the object that every scenario is about.
pub const NAME: &str = "h100";
/// No scenario lasts longer, whatever goes wrong once.
pub const LIMIT: Duration = Duration::from_mins(40);

/// Whether it is time, and what is then done.
type Act = (fn(&Rig) -> bool, fn(&mut Rig));

/// A run, and what its user does meanwhile.
#[derive(Clone)]
pub struct Scenario {
    pub name: &'static str,
    spec: fn() -> Value,
    trials: &'static [Trial],
    versions: &'static [&'static str],
    operator_version: &'static str,
    /// What the user does, each once the one before was done and this is so.
    acts: &'static [Act],
    pub over: fn(&Rig) -> bool,
    /// Verdict and reason in which it ends; empty for an object that is gone.
    ends: &'static str,
}

fn spec() -> Value {
    json!({
        "model": {"name": "lab/tiny"},
        "workload": {"dynamo": {"image": "localhost/dynamo:1.4.2"}},
        "gates": [{"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1000"}],
    })
}

fn with(change: &Value) -> Value {
    let mut spec = spec();
    json_patch::merge(&mut spec, change);
    spec
}

fn is(rig: &Rig, phase: &str) -> bool {
    rig.phase(NAME) == phase
}

fn run(rig: &Rig) -> i64 {
    rig.get(NAME).unwrap_or_default()["status"]["run"]["number"]
        .as_i64()
        .unwrap_or(0)
}

fn is_gone(rig: &Rig) -> bool {
    rig.get(NAME).is_none()
}

fn is_over(rig: &Rig) -> bool {
    is(rig, "Completed")
}

fn delete(rig: &mut Rig) {
    rig.server.delete("perfvalidations", NAMESPACE, NAME);
}

pub fn trial_runs(rig: &Rig) -> bool {
    is(rig, "Benchmarking") && !rig.server.objects("jobs").is_empty()
}

/// Whether the time for removal has passed.
fn is_unconfirmed(rig: &Rig) -> bool {
    let object = rig.get(NAME).unwrap_or_default();
    let conditions = object["status"]["conditions"].as_array();
    conditions.is_some_and(|all| all.iter().any(|one| one["reason"] == "TeardownUnconfirmed"))
}

/// Whether a controller has been refused for so long (s).
fn refused_for(rig: &Rig, seconds: i64) -> bool {
    let events = rig.server.objects("events");
    let mut refusals = events.iter().filter(|event| event["reason"] == "FailedCreate");
    refusals.any(|event| rig.age_of(event) >= seconds)
}

/// Whether there have been pods for so long (s).
fn pods_for(rig: &Rig, seconds: i64) -> bool {
    let pods = rig.server.objects("pods");
    pods.iter().any(|pod| rig.age_of(pod) >= seconds)
}

const BASE: Scenario = Scenario {
    name: "",
    spec,
    trials: &[Trial::Good],
    versions: &["v1alpha1", "v1beta1"],
    operator_version: "1.4.2",
    acts: &[],
    over: is_over,
    ends: "Passed",
};

/// It ends with the object.
const GONE: Scenario = Scenario {
    over: is_gone,
    ends: "",
    ..BASE
};

/// The scenario of a name.
pub fn named(name: &str) -> Scenario {
    let found = all().into_iter().find(|scenario| scenario.name == name);
    found.unwrap_or_else(|| panic!("no scenario is called {name}"))
}

impl Scenario {
    /// The world in which it is played, before anything happened.
    pub fn rig(&self) -> Rig {
        let mut rig = Rig::new(self.versions, self.operator_version);
        rig.world.faults.trials = self.trials.to_vec();
        rig
    }

    /// The user creates the object.
    pub fn apply(&self, rig: &Rig) {
        rig.apply(NAME, &(self.spec)());
    }

    /// Plays it to its end, in a world that may have something in store.
    pub async fn play(&self, mut rig: Rig) -> Result<(Rig, Ending), String> {
        self.play_in(&mut rig).await?;
        // Whatever still comes after the end.
        rig.wait(Duration::from_secs(40)).await;
        let ending = Ending::of(&rig);
        Ok((rig, ending))
    }

    /// Plays it until it is over; the error says what never came.
    pub async fn play_in(&self, rig: &mut Rig) -> Result<(), String> {
        rig.start();
        self.apply(rig);
        for (number, (when, act)) in self.acts.iter().enumerate() {
            let waited = rig.until(LIMIT, when).await;
            waited.map_err(|why| format!("step {number} of the user: {why}\n{}", shown(rig)))?;
            act(rig);
        }
        let ended = rig.until(LIMIT, self.over).await;
        ended.map_err(|why| format!("the end: {why}\n{}", shown(rig)))
    }

    /// Whether it ended as its story says.
    pub fn ends_well(&self, rig: &Rig, ending: &Ending) -> Result<(), String> {
        let text = |field: &str| ending.status[field].as_str().unwrap_or_default();
        let is = format!("{} {}", text("verdict"), text("reason"));
        let is_it = is.starts_with(self.ends) && (!self.ends.is_empty() || is.trim().is_empty());
        let what = || format!("it ended in {is:?} instead of {:?}\n{}", self.ends, shown(rig));
        if is_it { Ok(()) } else { Err(what()) }
    }
}

fn shown(rig: &Rig) -> String {
    let object = rig.get(NAME).unwrap_or_default();
    let made = rig.wire.made();
    let last: Vec<String> = made.iter().rev().take(12).map(|made| format!("{made:?}")).collect();
    format!(
        "{}\nlast calls:\n{}",
        serde_json::to_string_pretty(&object["status"]).unwrap_or_default(),
        last.join("\n")
    )
}

/// How a scenario ended, as far as it is the same each time.
#[derive(Debug, PartialEq, Eq)]
pub struct Ending {
    status: Value,
    objects: Vec<String>,
    /// How often the operator's objects were created.
    created: BTreeMap<String, usize>,
}

/// Kinds of which the operator creates objects, or has others create them.
const CHILDREN: [&str; 9] = [
    "perfvalidations",
    "jobs",
    "dynamographdeployments",
    "services",
    "resourceclaimtemplates",
    "persistentvolumeclaims",
    "configmaps",
    "pods",
    "resourceclaims",
];

impl Ending {
    pub fn of(rig: &Rig) -> Self {
        let object = rig.get(NAME).unwrap_or_default();
        let full = &object["status"];
        let part = |all: &Value, fields: &[&str]| -> Value {
            let all = all.as_array().cloned().unwrap_or_default();
            all.iter()
                .map(|one| fields.iter().map(|field| one[*field].clone()).collect::<Value>())
                .collect()
        };
        let state = operator_state(full);
        let status = json!({
            "phase": full["phase"], "verdict": full["verdict"], "reason": full["reason"],
            "run": [full["run"]["number"], full["run"]["trigger"], full["workload"]["name"], state["leftovers"]],
            "trials": part(&state["trials"], &["number", "outcome", "seed", "throughput", "soak"]),
            "gates": part(&full["gates"], &["name", "observed", "result"]),
            "conditions": part(&full["conditions"], &["type", "status", "reason"]),
            "history": part(&state["history"], &["run", "verdict", "reason", "throughput"]),
            "results": full["resultsRef"]["name"],
        });
        let named = |plural: &&str| {
            let objects = rig.server.objects(plural);
            let plural = (*plural).to_owned();
            objects.into_iter().map(move |object| {
                let kept = &object["metadata"]["finalizers"];
                format!(
                    "{plural}/{} {kept}",
                    object["metadata"]["name"].as_str().unwrap_or_default()
                )
            })
        };
        let mut created = BTreeMap::new();
        for change in rig.server.changes_since(0) {
            let by_us = CHILDREN[1..7].contains(&change.plural.as_str());
            if change.kind == "ADDED" && by_us {
                *created.entry(format!("{}/{}", change.plural, change.name)).or_default() += 1;
            }
        }
        Self {
            status,
            objects: CHILDREN.iter().flat_map(named).collect(),
            created,
        }
    }

    /// The error says what differs from how it should have ended.
    pub fn matches(&self, expected: &Self) -> Result<(), String> {
        if let Some((name, times)) = self.created.iter().find(|(_, times)| **times > 1) {
            return Err(format!("{name} was created {times} times"));
        }
        let show = |what: &str, is: &dyn std::fmt::Debug, was: &dyn std::fmt::Debug| {
            format!("{what}:\n   it is {is:?}\ninstead of {was:?}")
        };
        if self.status != expected.status {
            return Err(show("status", &self.status.to_string(), &expected.status.to_string()));
        }
        if self.objects != expected.objects {
            return Err(show("objects", &self.objects, &expected.objects));
        }
        Ok(())
    }
}
