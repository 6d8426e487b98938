//! Everything that carries the operator's label, of any object and run.

use std::collections::BTreeSet;

use kube::api::{Api, ListParams};
use kube::core::{Resource, ResourceExt as _};
use perfval_api::PerfValidation;
use perfval_api::meta::{NAME_LABEL, RUN_LABEL};
use perfval_run::observed::{ChildKind, ChildRef};
use perfval_run::strays::Labelled;
use perfval_run::time;
use perfval_sizing::Seen;

use super::children::{REMOVED, Selection};
use crate::Cluster;
use crate::call::{read, seen};

impl Cluster {
    /// All objects of the kinds that a run removes, in a namespace or in all of them.
    pub async fn labelled(&self, namespace: Option<&str>) -> Seen<Vec<Labelled>> {
        let selection = Selection {
            namespace,
            params: ListParams::default().labels(RUN_LABEL),
            owners: "all runs".to_owned(),
            recorded: None,
        };
        let form = |kind, object| labelled(kind, &object);
        seen(self.list_kinds(&REMOVED, &selection, form).await)
    }

    /// Uids of all `PerfValidation`s.
    pub async fn owners(&self) -> Seen<BTreeSet<String>> {
        let api: Api<PerfValidation> = Api::all(self.client.clone());
        let uids = self.list_metadata(api.resource_url(), ListParams::default(), |object| object.uid());
        seen(read("list PerfValidations", uids.await).map(BTreeSet::from_iter))
    }
}

fn labelled(kind: ChildKind, object: &impl Resource) -> Labelled {
    let label = |key: &str| object.labels().get(key).cloned().unwrap_or_default();
    let owners = object.meta().owner_references.iter().flatten();
    let mut controllers = owners.filter(|owner| owner.controller == Some(true) && owner.kind == "PerfValidation");
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
        created: object.creation_timestamp().as_ref().map(time::from_kubernetes),
        deleting: object.meta().deletion_timestamp.is_some(),
    }
}
