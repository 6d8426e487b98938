//! The object under reconciliation, read through its current run.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::{Resource, ResourceExt as _};
use perfval_api::{PerfValidation, PerfValidationSpec, PerfValidationStatus, Phase, PlacementStatus, meta};

use crate::names;
use crate::settings::Settings;

/// A `PerfValidation` and the operator's settings: all input of a decision apart from the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The object.
    pub object: &'a PerfValidation,
    /// The operator's settings.
    pub settings: &'a Settings,
    status: &'a PerfValidationStatus,
}

impl<'a> Run<'a> {
    /// Reads an object. An object without status, or with the CRD's default status, is new to the operator.
    pub fn new(object: &'a PerfValidation, settings: &'a Settings) -> Self {
        static UNSEEN: std::sync::LazyLock<PerfValidationStatus> = std::sync::LazyLock::new(|| PerfValidationStatus {
            observed_generation: -1,
            ..PerfValidationStatus::default()
        });
        Self {
            object,
            settings,
            status: object
                .status
                .as_ref()
                .filter(|status| status.is_of_an_operator())
                .unwrap_or(&UNSEEN),
        }
    }

    /// Spec of the user.
    pub fn spec(&self) -> &'a PerfValidationSpec {
        &self.object.spec
    }

    /// Workers of the plan; none without a plan.
    pub fn workers(&self) -> i64 {
        self.placement().map_or(0, |plan| self.spec().workers(plan.gpus))
    }

    /// Status as last recorded.
    pub fn status(&self) -> &'a PerfValidationStatus {
        self.status
    }

    /// Phase that an operator wrote. The default of the CRD has one too, which stays next to a condition that is
    /// written before the first look.
    pub fn phase(&self) -> Option<Phase> {
        let begun = |phase: &Phase| *phase != Phase::Pending || self.status.run.is_some();
        self.status.phase.filter(begun)
    }

    /// Name of the object.
    pub fn name(&self) -> &'a str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    /// Namespace of the object and of all its children.
    pub fn namespace(&self) -> &'a str {
        self.object.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// Uid of the object.
    pub fn uid(&self) -> &'a str {
        self.object.metadata.uid.as_deref().unwrap_or_default()
    }

    /// Generation of the spec.
    pub fn generation(&self) -> i64 {
        self.object.metadata.generation.unwrap_or_default()
    }

    /// Id of the current run; that of run 1 before one began.
    pub fn id(&self) -> String {
        let number = self.status.run.as_ref().map_or(1, |run| run.number);
        names::run_id(self.uid(), number)
    }

    /// The plan, once sizing made one.
    pub fn placement(&self) -> Option<&'a PlacementStatus> {
        self.status.placement.as_ref()
    }

    /// Returns true if the user keeps everything after the run.
    pub fn keeps_everything(&self) -> bool {
        self.annotation(meta::NO_CLEANUP) == Some("true")
    }

    /// The rerun token, if one is set.
    pub fn rerun_token(&self) -> Option<&'a str> {
        self.annotation(meta::RERUN)
    }

    /// Returns true if the object is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.object.metadata.deletion_timestamp.is_some()
    }

    /// Returns true if only our finalizer holds the object.
    pub(crate) fn has_only_our_finalizer(&self) -> bool {
        matches!(self.object.finalizers(), [only] if only == meta::FINALIZER)
    }

    /// Returns true if the operator's finalizer is on the object.
    pub fn has_finalizer(&self) -> bool {
        self.object.finalizers().iter().any(|name| name == meta::FINALIZER)
    }

    /// Returns true if an object's controller is this very `PerfValidation`; a name or a label proves nothing.
    pub fn owns(&self, object: &impl Resource) -> bool {
        let is_this = |owner: &OwnerReference| owner.controller == Some(true) && owner.uid == self.uid();
        object.owner_references().iter().any(is_this)
    }

    /// Returns true if this `PerfValidation` may remove an object: it owns it, or, once it is deleted, its operator
    /// created it and it has no owner any more. `kubectl delete --cascade=orphan` takes the owners away and leaves
    /// the finalizer its work: it would wait for ever for pods whose deployment it may not delete.
    pub fn removes(&self, object: &impl Resource) -> bool {
        let is_abandoned = || {
            let mut fields = object.managed_fields().iter();
            object.owner_references().is_empty()
                && fields.any(|fields| fields.manager.as_deref() == Some(meta::FIELD_MANAGER))
        };
        self.owns(object) || (self.is_deleting() && is_abandoned())
    }

    /// Owner reference for every child.
    pub fn owner(&self) -> Option<OwnerReference> {
        self.object.controller_owner_ref(&())
    }

    fn annotation(&self, key: &str) -> Option<&'a str> {
        self.object.annotations().get(key).map(String::as_str)
    }
}
