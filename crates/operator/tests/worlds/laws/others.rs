//! What somebody else made, and what belongs to another object of the same name.

use std::collections::{BTreeMap, BTreeSet};

use perfval_run::names;
use perfval_testkit::api_server::{Made, is_a_strangers};
use serde_json::Value;

use crate::rig::Rig;

/// A name and labels prove nothing: what others put where our objects were, or would be, is neither deleted nor changed.
pub fn what_others_made_is_theirs(rig: &Rig) -> Result<(), String> {
    let is_a_delete = |made: &Made| made.call.verb == "delete" && made.code.is_some_and(|code| code < 300);
    let deleted: Vec<Made> = rig.wire.made().into_iter().filter(is_a_delete).collect();
    let mut known: BTreeMap<String, Value> = BTreeMap::new();
    let mut over = BTreeSet::new();
    for change in rig.server.changes_since(0) {
        let object = &change.object;
        let is_an_object_of_ours = change.plural == "perfvalidations";
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        // A user's second object of a name is looked after like the first: once over, it may have a time to live.
        if is_an_object_of_ours && object["status"]["phase"] == "Completed" {
            over.insert(uid.clone());
        }
        if !is_a_strangers(object) || over.contains(&uid) {
            continue;
        }
        let what = || format!("{} {} is a stranger's", change.plural, change.name);
        let is_it = |made: &Made| made.call.resource == change.plural && made.call.name.as_ref() == Some(&change.name);
        let leaves = change.kind == "DELETED" || !object["metadata"]["deletionTimestamp"].is_null();
        if leaves && deleted.iter().any(is_it) {
            return Err(format!("{}, and was deleted", what()));
        }
        let content: Value = ["spec", "data"]
            .into_iter()
            .map(|field| object[field].clone())
            .collect();
        // Users change the one, the scheduler the other.
        let looked_after = is_an_object_of_ours || change.plural == "pods";
        let before = known.entry(uid).or_insert_with(|| content.clone());
        if *before != content && !looked_after {
            return Err(format!("{}, and was changed", what()));
        }
    }
    Ok(())
}

/// A decision on an object must never land on another one that has its name by then.
pub fn a_status_is_of_its_own_object(statuses: &BTreeMap<String, Vec<Value>>) -> Result<(), String> {
    for (uid, history) in statuses {
        for run in history.iter().map(|status| &status["run"]) {
            if let (Some(id), Some(number)) = (run["id"].as_str(), run["number"].as_i64())
                && id != names::run_id(uid, number)
            {
                return Err(format!("{id} is not run {number} of {uid}"));
            }
        }
    }
    Ok(())
}
