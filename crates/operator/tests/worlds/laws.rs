//! What is true of every world.

mod creates;
mod one_spec;
mod others;

use std::collections::{BTreeMap, BTreeSet};

use perfval_testkit::api_server::{Made, is_a_strangers, is_forced};
use serde_json::Value;

use crate::rig::Rig;

/// Whether an object is gone, or its run is over.
pub fn rests(rig: &Rig, name: &str) -> bool {
    rig.get(name).is_none() || matches!(rig.phase(name).as_str(), "Completed" | "Suspended")
}

/// What holds at every moment of every world.
pub fn always(rig: &Rig) -> Result<(), String> {
    let statuses = statuses(rig);
    for history in statuses.values() {
        a_verdict_stays(history)?;
        a_wait_is_explained(history)?;
    }
    only_measurements_are_reported(rig, &statuses)?;
    a_phase_follows_an_arrow(&statuses)?;
    one_spec::a_verdict_is_of_its_own_spec(rig)?;
    creates::a_run_that_is_over_creates_nothing(rig)?;
    others::what_others_made_is_theirs(rig)?;
    others::a_status_is_of_its_own_object(&statuses)?;
    a_removal_is_confirmed_by_the_truth(rig)?;
    a_pod_ends_in_its_own_time(rig)?;
    a_node_has_one_run(rig)
}

/// Every status that an object ever had, by its uid.
fn statuses(rig: &Rig) -> BTreeMap<String, Vec<Value>> {
    let mut all: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for change in rig.server.changes_since(0) {
        if change.plural == "perfvalidations" {
            let uid = change.object["metadata"]["uid"].as_str().unwrap_or_default();
            all.entry(uid.to_owned())
                .or_default()
                .push(change.object["status"].clone());
        }
    }
    all
}

fn a_verdict_stays(history: &[Value]) -> Result<(), String> {
    for pair in history.windows(2) {
        let same_run = pair[0]["run"]["number"] == pair[1]["run"]["number"];
        if same_run && !pair[0]["verdict"].is_null() && pair[0]["verdict"] != pair[1]["verdict"] {
            return Err(format!(
                "a verdict changed from {} to {}",
                pair[0]["verdict"], pair[1]["verdict"]
            ));
        }
    }
    Ok(())
}

fn a_wait_is_explained(history: &[Value]) -> Result<(), String> {
    let silent = |status: &&Value| !status["phase"].is_null() && status["message"].as_str().is_none_or(str::is_empty);
    match history.iter().find(silent) {
        Some(status) => Err(format!("no message: {status}")),
        None => Ok(()),
    }
}

fn only_measurements_are_reported(rig: &Rig, statuses: &BTreeMap<String, Vec<Value>>) -> Result<(), String> {
    let mut ended: BTreeSet<String> = BTreeSet::new();
    for change in rig.server.changes_since(0) {
        let conditions = change.object["status"]["conditions"].as_array();
        let over = conditions.is_some_and(|all| {
            all.iter()
                .any(|one| one["type"] == "Complete" && one["status"] == "True")
        });
        if change.plural == "jobs" && over && !is_a_strangers(&change.object) {
            ended.insert(change.name);
        }
    }
    for status in statuses
        .values()
        .flatten()
        .filter(|status| status["operatorState"]["judgedRun"].is_null())
    {
        let deployment = status["workload"]["name"].as_str().unwrap_or_default();
        let mut numbers = BTreeSet::new();
        for trial in status["trials"].as_array().into_iter().flatten() {
            let job = format!("{deployment}-t{}", trial["number"]);
            let measured =
                matches!(trial["outcome"].as_str(), Some("Pass" | "Miss")) && trial["outputTokensPerSecond"].is_i64();
            if measured && !ended.contains(&job) {
                return Err(format!("{job} never ended, and its trial says {trial}"));
            }
            if !numbers.insert(trial["number"].to_string()) {
                return Err(format!("{job} is counted twice"));
            }
        }
        let judged = matches!(status["verdict"].as_str(), Some("Passed" | "Failed"));
        if judged && numbers.is_empty() {
            return Err(format!("a verdict without a trial: {status}"));
        }
    }
    Ok(())
}

/// Where a run may go from a phase; from each of them to its removal, too.
const ARROWS: [(&str, &[&str]); 9] = [
    ("Pending", &["Sizing", "Completed"]),
    ("Sizing", &["Deploying", "Completed"]),
    ("Deploying", &["WaitingForReady", "Sizing"]),
    ("WaitingForReady", &["Benchmarking", "Evaluating", "Sizing"]),
    ("Benchmarking", &["Evaluating", "WaitingForReady"]),
    ("Evaluating", &["Completed"]),
    ("CleaningUp", &["Completed", "Suspended"]),
    ("Completed", &[]),
    ("Suspended", &[]),
];

/// A decision on an old copy of the object would turn its run back.
fn a_phase_follows_an_arrow(statuses: &BTreeMap<String, Vec<Value>>) -> Result<(), String> {
    for pair in statuses.values().flat_map(|history| history.windows(2)) {
        let [before, after] = pair else { continue };
        let phase = |status: &Value| status["phase"].as_str().unwrap_or_default().to_owned();
        let (from, to) = (phase(before), phase(after));
        // What the CRD says of an object that nobody has looked at.
        if before["observedGeneration"] == -1 {
            continue;
        }
        let number = |status: &Value| status["run"]["number"].as_i64().unwrap_or_default();
        if number(after) < number(before) {
            return Err(format!("run {} follows run {}", number(after), number(before)));
        }
        let goes_on = number(after) > number(before) || from == to || from.is_empty() || to == "CleaningUp";
        let follows = ARROWS
            .iter()
            .any(|(known, next)| *known == from && next.contains(&to.as_str()));
        if !goes_on && !follows {
            return Err(format!("from {from} to {to}"));
        }
    }
    Ok(())
}

/// Whoever reads that nothing is left, or sees the object gone, relies on it.
fn a_removal_is_confirmed_by_the_truth(rig: &Rig) -> Result<(), String> {
    let mut there: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for change in rig.server.changes_since(0) {
        let object = &change.object;
        if change.plural == "perfvalidations" {
            let status = &object["status"];
            let rests = matches!(status["phase"].as_str(), Some("Completed" | "Suspended"));
            // An object that had no run yet confirms nothing, not even one that took another's name.
            let run = &status["run"];
            let confirmed = rests && !run.is_null() && status["operatorState"]["leftovers"].is_null();
            let left = there.get(&change.name).filter(|left| !left.is_empty());
            let gone = change.kind == "DELETED" && !is_forced(object);
            if let Some(left) = left.filter(|_| confirmed || gone) {
                return Err(format!("{} says that nothing is left of {left:?}", change.name));
            }
            continue;
        }
        let relevant = CREATED
            .into_iter()
            .chain(["pods", "resourceclaims"])
            .any(|plural| plural == change.plural);
        let Some(of) = object["metadata"]["labels"]["perfvalidation.dev/name"].as_str() else {
            continue;
        };
        if !relevant || is_a_strangers(object) {
            continue;
        }
        let (of, what) = (of.to_owned(), format!("{} {}", change.plural, change.name));
        if change.kind == "DELETED" {
            there.entry(of).or_default().remove(&what);
        } else {
            there.entry(of).or_default().insert(what);
        }
    }
    Ok(())
}

/// Kinds of which a run creates objects that it removes again.
pub const CREATED: [&str; 4] = ["jobs", "dynamographdeployments", "services", "resourceclaimtemplates"];

/// A pod that is deleted by force hands its GPU out while it still computes.
fn a_pod_ends_in_its_own_time(rig: &Rig) -> Result<(), String> {
    let deletes = |made: &&Made| made.call.verb == "delete" && made.call.resource == "pods";
    match rig.wire.made().iter().find(deletes) {
        Some(made) => Err(format!("the operator deleted a pod: {made:?}")),
        None => Ok(()),
    }
}

/// Pods of two runs never hold GPUs of one node at once.
fn a_node_has_one_run(rig: &Rig) -> Result<(), String> {
    let mut holders: BTreeMap<String, (String, String)> = BTreeMap::new();
    for change in rig
        .server
        .changes_since(0)
        .into_iter()
        .filter(|change| change.plural == "pods")
    {
        let labels = &change.object["metadata"]["labels"];
        if labels["perfvalidation.dev/component"] != "worker" {
            continue;
        }
        let (Some(run), Some(node)) = (
            labels["perfvalidation.dev/run"].as_str(),
            change.object["spec"]["nodeName"].as_str(),
        ) else {
            continue;
        };
        if change.kind == "DELETED" {
            holders.remove(&change.name);
            continue;
        }
        holders.insert(change.name.clone(), (node.to_owned(), run.to_owned()));
        if let Some(other) = holders.values().find(|(there, other)| there == node && other != run) {
            return Err(format!("runs {run} and {} both have workers on {node}", other.1));
        }
    }
    Ok(())
}

/// What holds once every object of these names rests.
pub fn at_rest(rig: &Rig, names: &[&str]) -> Result<(), String> {
    let plurals = CREATED.into_iter().chain(["pods", "resourceclaims"]);
    let left: Vec<String> = plurals
        .flat_map(|plural| rig.server.objects(plural))
        .filter(|object| !is_a_strangers(object))
        .map(|object| format!("{} {}", object["kind"], object["metadata"]["name"]))
        .collect();
    if left.is_empty() || !names.iter().all(|name| rests(rig, name)) {
        return Ok(());
    }
    let of = |name: &&str| rig.get(name).map(|object| object["status"]["conditions"].clone());
    let conditions: Vec<Value> = names.iter().filter_map(of).collect();
    Err(format!(
        "left behind: {left:?}\n{}",
        serde_json::to_string_pretty(&conditions).unwrap_or_default()
    ))
}
