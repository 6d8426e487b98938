//! What a verdict is about was measured as its spec says, whenever that was edited.

use std::collections::BTreeMap;

use perfval_testkit::api_server::is_a_strangers;
use serde_json::Value;

use crate::rig::Rig;

/// What a trial or a deployment was made for.
type Made = BTreeMap<String, Value>;

/// A run that measured one trial of the old spec and one of the new, or another model than it serves, says what nobody
/// measured.
pub fn a_verdict_is_of_its_own_spec(rig: &Rig) -> Result<(), String> {
    let mut specs: BTreeMap<(String, i64), Value> = BTreeMap::new();
    let mut made = Made::new();
    for change in rig.server.changes_since(0) {
        let object = &change.object;
        if change.plural != "perfvalidations" {
            if change.kind == "ADDED" && !is_a_strangers(object) {
                made.insert(format!("{} {}", change.plural, change.name), object["spec"].clone());
            }
            continue;
        }
        let metadata = &object["metadata"];
        let uid = metadata["uid"].as_str().unwrap_or_default().to_owned();
        let generation = metadata["generation"].as_i64().unwrap_or_default();
        specs
            .entry((uid.clone(), generation))
            .or_insert_with(|| object["spec"].clone());
        let status = &object["status"];
        let judged = matches!(status["verdict"].as_str(), Some("Passed" | "Failed" | "Inconclusive"));
        if !judged || !status["operatorState"]["judgedRun"].is_null() {
            continue;
        }
        let of = (uid, status["run"]["generation"].as_i64().unwrap_or_default());
        let spec = specs.get(&of).ok_or_else(|| format!("no spec of {of:?}: {status}"))?;
        was_made_for(spec, status, &made).map_err(|how| format!("{how}\nspec: {spec}\nstatus: {status}"))?;
    }
    Ok(())
}

fn was_made_for(spec: &Value, status: &Value, made: &Made) -> Result<(), String> {
    let name = status["workload"]["name"].as_str().unwrap_or_default();
    if let Some(deployment) = made.get(&format!("dynamographdeployments {name}")) {
        let text = deployment.to_string();
        let dynamo = &spec["workload"]["dynamo"];
        // A user's own command says which model it serves.
        let model = dynamo["worker"]["command"].is_null().then_some(&spec["model"]["name"]);
        for wanted in model.into_iter().chain([&dynamo["image"]]) {
            if !text.contains(&wanted.to_string()) {
                return Err(format!("its deployment is not for {wanted}"));
            }
        }
    }
    let benchmark = &spec["benchmark"];
    for number in status["trials"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|trial| &trial["number"])
    {
        let Some(job) = made.get(&format!("jobs {name}-t{number}")) else {
            continue;
        };
        let words = job["template"]["spec"]["containers"][0]["args"].as_array();
        let words: Vec<&str> = words.into_iter().flatten().filter_map(Value::as_str).collect();
        let after = |flag: &str| words.iter().skip_while(|word| **word != flag).nth(1).copied();
        let flags = [
            ("--model", &spec["model"]["name"]),
            ("--prompt-input-tokens-mean", &benchmark["inputTokens"]),
            ("--prompt-output-tokens-mean", &benchmark["outputTokens"]),
        ];
        for (flag, wanted) in flags {
            let wanted = wanted.as_str().map_or_else(|| wanted.to_string(), str::to_owned);
            if after(flag) != Some(&wanted) {
                return Err(format!("trial {number} was measured with {flag} {:?}", after(flag)));
            }
        }
    }
    Ok(())
}
