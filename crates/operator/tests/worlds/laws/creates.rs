//! What a run creates, it creates while it is under way.

use std::collections::BTreeMap;

use perfval_run::names::run_id;
use perfval_testkit::api_server::{Made, is_a_strangers};
use serde_json::Value;

use super::CREATED;
use crate::rig::Rig;

/// The phase of every run, by its id, while the world goes on.
#[derive(Default)]
struct Phases(BTreeMap<String, String>);

impl Phases {
    fn hear(&mut self, object: &Value) {
        let (uid, status) = (&object["metadata"]["uid"], &object["status"]);
        let run = uid.as_str().zip(status["run"]["number"].as_i64());
        if let (Some((uid, number)), Some(phase)) = (run, status["phase"].as_str()) {
            self.0.insert(run_id(uid, number), phase.to_owned());
        }
    }

    /// Whether a run may create something; the error says where it is instead.
    fn let_create(&self, run: &str) -> Result<(), &str> {
        match self.0.get(run).map_or("", String::as_str) {
            "Deploying" | "WaitingForReady" | "Benchmarking" => Ok(()),
            phase => Err(phase),
        }
    }
}

/// What a run creates after its last phase is left behind, or costs a removal of its own. It is not even asked for: what the
/// API server refuses now it may carry out next time.
pub fn a_run_that_is_over_creates_nothing(rig: &Rig) -> Result<(), String> {
    let mut phases = Phases::default();
    let mut asked = asked_for(rig).into_iter().peekable();
    for (number, change) in (1..).zip(rig.server.changes_since(0)) {
        while let Some((made, run)) = asked.next_if(|(made, _)| made.after < number) {
            phases.let_create(&run).map_err(|phase| asks(&made, phase))?;
        }
        let object = &change.object;
        if change.plural == "perfvalidations" {
            phases.hear(object);
        } else if change.kind == "ADDED" && CREATED.contains(&change.plural.as_str()) && !is_a_strangers(object) {
            let run = object["metadata"]["labels"]["perfvalidation.dev/run"].as_str();
            let created = |phase| format!("{} {} was created in {phase:?}", change.plural, change.name);
            phases.let_create(run.unwrap_or_default()).map_err(created)?;
        }
    }
    for (made, run) in asked {
        phases.let_create(&run).map_err(|phase| asks(&made, phase))?;
    }
    Ok(())
}

fn asks(made: &Made, phase: &str) -> String {
    format!("in {phase:?} a run asked for {:?}", made.call)
}

/// Every create that was sent, and the id of its run, which is in the names of all that it creates: `pv-<id>…`.
fn asked_for(rig: &Rig) -> Vec<(Made, String)> {
    let run_of = |made: Made| {
        let creates = made.writes() && made.call.verb == "create" && CREATED.contains(&made.call.resource.as_str());
        let name = made.call.name.clone().filter(|_| creates)?;
        let run = name.split('-').nth(1)?.to_owned();
        Some((made, run))
    };
    rig.wire.made().into_iter().filter_map(run_of).collect()
}
