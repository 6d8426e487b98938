use chrono::{DateTime, Utc};
use kube::api::{Api, ListParams};
use kube::core::{ApiResource, DynamicObject, ResourceExt as _};
use perfval_api::{PerfValidation, PerfValidationSpec, PerfValidationStatus, Phase, PlacementStatus};
use perfval_run::queue::{Contender, Position, Wants};
use perfval_run::{Run, machine};
use serde::Deserialize as _;

use crate::Cluster;
use crate::call::{Read, read};

impl Cluster {
    /// Runs of other objects that hold or want a node.
    pub(super) async fn other_runs(&self, run: &Run<'_>) -> Read<Vec<Contender>> {
        let resource = ApiResource::erase::<PerfValidation>(&());
        // Read loosely: an object that another version of the CRD wrote still holds its node, and must not hide the others.
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let all = read("list PerfValidations", self.list(&api, ListParams::default()).await)?;
        let now = Utc::now();
        let others = all.iter().filter(|other| other.uid().as_deref() != Some(run.uid()));
        Ok(others.filter_map(|other| contender(other, now)).collect())
    }
}

fn contender(object: &DynamicObject, now: DateTime<Utc>) -> Option<Contender> {
    let spec = PerfValidationSpec::deserialize(&object.data["spec"]);
    let status = Option::<PerfValidationStatus>::deserialize(&object.data["status"]);
    match (spec, status) {
        (Ok(spec), Ok(status)) => {
            let status = status.unwrap_or_default();
            let at_work = machine::is_at_work(&spec, &status, now);
            Contender::of(&object.metadata, &spec, &status, at_work, now)
        }
        // This operator cannot run it, so it is in no line; it may hold a node all the same.
        _ => stranger(object),
    }
}

/// The node that an object of another version holds. Only what tells that is read; a phase that this version does not
/// know is not over.
fn stranger(object: &DynamicObject) -> Option<Contender> {
    let written = &object.data["status"];
    let node = written["placement"]["node"].as_str()?.to_owned();
    let phase = Option::<Phase>::deserialize(&written["phase"]);
    let known = phase.is_ok();
    let status = PerfValidationStatus {
        phase: phase.unwrap_or_default(),
        placement: Some(PlacementStatus {
            node: node.clone(),
            ..PlacementStatus::default()
        }),
        conditions: Vec::deserialize(&written["conditions"]).unwrap_or_default(),
        ..PerfValidationStatus::default()
    };
    if known && !perfval_sizing::holds_node(&status) {
        return None;
    }
    Some(Contender {
        name: format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any()),
        position: Position::of(&object.metadata, &status),
        stand: Wants::Holds { node, at_work: false },
    })
}
