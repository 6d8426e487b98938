//! What is true of every world on a real cluster, of what its watches brought.

use std::collections::{BTreeMap, BTreeSet};

use perfval_api::meta::{NAME_LABEL, RUN_LABEL};
use perfval_run::names::run_id;
use serde_json::Value;

use super::history::{Change, VALIDATIONS};

/// A law that was broken, in words.
pub type Broken = String;

/// What holds of the objects of one namespace at every moment.
pub fn of_a_world(changes: &[Change]) -> Result<(), Broken> {
    for history in statuses(changes).values() {
        a_verdict_stays(history)?;
        a_wait_is_explained(history)?;
        a_phase_follows_an_arrow(history)?;
    }
    a_run_that_is_over_creates_nothing(changes)?;
    a_removal_is_confirmed_by_the_truth(changes)
}

/// Every status that each object had, by its uid, and whether some before it may have been missed.
fn statuses(changes: &[Change]) -> BTreeMap<&str, Vec<(&Value, bool)>> {
    let mut all: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for change in changes.iter().filter(|change| change.plural == VALIDATIONS) {
        let status = (&change.object["status"], change.after_gap);
        all.entry(change.metadata("uid")).or_default().push(status);
    }
    all
}

fn text<'a>(status: &'a Value, field: &str) -> &'a str {
    status[field].as_str().unwrap_or_default()
}

fn number(status: &Value) -> i64 {
    status["run"]["number"].as_i64().unwrap_or_default()
}

fn a_verdict_stays(history: &[(&Value, bool)]) -> Result<(), Broken> {
    for pair in history.windows(2) {
        let (before, after) = (pair[0].0, pair[1].0);
        if number(before) == number(after) && !before["verdict"].is_null() && before["verdict"] != after["verdict"] {
            return Err(format!(
                "the verdict of run {} changed from {} to {}",
                number(before),
                before["verdict"],
                after["verdict"]
            ));
        }
    }
    Ok(())
}

fn a_wait_is_explained(history: &[(&Value, bool)]) -> Result<(), Broken> {
    let silent =
        |(status, _): &&(&Value, bool)| !text(status, "phase").is_empty() && text(status, "message").is_empty();
    match history.iter().find(silent) {
        Some((status, _)) => Err(format!("no message: {status}")),
        None => Ok(()),
    }
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

fn a_phase_follows_an_arrow(history: &[(&Value, bool)]) -> Result<(), Broken> {
    for pair in history.windows(2) {
        let ((before, _), (after, after_gap)) = (pair[0], pair[1]);
        let (from, to) = (text(before, "phase"), text(after, "phase"));
        if number(after) < number(before) {
            return Err(format!("run {} follows run {}", number(after), number(before)));
        }
        // What the CRD says of an object that nobody has looked at.
        let unseen = before["observedGeneration"] == -1 || from.is_empty();
        let goes_on = number(after) > number(before) || from == to || to == "CleaningUp";
        let follows = ARROWS.iter().any(|(known, next)| *known == from && next.contains(&to));
        if !(after_gap || unseen || goes_on || follows) {
            return Err(format!("run {} went from {from} to {to}", number(after)));
        }
    }
    Ok(())
}

/// Kinds that the operator itself creates; pods and claims come from others, some time later.
const CREATED: [&str; 4] = ["jobs", "dynamographdeployments", "services", "resourceclaimtemplates"];

fn label<'a>(change: &'a Change, key: &str) -> &'a str {
    change.object["metadata"]["labels"][key].as_str().unwrap_or_default()
}

/// What a run creates after its last phase is left behind, or costs a removal of its own.
fn a_run_that_is_over_creates_nothing(changes: &[Change]) -> Result<(), Broken> {
    let mut known = BTreeSet::new();
    for (at, change) in changes.iter().enumerate() {
        let is_new = change.plural != VALIDATIONS && known.insert(change.metadata("uid"));
        if !is_new || !CREATED.contains(&change.plural) || change.after_gap {
            continue;
        }
        let run = label(change, RUN_LABEL);
        let of_run = |change: &&Change| {
            let number = change.object["status"]["run"]["number"].as_i64();
            change.plural == VALIDATIONS && number.is_some_and(|number| run_id(change.metadata("uid"), number) == run)
        };
        // The phase then is not known where the next status comes after a gap.
        let (before, after) = changes.split_at(at);
        if after.iter().find(of_run).is_some_and(|next| next.after_gap) {
            continue;
        }
        let last = before.iter().rev().find(of_run);
        let phase = last.map_or("", |change| text(&change.object["status"], "phase"));
        if !matches!(phase, "Deploying" | "WaitingForReady" | "Benchmarking") {
            return Err(format!("{} was created in {phase:?}", change.named()));
        }
    }
    Ok(())
}

/// Whoever reads that nothing is left, or sees the object gone, relies on it.
fn a_removal_is_confirmed_by_the_truth(changes: &[Change]) -> Result<(), Broken> {
    let mut there: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for change in changes {
        if change.plural != VALIDATIONS {
            let left = there.entry(label(change, NAME_LABEL)).or_default();
            if change.gone {
                left.remove(&change.named());
            } else {
                left.insert(change.named());
            }
            continue;
        }
        let status = &change.object["status"];
        let rests = matches!(text(status, "phase"), "Completed" | "Suspended");
        let confirmed = rests && status["operatorState"]["leftovers"].is_null();
        let left = there
            .get(change.metadata("name"))
            .filter(|left| !left.is_empty() && !change.after_gap);
        if let Some(left) = left.filter(|_| confirmed || change.gone) {
            return Err(format!("{} says that nothing is left of {left:?}", change.named()));
        }
    }
    Ok(())
}

/// GPUs of a node are never held by two runs at once. `changes`: of all namespaces.
pub fn one_run_has_a_node(changes: &[Change]) -> Result<(), Broken> {
    let mut holders: BTreeMap<&str, (Vec<&str>, &str)> = BTreeMap::new();
    for change in changes.iter().filter(|change| change.plural == "resourceclaims") {
        let uid = change.metadata("uid");
        let results = change.object["status"]["allocation"]["devices"]["results"].as_array();
        let pools: Vec<&str> = results
            .into_iter()
            .flatten()
            .filter_map(|result| result["pool"].as_str())
            .collect();
        if change.gone || pools.is_empty() {
            holders.remove(uid);
            continue;
        }
        let run = label(change, RUN_LABEL);
        let other = holders
            .values()
            .find(|(there, other)| *other != run && there.iter().any(|pool| pools.contains(pool)));
        if let Some((_, other)) = other {
            return Err(format!(
                "runs {other} and {run} both held GPUs of {pools:?} at revision {}",
                change.revision
            ));
        }
        holders.insert(uid, (pools, run));
    }
    Ok(())
}

/// Whether an object is over: completed or suspended, and nothing of it left.
pub fn rests(object: &Value) -> bool {
    let status = &object["status"];
    matches!(text(status, "phase"), "Completed" | "Suspended")
        && status["operatorState"]["leftovers"].is_null()
        && status["observedGeneration"] == object["metadata"]["generation"]
}

/// Whether what an object deployed waits for its user, who holds a node with it.
pub fn is_kept(object: &Value) -> bool {
    object["status"]["operatorState"]["leftovers"] == "Kept"
}

#[cfg(test)]
mod tests;
