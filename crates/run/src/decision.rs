//! Result of a pass: a status to record, effects to carry out, events to publish.

use std::borrow::Cow;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::resource::v1::ResourceClaimTemplate;
use kube::core::DynamicObject;
use perfval_api::{PerfValidationStatus, Reason, Word};

use crate::observed::{ChildRef, Needs};

/// The outcome of one pass. The status is recorded first; only then do the effects happen, so a crash in between
/// repeats an idempotent step and never skips one.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Status to record; equal to the current one when nothing changed (then nothing is written).
    pub status: PerfValidationStatus,
    /// Effects to carry out, in this order.
    pub effects: Vec<Effect>,
    /// Events to publish once the status is recorded.
    pub events: Vec<Event>,
    /// Time until the next look, if nothing happens before.
    pub recheck: Option<Duration>,
    /// Reads that are still missing. If there are any, the pass makes them and decides again; nothing else of this decision
    /// counts.
    pub reads: Needs,
}

impl Decision {
    /// Returns true if the decision leaves the status as it is, and there is nothing to do, publish or read.
    pub fn is_rest(&self, current: &PerfValidationStatus) -> bool {
        let does_nothing = self.effects.is_empty() && self.events.is_empty() && self.reads.is_empty();
        does_nothing && self.status == *current
    }

    /// Returns true if the decision may rest on copies: it writes at most the heartbeat and the progress of a trial, which come
    /// from no copy, and the uid of its Job. It does at most a probe, which changes no object.
    pub fn may_rest_on_copies(&self, current: &PerfValidationStatus) -> bool {
        let only_probes = self.effects.iter().all(|effect| matches!(effect, Effect::Probe(_)));
        if !only_probes || !self.events.is_empty() || !self.reads.is_empty() {
            return false;
        }
        let mut looked = current.clone();
        looked.state.last_looked_at = self.status.state.last_looked_at;
        looked.state.progress.clone_from(&self.status.state.progress);
        looked.progress.clone_from(&self.status.progress);
        // It is the same in every copy of the Job.
        for (trial, next) in looked.state.trials.iter_mut().zip(&self.status.state.trials) {
            trial.job_uid.clone_from(&next.job_uid);
        }
        self.status == looked
    }
}

/// Something to do in the cluster. Every effect may be repeated.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Put our finalizer on the object.
    EnsureFinalizer,
    /// Take our finalizer off the object; a missing object is success.
    ReleaseFinalizer,
    /// Create the claim template of the workers.
    CreateClaimTemplate(Box<ResourceClaimTemplate>),
    /// Create the volume claim of the model cache.
    CreateCacheClaim(Box<PersistentVolumeClaim>),
    /// Create the Job that fills the model cache.
    CreateCacheJob(Box<Job>),
    /// Create the headless Service over the workers' metrics port.
    CreateWorkersService(Box<Service>),
    /// Create the `NetworkPolicy` of the run's pods.
    CreateNetworkPolicy(Box<NetworkPolicy>),
    /// Create the DynamoGraphDeployment.
    CreateDeployment(Box<DynamicObject>),
    /// Create the AIPerf Job of a trial.
    CreateTrialJob(Box<Job>),
    /// Send one chat completion in the background; its answer is observed by a later pass.
    Probe(ProbeRequest),
    /// Write the results ConfigMap (applied: it is ours alone).
    SaveResults(Box<ConfigMap>),
    /// Delete a child, with its uid as precondition and background propagation.
    Delete(ChildRef),
    /// Delete the object itself (`ttlSecondsAfterFinished`).
    DeleteSelf,
}

impl Effect {
    /// Returns true if it creates an object in the cluster that a finished run would have to remove or wait for.
    pub(crate) fn creates(&self) -> bool {
        match self {
            Self::CreateClaimTemplate(_)
            | Self::CreateCacheClaim(_)
            | Self::CreateCacheJob(_)
            | Self::CreateWorkersService(_)
            | Self::CreateNetworkPolicy(_)
            | Self::CreateDeployment(_)
            | Self::CreateTrialJob(_)
            | Self::Probe(_) => true,
            Self::EnsureFinalizer
            | Self::ReleaseFinalizer
            | Self::SaveResults(_)
            | Self::Delete(_)
            | Self::DeleteSelf => false,
        }
    }
}

/// One chat completion to ask of the frontend.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProbeRequest {
    /// Namespace of the frontend's Service.
    pub namespace: String,
    /// Frontend's Service.
    pub service: String,
    /// Its port.
    pub port: u16,
    /// Model id to ask for.
    pub model: String,
    /// Deadline of the request.
    pub timeout: Duration,
}

/// An Event to publish on the object. The API server drops the text of a repeated reason with the same action.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// True for a Warning.
    pub warning: bool,
    /// Reason of the Event.
    pub reason: Word,
    /// Action that the operator did or is doing (`PascalCase`).
    pub action: Cow<'static, str>,
    /// Text for people, cut to 1,024 bytes when published.
    pub note: String,
}

impl Event {
    /// A Normal event.
    pub(crate) fn normal(reason: Reason, action: &'static str, note: impl Into<String>) -> Self {
        Self {
            warning: false,
            ..Self::warning(reason, action, note)
        }
    }

    /// A Warning event.
    pub fn warning(reason: Reason, action: &'static str, note: impl Into<String>) -> Self {
        Self {
            warning: true,
            reason: reason.word(),
            action: action.into(),
            note: note.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use perfval_api::{TrialProgress, TrialState};

    use super::*;
    use crate::observed::Need;

    #[test]
    fn a_heartbeat_progress_with_the_uid_of_a_job_and_a_probe_may_rest_on_copies() {
        let mut current = PerfValidationStatus::default();
        current.state.trials.push(TrialState::default());
        let mut decision = Decision {
            status: current.clone(),
            effects: Vec::new(),
            events: Vec::new(),
            recheck: None,
            reads: Needs::default(),
        };
        decision.status.state.last_looked_at = Some(DateTime::UNIX_EPOCH);
        decision.status.state.progress = Some(TrialProgress::default());
        decision.status.state.trials[0].job_uid = Some("job".to_owned());
        decision.effects.push(Effect::Probe(ProbeRequest {
            namespace: "perf".to_owned(),
            service: "frontend".to_owned(),
            port: 8000,
            model: "m".to_owned(),
            timeout: Duration::from_mins(1),
        }));
        assert!(decision.may_rest_on_copies(&current));
        assert!(!decision.is_rest(&current), "it is written");
        let changed = Decision {
            status: PerfValidationStatus {
                message: Some("a worker is late".to_owned()),
                ..decision.status.clone()
            },
            ..decision.clone()
        };
        let acts = Decision {
            effects: vec![Effect::EnsureFinalizer],
            ..decision.clone()
        };
        let tells = Decision {
            events: vec![Event::normal(Reason::Running, "Judge", "a note")],
            ..decision.clone()
        };
        let reads = Decision {
            reads: Needs::new([Need::Workload]),
            ..decision
        };
        for other in [changed, acts, tells, reads] {
            assert!(!other.may_rest_on_copies(&current), "{other:?}");
        }
    }
}
