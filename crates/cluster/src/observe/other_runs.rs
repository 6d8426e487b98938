use kube::api::{Api, ListParams};
use kube::core::{ApiResource, DynamicObject, ResourceExt as _};
use perfval_api::{PerfValidation, PerfValidationStatus, Phase, PlacementStatus};
use perfval_core::observed::OtherRun;
use perfval_core::{Run, machine};
use serde::Deserialize as _;

use crate::Cluster;
use crate::call::{Read, read};

impl Cluster {
    /// Runs of other objects that hold or plan to hold a node.
    pub(super) async fn other_runs(&self, run: &Run<'_>) -> Read<Vec<OtherRun>> {
        let resource = ApiResource::erase::<PerfValidation>(&());
        // Read loosely: an object that another version of the CRD wrote still holds its node, and must not hide the others.
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let all = read("list PerfValidations", self.list(&api, ListParams::default()).await)?;
        let others = all.iter().filter(|other| other.uid().as_deref() != Some(run.uid()));
        Ok(others.filter_map(holder).collect())
    }
}

/// The node of a run that holds one. Only what tells that is read, as another version may have written the rest; a phase
/// that this one does not know is not over.
fn holder(object: &DynamicObject) -> Option<OtherRun> {
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
    if known && !machine::holds_node(&status) {
        return None;
    }
    Some(OtherRun {
        name: format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any()),
        node,
    })
}
