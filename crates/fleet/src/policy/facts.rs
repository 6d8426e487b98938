//! Input of a decision: nodes, validations and refusals, reduced to what a policy reads.

use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use perfval_api::fleet::DueReason;
pub use perfval_api::fleet::SelectedNode;
use perfval_api::meta::ERRORS_BEFORE;
use perfval_api::{EarlierGpuTime, Leftovers, PerfValidation, Phase, Verdict, condition};

use super::schedule::duration;
use crate::condition::created_at;
use crate::measurement::{began_at, due_reason, has_speeds, is_of_a_user, policy_of};

/// Label by which a validation selects its node.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

/// State of a validation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunState {
    /// It has no GPUs yet.
    #[default]
    Waiting,
    /// It has GPUs, or it removes its objects.
    Active,
    /// A user suspended it, the removal of its objects takes longer than `timeouts.cleanup`, or all is removed and another's
    /// finalizer holds the object.
    Suspended,
    /// It is over.
    Ended {
        /// Time at which it ended.
        at: DateTime<Utc>,
        /// Its verdict.
        verdict: Option<Verdict>,
    },
}

/// Parts of a validation's spec and status that policies read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outline {
    /// Hostname that its node selector contains.
    pub hostname: Option<Box<str>>,
    /// Node on which it has GPUs.
    pub node: Option<Box<str>>,
    /// State.
    pub state: RunState,
    /// True if a person requested its last run.
    pub is_of_a_user: bool,
    /// True if its last run is over and measured the speed of no GPU.
    pub lacks_speeds: bool,
    /// Time from which its last run used its machine.
    pub began_at: Option<DateTime<Utc>>,
    /// GPUs in use.
    pub gpus: i64,
    /// Time from which it had GPUs.
    pub gpus_since: Option<DateTime<Utc>>,
    /// Time at which it had given them back.
    pub gpus_until: Option<DateTime<Utc>>,
    /// GPU time of its earlier runs.
    pub earlier: Option<EarlierGpuTime>,
    /// Begin of its present phase.
    pub phase_since: Option<DateTime<Utc>>,
}

impl Outline {
    /// Reads a whole object.
    pub fn new(object: &PerfValidation) -> Self {
        let hostname = object.spec.placement.node_selector.get(HOSTNAME);
        let mut outline = Self {
            hostname: hostname.map(|name| name.as_str().into()),
            ..Self::default()
        };
        let Some(status) = &object.status else {
            return outline;
        };
        let run = status.run.as_ref();
        let is_gone = condition::is_true(status, condition::CLEANED_UP);
        // A run that judges saved trials again measures nothing.
        let judged = status.state.judged_run.is_some();
        let trials = status.state.trials.iter().filter_map(|trial| trial.completed_at);
        let measured = trials.max().filter(|_| judged);
        let completed = run.and_then(|run| run.completed_at);
        let removes = status.phase == Some(Phase::CleaningUp);
        let is_over = status.phase == Some(Phase::Completed) || (removes && completed.is_some());
        let is_overdue = removes && !is_over && status.state.leftovers == Some(Leftovers::Overdue);
        outline.state = match status.phase {
            _ if is_over => RunState::Ended {
                at: measured.or(completed).unwrap_or_else(|| created_at(&object.metadata)),
                verdict: status.verdict,
            },
            None | Some(Phase::Pending | Phase::Sizing) => RunState::Waiting,
            Some(Phase::Suspended) => RunState::Suspended,
            Some(_) if is_overdue || (removes && is_gone) => RunState::Suspended,
            Some(_) => RunState::Active,
        };
        outline.is_of_a_user = run.is_some_and(|run| is_of_a_user(run.trigger));
        outline.lacks_speeds = is_over && !judged && !has_speeds(status);
        outline.began_at = began_at(status);
        if let Some(placement) = &status.placement {
            outline.gpus = placement.gpus;
            outline.node = (!is_gone).then(|| placement.node.as_str().into());
        }
        outline.phase_since = status.state.timeline.last().map(|entry| entry.started_at);
        if let Some((since, until)) = status.held_gpus() {
            let limit = status.removal_ends_by(duration(&object.spec.timeouts.cleanup));
            outline.gpus_since = Some(since);
            outline.gpus_until = if is_overdue {
                limit
            } else {
                until.map(|until| limit.map_or(until, |limit| until.min(limit)))
            };
        }
        outline.earlier = status.state.earlier_gpu_time;
        outline
    }

    /// Time for which a finished run had GPUs.
    pub fn held_for(&self) -> Option<Duration> {
        let is_over = matches!(self.state, RunState::Ended { .. });
        let until = self.gpus_until.filter(|_| is_over)?;
        (until - self.gpus_since?).to_std().ok()
    }
}

/// Validation as policies read it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValidationFacts {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// Version of the object.
    pub resource_version: Option<String>,
    /// Uid of the policy that created it.
    pub policy: Option<String>,
    /// Time of its creation.
    pub created_at: DateTime<Utc>,
    /// True if it is being deleted.
    pub is_deleting: bool,
    /// Number of validations of the node in a row that ended without a measurement before this one.
    pub errors_before: u32,
    /// Reason for which its node was due.
    pub due_reason: Option<DueReason>,
    /// Spec and status.
    pub outline: Outline,
}

impl ValidationFacts {
    /// Reads the metadata of an object.
    pub fn new(metadata: &ObjectMeta, outline: Outline) -> Self {
        let owner = policy_of(metadata);
        let errors = metadata.annotations.as_ref().and_then(|all| all.get(ERRORS_BEFORE));
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone(),
            policy: owner.map(|owner| owner.uid.clone()),
            created_at: created_at(metadata),
            is_deleting: metadata.deletion_timestamp.is_some(),
            errors_before: errors.and_then(|text| text.parse().ok()).unwrap_or_default(),
            due_reason: due_reason(metadata),
            outline,
        }
    }

    /// Hostname of its node.
    pub fn hostname(&self) -> Option<&str> {
        self.outline.hostname.as_deref()
    }

    /// Time from which it waits for GPUs. A rerun or a changed spec begins a new wait.
    pub fn waits_since(&self) -> DateTime<Utc> {
        let since = self.outline.phase_since.unwrap_or(self.created_at);
        since.max(self.created_at)
    }

    /// Returns true if it has or waits for GPUs.
    pub fn is_active(&self) -> bool {
        matches!(self.outline.state, RunState::Waiting | RunState::Active)
    }

    /// Returns true if its last run did not begin before this time.
    pub(super) fn began_after(&self, time: DateTime<Utc>) -> bool {
        self.outline.began_at.is_none_or(|began| began >= time)
    }

    /// Time of its end and its verdict.
    pub fn ended(&self) -> Option<(DateTime<Utc>, Option<Verdict>)> {
        match self.outline.state {
            RunState::Ended { at, verdict } => Some((at, verdict)),
            _ => None,
        }
    }

    /// Time of its end and its verdict, if it measured the node.
    pub fn measured(&self) -> Option<(DateTime<Utc>, Verdict)> {
        let measured = [Verdict::Passed, Verdict::Failed, Verdict::Inconclusive];
        let (at, verdict) = self.ended()?;
        verdict
            .filter(|verdict| measured.contains(verdict))
            .map(|verdict| (at, verdict))
    }

    /// Returns true if it ended without a measurement, or without the speeds that were to confirm a loss.
    pub(super) fn is_in_vain(&self) -> bool {
        let lacks_speeds = self.due_reason == Some(DueReason::Confirmation) && self.outline.lacks_speeds;
        self.ended().is_some() && (self.measured().is_none() || lacks_speeds)
    }
}

/// Answer of the API server to the last attempt to create a validation of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateRefusal {
    /// True if the namespace does not exist.
    pub is_namespace_missing: bool,
    /// Message of the API server.
    pub message: String,
    /// Time before which there is no other attempt.
    pub until: DateTime<Utc>,
}
