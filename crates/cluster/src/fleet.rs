//! Writes for policies, for baselines, and for the measurements of nodes.

use chrono::DateTime;
use k8s_openapi::api::core::v1::Node;
use kube::api::Api;
use kube::core::{DeserializeGuard, ObjectMeta, Resource as _, ResourceExt as _};
use perfval_api::PerfValidation;
use perfval_api::fleet::{
    NodeIdentity, NodePerformance, PerfBaseline, PerfBaselineStatus, PerfValidationPolicy, PerfValidationPolicyStatus,
};
use perfval_run::time;
use perfval_sizing::Seen;

use crate::act::delete::delete_params;
use crate::call::{creation, read, seen};
use crate::error::unless_late;
use crate::{CallFailure, Cluster};

/// Outcome of an attempt to create a validation.
#[derive(Clone, Debug, PartialEq)]
pub enum Creation {
    /// It exists: this attempt or an earlier one created it.
    Done(Box<PerfValidation>),
    /// An object of the same name has another owner.
    Taken,
    /// An earlier attempt created it, but this version cannot parse it.
    Unreadable,
    /// No administrator allows runs in its namespace.
    NotAllowed,
}

impl Cluster {
    /// Creates a validation of a policy.
    pub async fn create_validation(&self, object: &PerfValidation) -> Result<Creation, CallFailure> {
        let namespace = object.namespace().unwrap_or_default();
        let is_allowed = self.may_run_in(&namespace).await?;
        let api: Api<PerfValidation> = Api::namespaced(self.client.clone(), &namespace);
        // A missing namespace, or a quota, is still reported as such.
        let params = creation(!is_allowed);
        match self.bounded(api.create(&params, object)).await {
            Ok(_) if !is_allowed => Ok(Creation::NotAllowed),
            Ok(created) => Ok(Creation::Done(Box::new(created))),
            Err(failure) if failure.is_already_exists() => {
                let api: Api<DeserializeGuard<PerfValidation>> = Api::namespaced(self.client.clone(), &namespace);
                let known = match self.bounded(api.get(&object.name_any())).await {
                    // It went away in between.
                    Err(gone) if gone.is_not_found() => return Err(failure),
                    known => known?,
                };
                if controller(known.meta()) != controller(&object.metadata) {
                    return Ok(Creation::Taken);
                }
                let DeserializeGuard(known) = known;
                Ok(known.map_or(Creation::Unreadable, |known| Creation::Done(Box::new(known))))
            }
            Err(failure) => Err(failure),
        }
    }

    /// Deletes a validation in the version on which it was decided; returns false if it is gone or changed.
    pub async fn delete_validation(
        &self,
        (namespace, name): (&str, &str),
        uid: &str,
        version: Option<String>,
    ) -> Result<bool, CallFailure> {
        let api: Api<PerfValidation> = Api::namespaced(self.client.clone(), namespace);
        let deleted = self.bounded(api.delete(name, &delete_params(uid, version))).await;
        Ok(unless_late(deleted)?.is_some())
    }

    /// Writes the status of a policy. A policy that is gone is no failure. A new one of its name shows this status until the next look.
    pub async fn write_policy_status(
        &self,
        policy: &PerfValidationPolicy,
        status: &PerfValidationPolicyStatus,
    ) -> Result<(), CallFailure> {
        let api: Api<PerfValidationPolicy> = Api::all(self.client.clone());
        // At any resourceVersion: the status has the generation of the spec that it was decided on.
        let seen = ObjectMeta {
            resource_version: None,
            ..policy.metadata.clone()
        };
        let written = self.write_status::<PerfValidationPolicy, _>(&api, &seen, status).await;
        unless_late(written).map(|_| ())
    }

    /// Creates a baseline. An existing one is no failure.
    pub async fn create_baseline(&self, baseline: &PerfBaseline) -> Result<(), CallFailure> {
        let api: Api<PerfBaseline> = Api::all(self.client.clone());
        match self.bounded(api.create(&creation(false), baseline)).await {
            Ok(_) => Ok(()),
            Err(failure) if failure.is_already_exists() => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// Writes the status of a baseline. Returns false if the baseline is gone or has changed, because the decision was made on an
    /// old copy.
    pub async fn write_baseline_status(
        &self,
        baseline: &PerfBaseline,
        status: &PerfBaselineStatus,
    ) -> Result<bool, CallFailure> {
        let api: Api<PerfBaseline> = Api::all(self.client.clone());
        let seen = &baseline.metadata;
        let written = self.write_status::<PerfBaseline, _>(&api, seen, status).await;
        Ok(unless_late(written)?.is_some())
    }

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

/// Uid of the object's controller.
fn controller(metadata: &ObjectMeta) -> Option<&str> {
    let mut owners = metadata.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.controller == Some(true));
    owner.map(|owner| owner.uid.as_str())
}
