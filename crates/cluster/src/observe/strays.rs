//! Everything that carries the operator's label, of any object and run.

use std::collections::BTreeSet;

use kube::api::{Api, ListParams};
use kube::core::{PartialObjectMeta, Resource, ResourceExt as _};
use perfval_api::PerfValidation;
use perfval_api::meta::{FIELD_MANAGER, NAME_LABEL, RUN_LABEL};
use perfval_run::observed::{ChildKind, ChildRef};
use perfval_run::strays::Labelled;
use perfval_run::time;
use perfval_sizing::Seen;

use super::children::{ListScope, REMOVED};
use crate::Cluster;
use crate::call::{METADATA, read, seen};

impl Cluster {
    /// All objects of the kinds that a run removes, in a namespace or in all of them.
    pub async fn labelled(&self, namespace: Option<&str>) -> Seen<Vec<Labelled>> {
        let selection = ListScope {
            namespace,
            params: ListParams::default().labels(RUN_LABEL),
            owners: "all runs".to_owned(),
            recorded: None,
        };
        let form = |kind, object| labelled(kind, &object);
        let (all, failed) = self.list_each(&REMOVED, &selection, form).await;
        seen(failed.map(|()| all))
    }

    /// Uids of all `PerfValidation`s.
    pub async fn owners(&self) -> Seen<BTreeSet<String>> {
        let api: Api<PerfValidation> = Api::all(self.client.clone());
        let uid = |(): &mut (), object: PartialObjectMeta| object.uid();
        let uids = self.list_as(METADATA, api.resource_url(), ListParams::default(), (), uid);
        seen(read("list PerfValidations", uids.await).map(|listed| listed.items.into_iter().collect()))
    }
}

fn labelled(kind: ChildKind, object: &impl Resource) -> Labelled {
    let label = |key: &str| object.labels().get(key).cloned().unwrap_or_default();
    let owners = object.meta().owner_references.iter().flatten();
    let mut controllers = owners.filter(|owner| owner.controller == Some(true) && owner.kind == "PerfValidation");
    let mut fields = object.managed_fields().iter();
    let is_made_by_us = fields.any(|fields| fields.manager.as_deref() == Some(FIELD_MANAGER));
    Labelled {
        id: ChildRef {
            kind,
            name: object.name_any(),
            uid: object.uid().unwrap_or_default(),
        },
        namespace: object.namespace().unwrap_or_default(),
        object: label(NAME_LABEL),
        run: label(RUN_LABEL),
        owner: controllers.next().map(|owner| owner.uid.clone()),
        abandoned: is_made_by_us && object.owner_references().is_empty(),
        created: object.creation_timestamp().as_ref().map(time::from_kubernetes),
        deleting: object.meta().deletion_timestamp.is_some(),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::batch::v1::Job;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_the_operator_created_is_abandoned_once_it_has_no_owner() {
        let is_abandoned = |owners: Value, manager: &str| {
            let job: Job = serde_json::from_value(json!({
                "apiVersion": "batch/v1", "kind": "Job",
                "metadata": {"name": "pv-1-t1", "ownerReferences": owners, "managedFields": [{"manager": manager}]},
            }))
            .unwrap();
            labelled(ChildKind::Job, &job).abandoned
        };
        let owner = json!([{"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "c"}]);
        assert!(is_abandoned(json!([]), FIELD_MANAGER));
        assert!(!is_abandoned(json!([]), "kubectl"), "somebody's copy");
        assert!(!is_abandoned(owner, FIELD_MANAGER));
    }
}
