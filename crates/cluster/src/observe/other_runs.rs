use kube::api::{Api, ListParams};
use kube::core::{ApiResource, DynamicObject, ResourceExt as _};
use perfval_api::{PerfValidation, Phase};
use perfval_core::Run;
use perfval_core::observed::OtherRun;
use perfval_core::status::condition;
use serde_json::Value;

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

/// The node of a run that is not over; a run is over once its removal is confirmed.
fn holder(object: &DynamicObject) -> Option<OtherRun> {
    let status = &object.data["status"];
    let node = status["placement"]["node"].as_str()?;
    let at_rest = [Phase::Completed, Phase::Suspended]
        .iter()
        .any(|phase| status["phase"] == phase.as_str());
    if at_rest && is_true(status, condition::CLEANED_UP) {
        return None;
    }
    Some(OtherRun {
        name: format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any()),
        node: node.to_owned(),
    })
}

fn is_true(status: &Value, condition: &str) -> bool {
    let conditions = status["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|found| found["type"] == condition && found["status"] == "True")
}
