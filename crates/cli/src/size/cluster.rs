//! A cluster, read for `size`.

use std::collections::BTreeSet;

use kube::Client;
use perfval_api::PerfValidation;
use perfval_cluster::{Cluster, EndpointAccess};
use perfval_run::observed::Need;
use perfval_run::queue::Contender;
use perfval_run::{Needs, Run, Settings};
use perfval_sizing::Seen;
use perfval_sizing::inventory::Saved;

use crate::error::Error;

/// The cluster at this moment; quotas are those of `namespace` if the object has none.
pub async fn read(object: &PerfValidation, client: Client, namespace: String) -> Result<Saved, Error> {
    let mut object = object.clone();
    object.metadata.namespace.get_or_insert(namespace);
    let (cluster, _) = Cluster::new(client.clone(), client, EndpointAccess::ServiceProxy, String::new());
    let settings = Settings::default();
    let run = Run::new(&object, &settings);
    let needs = Needs {
        parts: BTreeSet::from([Need::Inventory, Need::Holders]),
        ..Needs::default()
    };
    let seen = cluster.observe(&run, &needs).await;
    let unread = |why: Option<&str>| Error::NotSized(why.unwrap_or_default().to_owned());
    let mut notes = Vec::new();
    let busy = match seen.holders {
        Seen::Present(holders) => {
            // What the object itself holds is only in the way of others.
            let others = holders
                .iter()
                .filter(|of| Some(of.position.uid()) != object.metadata.uid.as_deref());
            others.filter_map(Contender::held).collect()
        }
        Seen::Absent => {
            notes.push("PerfValidations are not served here: no node is taken to be a run's".to_owned());
            Vec::new()
        }
        unknown => return Err(unread(unknown.unknown())),
    };
    match seen.inventory {
        Seen::Present(inventory) => Ok(Saved { inventory, busy, notes }),
        unknown => Err(unread(unknown.unknown())),
    }
}
