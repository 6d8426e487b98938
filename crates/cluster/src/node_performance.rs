//! Reads and writes of `NodePerformance` objects.

use chrono::DateTime;
use k8s_openapi::api::core::v1::Node;
use kube::api::Api;
use kube::core::ResourceExt as _;
use perfval_api::fleet::{NodeIdentity, NodePerformance};
use perfval_run::time;
use perfval_sizing::Seen;

use crate::act::delete::delete_params;
use crate::call::{creation, read, seen};
use crate::error::unless_late;
use crate::{CallFailure, Cluster};

impl Cluster {
    /// Uid and boot of a node.
    pub async fn node_identity(&self, name: &str) -> Seen<NodeIdentity> {
        let api: Api<Node> = Api::all(self.client.clone());
        let node = read(&format!("get Node {name}"), self.bounded(api.get(name)).await);
        seen(node.map(|node| {
            let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
            let boot = info.map(|info| info.boot_id.clone());
            NodeIdentity {
                uid: node.uid().unwrap_or_default(),
                created_at: node
                    .creation_timestamp()
                    .as_ref()
                    .map_or(DateTime::UNIX_EPOCH, time::from_kubernetes),
                boot_id: boot.filter(|boot| !boot.is_empty()),
            }
        }))
    }

    /// Creates the object if it has no uid yet, and writes its status. Returns the object as it is now; `None` if it moved on, so
    /// that the decision was made on an old copy.
    pub async fn write_node_performance(
        &self,
        object: &NodePerformance,
    ) -> Result<Option<NodePerformance>, CallFailure> {
        match self.write_row(object).await {
            Ok(written) => Ok(Some(written)),
            Err(failure) if failure.is_too_late() && !failure.is_not_served() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    async fn write_row(&self, object: &NodePerformance) -> Result<NodePerformance, CallFailure> {
        let api: Api<NodePerformance> = Api::all(self.client.clone());
        let created = if object.metadata.uid.is_none() {
            Some(self.bounded(api.create(&creation(false), object)).await?)
        } else {
            None
        };
        let current = &created.as_ref().unwrap_or(object).metadata;
        self.write_status::<NodePerformance, _>(&api, current, &object.status)
            .await
    }

    /// Deletes the object of an earlier node of the same name. An absent object is no failure.
    pub async fn delete_node_performance(&self, name: &str, uid: &str) -> Result<(), CallFailure> {
        let api: Api<NodePerformance> = Api::all(self.client.clone());
        let deleted = self.bounded(api.delete(name, &delete_params(uid, None))).await;
        unless_late(deleted).map(|_| ())
    }
}
