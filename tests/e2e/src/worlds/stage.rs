//! The lab that worlds are played on, several at once: they share its node and its operator.

use std::path::PathBuf;
use std::time::Duration;

use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::sync::{Mutex, RwLock};
use tokio::time::sleep;

use super::history::{CHILDREN, Change, History, OBJECT, resource};
use crate::install::OutOfCluster;
use crate::lab::Lab;
use crate::ready::NODE;

/// The lab, its history, and the operator as a process that may be killed.
pub struct Stage {
    /// The lab.
    pub lab: Lab,
    /// Everything that happened.
    pub history: History,
    operator: Mutex<Option<OutOfCluster>>,
    log: PathBuf,
    /// How long the objects of a world may take to rest.
    pub patience: Duration,
    /// Held for writing while the API server or etcd is away: no user's call comes to nothing then.
    served: RwLock<()>,
}

impl Stage {
    /// A lab with the operator's definition and roles, on which one operator outside of the cluster works; it writes its log
    /// into a file.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn set(lab: Lab, log: PathBuf, patience: Duration) -> Self {
        // Pods that still start would take Dynamo's minute to end.
        lab.run(&["fault", "dgd", "grace=1"]).await;
        Self {
            history: History::begin(&lab.client).await,
            operator: Mutex::new(Some(OutOfCluster::logging(&log, &[]))),
            lab,
            log,
            patience,
            served: RwLock::new(()),
        }
    }

    /// Kills the operator, and starts another one some time later.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn kill_operator(&self, away: Duration) {
        let mut operator = self.operator.lock().await;
        if let Some(operator) = operator.take() {
            operator.kill().await;
        }
        sleep(away).await;
        *operator = Some(OutOfCluster::logging(&self.log, &[]));
    }

    /// Stops the API server and starts it again.
    ///
    /// # Panics
    /// If it does not come back.
    pub async fn restart_api_server(&self) {
        let _served = self.served.write().await;
        self.lab.run(&["fault", "restart-apiserver"]).await;
    }

    /// Kills etcd and starts it again.
    ///
    /// # Panics
    /// If it does not come back.
    pub async fn restart_etcd(&self) {
        let _served = self.served.write().await;
        self.lab.run(&["fault", "restart-etcd"]).await;
    }

    /// Cordons the node (`yes`), or uncordons it.
    pub async fn cordon(&self, yes: bool) -> Result<(), kube::Error> {
        let _served = self.served.read().await;
        let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(self.lab.client.clone());
        let patch = Patch::Merge(json!({"spec": {"unschedulable": yes}}));
        nodes.patch(NODE, &PatchParams::default(), &patch).await.map(drop)
    }

    /// Creates an object.
    pub async fn create(&self, plural: &str, manifest: Value) -> Result<(), kube::Error> {
        let _served = self.served.read().await;
        let object: DynamicObject = serde_json::from_value(manifest).map_err(kube::Error::SerdeError)?;
        let namespace = object.metadata.namespace.clone().unwrap_or_default();
        let api = self.api(plural, &namespace);
        api.create(&PostParams::default(), &object).await.map(drop)
    }

    /// Changes an object.
    pub async fn merge(&self, plural: &str, namespace: &str, name: &str, patch: Value) -> Result<(), kube::Error> {
        let _served = self.served.read().await;
        let api = self.api(plural, namespace);
        let patch = Patch::Merge(patch);
        api.patch(name, &PatchParams::default(), &patch).await.map(drop)
    }

    /// Deletes an object.
    pub async fn delete(&self, plural: &str, namespace: &str, name: &str) -> Result<(), kube::Error> {
        let _served = self.served.read().await;
        let api = self.api(plural, namespace);
        api.delete(name, &DeleteParams::default()).await.map(drop)
    }

    /// A namespace for a world, made anew.
    ///
    /// # Panics
    /// If the API server refuses.
    pub async fn namespace(&self, name: &str) -> String {
        let _served = self.served.read().await;
        self.lab.namespace(name).await
    }

    /// What a run made and is there now.
    pub fn children(&self, namespace: &str) -> Vec<Change> {
        let is_child = |change: &Change| CHILDREN.iter().any(|(.., plural)| *plural == change.plural);
        let mut present = self.history.present(namespace);
        present.retain(is_child);
        present
    }

    /// While this is held, the API server stays.
    pub(super) async fn served(&self) -> tokio::sync::RwLockReadGuard<'_, ()> {
        self.served.read().await
    }

    fn api(&self, plural: &str, namespace: &str) -> Api<DynamicObject> {
        let kind = CHILDREN.into_iter().find(|(.., known)| *known == plural);
        Api::namespaced_with(self.lab.client.clone(), namespace, &resource(kind.unwrap_or(OBJECT)))
    }
}
