//! What is true of every world.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::NAMES;
use crate::rig::Rig;

/// Whether an object is gone, or its run is over.
pub fn rests(rig: &Rig, name: &str) -> bool {
    rig.get(name).is_none() || matches!(rig.phase(name).as_str(), "Completed" | "Suspended")
}

/// All laws.
pub fn hold(rig: &Rig) -> Result<(), String> {
    let statuses = statuses(rig);
    for history in statuses.values() {
        a_verdict_stays(history)?;
        a_wait_is_explained(history)?;
    }
    only_what_was_measured_is_said(rig, &statuses)?;
    a_node_has_one_run(rig)?;
    nothing_is_left(rig)
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

fn only_what_was_measured_is_said(rig: &Rig, statuses: &BTreeMap<String, Vec<Value>>) -> Result<(), String> {
    let mut ended: BTreeSet<String> = BTreeSet::new();
    for change in rig.server.changes_since(0) {
        let conditions = change.object["status"]["conditions"].as_array();
        let over = conditions.is_some_and(|all| {
            all.iter()
                .any(|one| one["type"] == "Complete" && one["status"] == "True")
        });
        if change.plural == "jobs" && over {
            ended.insert(change.name);
        }
    }
    for status in statuses
        .values()
        .flatten()
        .filter(|status| status["run"]["judgedRun"].is_null())
    {
        let id = status["run"]["id"].as_str().unwrap_or_default();
        let mut numbers = BTreeSet::new();
        for trial in status["trials"].as_array().into_iter().flatten() {
            let job = format!("pv-{id}-t{}", trial["number"]);
            let measured =
                matches!(trial["outcome"].as_str(), Some("Pass" | "Miss")) && trial["throughput"].is_string();
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

fn nothing_is_left(rig: &Rig) -> Result<(), String> {
    let plurals = [
        "jobs",
        "dynamographdeployments",
        "services",
        "resourceclaimtemplates",
        "pods",
        "resourceclaims",
    ];
    let all_rest = NAMES.iter().all(|name| rests(rig, name));
    let left: Vec<String> = plurals
        .into_iter()
        .flat_map(|plural| rig.server.objects(plural))
        .map(|object| format!("{} {}", object["kind"], object["metadata"]["name"]))
        .collect();
    if all_rest && !left.is_empty() {
        let of = |name: &&str| rig.get(name).map(|object| object["status"]["conditions"].clone());
        let conditions: Vec<Value> = NAMES.iter().filter_map(of).collect();
        return Err(format!(
            "left behind: {left:?}\n{}",
            serde_json::to_string_pretty(&conditions).unwrap_or_default()
        ));
    }
    Ok(())
}
