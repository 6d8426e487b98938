//! What a pass saw of the cluster. `machine::needs` says which parts a phase reads; all others stay `NotAsked`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::core::{ApiResource, DynamicObject};
use perfval_sizing::Seen;
use perfval_verdict::frame::{Framed, TrialRecord};
use perfval_verdict::progress::Progress;

use crate::build::PackedTrial;
use crate::queue::{Contender, Turn};
pub use perfval_sizing::inventory::Inventory;

/// One part of the world that a phase reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// Whether and how the DynamoGraphDeployment API is served.
    Dynamo,
    /// `StorageClasses`.
    StorageClasses,
    /// All `PerfValidation`s that hold a node.
    Holders,
    /// Device class, slices, taint rules, nodes, pods, claims: what sizing counts.
    Inventory,
    /// Everything that carries our name label and our owner reference, of any run.
    Children,
    /// The DynamoGraphDeployment of this run.
    Deployment,
    /// A server-side dry run of the DynamoGraphDeployment.
    DryRun,
    /// Pods and pod events of this run (label `perfvalidation.dev/run`).
    Workload,
    /// `ResourceClaims` of any run of this object.
    Claims,
    /// The last answer of the probe.
    Probe,
    /// Job, pod and output of the open trial.
    Trial,
    /// The DCGM exporter on the run's node.
    GpuExporter,
    /// The framed output of every finished trial, and the results ConfigMap.
    Results,
    /// The whole ConfigMap that `status.resultsRef` names.
    SavedRun,
    /// The results `ConfigMaps` of every run of this object, without their content.
    SavedResults,
    /// Job that fills the model cache.
    CacheJob,
}

/// Everything a pass has to read before it can decide.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    /// The parts.
    pub parts: BTreeSet<Need>,
    /// Body of the dry run ([`Need::DryRun`]).
    pub dry_run: Option<Box<DynamicObject>>,
    /// Number of the open trial ([`Need::Trial`]).
    pub trial: Option<i64>,
    /// Numbers of the finished trials ([`Need::Results`]).
    pub finished_trials: Vec<i64>,
}

impl Needs {
    /// These parts, none of which needs to know more.
    pub(crate) fn of(parts: impl IntoIterator<Item = Need>) -> Self {
        Self {
            parts: parts.into_iter().collect(),
            ..Self::default()
        }
    }
}

/// What a pass saw.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// When it began to look; a look that takes long is no pause.
    pub began: Option<DateTime<Utc>>,
    /// When this process looked at this run before, where it remembers; it may have written nothing then.
    pub looked_before: Option<DateTime<Utc>>,
    /// The DynamoGraphDeployment API.
    pub dynamo: Seen<DynamoApi>,
    /// `/version` of the API server, such as `v1.36.4`.
    pub kubernetes: Option<String>,
    /// `StorageClasses` of the cluster.
    pub storage_classes: Seen<Vec<StorageClass>>,
    /// Runs that hold a node or plan to, in any namespace.
    pub holders: Seen<Arc<[Contender]>>,
    /// What the queue says to this run; only the planner knows.
    pub turn: Seen<Turn>,
    /// What is odd about the devices and claims of the cluster; only the planner reports it.
    pub oddities: Vec<String>,
    /// What sizing counts.
    pub inventory: Seen<Inventory>,
    /// Everything of ours that exists, of any run of this object.
    pub children: Seen<Vec<Child>>,
    /// The DynamoGraphDeployment of this run.
    pub deployment: Seen<DynamicObject>,
    /// What the API server says of the DynamoGraphDeployment we would create.
    pub dry_run: Seen<Admission>,
    /// Pods of this object (any run), terminating ones included.
    pub pods: Seen<Vec<Pod>>,
    /// `ResourceClaims` of this object (any run).
    pub claims: Seen<Vec<ResourceClaim>>,
    /// Events on this run's pods.
    pub pod_events: Seen<Vec<PodEvent>>,
    /// Events on workers that restarted since they were recorded ([`restarted`](crate::readiness::restarted)), while a run
    /// measures.
    pub endings: Seen<Vec<PodEvent>>,
    /// Events on what has to create this run's pods and may not (`FailedCreate`); looked for only while pods are missing.
    pub refusals: Seen<Vec<PodEvent>>,
    /// The node of this run; looked at only while pods are missing or not ready.
    pub node: Seen<NodeSeen>,
    /// Ends of logs that show why pods do not serve ([`wanted`](crate::diagnosis::log::wanted)).
    pub pod_logs: Vec<PodLog>,
    /// Last lines of the frontend and the workers in trials with errors
    /// ([`wanted`](crate::diagnosis::error_logs::wanted)).
    pub error_logs: Vec<ErrorLog>,
    /// The probe.
    pub probe: Probe,
    /// The open trial.
    pub trial: Seen<TrialSeen>,
    /// Page of the DCGM exporter on the run's node.
    pub gpu_exporter: Seen<String>,
    /// Each finished trial as the log of its AIPerf container holds it, by number; absent without a complete frame.
    pub packed_trials: BTreeMap<i64, Seen<PackedTrial>>,
    /// SHA-256 annotation of the results ConfigMap.
    pub results: Seen<Option<String>>,
    /// The ConfigMap that `status.resultsRef` names, with its content.
    pub saved_run: Seen<ConfigMap>,
    /// The results `ConfigMaps` of every run of this object.
    pub saved_results: Seen<Vec<Child>>,
    /// Job that fills the model cache.
    pub cache_job: Seen<Job>,
}

/// How the DynamoGraphDeployment API is served.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamoApi {
    /// The newest version we speak: v1beta1, or v1alpha1 when only that is served.
    pub resource: ApiResource,
    /// Version of the installed operator (annotation `dynamo.nvidia.com/operator-version` of the CRD).
    pub operator_version: Option<String>,
    /// Whether its components have the field `runtimeVersionOverride`; looked at only where `workload.dynamo.runtimeVersion` is set.
    pub takes_runtime_version: bool,
}

/// Kinds of children, in the order in which they are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChildKind {
    /// AIPerf Job, or the Job that fills the model cache.
    Job,
    /// DynamoGraphDeployment.
    Deployment,
    /// Headless Service over the workers.
    Service,
    /// ResourceClaimTemplate of the workers.
    ClaimTemplate,
    /// ConfigMap with the results of a run; outlives it.
    Results,
}

/// Identity of a child.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChildRef {
    /// Its kind.
    pub kind: ChildKind,
    /// Its name, in the object's namespace.
    pub name: String,
    /// Its uid, the precondition of every delete.
    pub uid: String,
}

/// A child that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    /// Its identity.
    pub id: ChildRef,
    /// Whether it is being deleted already.
    pub deleting: bool,
    /// The run it belongs to (label).
    pub run: String,
    /// Whether its controller owner is this very object; others of the same name are never touched.
    pub ours: bool,
}

/// What the API server answers to a dry run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It would create it.
    Accepted,
    /// It refuses: schema, CEL, webhook or quota; its words.
    Rejected(String),
}

/// An Event on one of our pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodEvent {
    /// Pod name.
    pub pod: String,
    /// Pod uid.
    pub pod_uid: String,
    /// Reason, such as `FailedScheduling`.
    pub reason: String,
    /// Text.
    pub message: String,
    /// Last time it was seen, by the clock of who reports it.
    pub last_seen: Option<DateTime<Utc>>,
}

/// What the node of a run says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSeen {
    /// Whether it is Ready.
    pub ready: bool,
    /// Why it is not, in the words of the kubelet or of who missed it.
    pub message: String,
}

/// The log of one container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRequest {
    /// Pod name.
    pub pod: String,
    /// Container name.
    pub container: String,
    /// That of the container before the current one, which ended.
    pub previous: bool,
}

/// The end of a log, without colours and secrets.
#[derive(Clone, Debug, PartialEq)]
pub struct PodLog {
    /// Whose log it is.
    pub of: LogRequest,
    /// Its last lines.
    pub text: Seen<String>,
}

/// The last lines of a log in each trial with errors, without colours and secrets.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorLog {
    /// Whose log it is.
    pub of: LogRequest,
    /// Lines with their time, by the number of the trial.
    pub trials: Seen<BTreeMap<i64, String>>,
}

/// State of the probe, which runs in the background.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Probe {
    /// None was sent since this process began, or its answer was taken.
    #[default]
    Idle,
    /// It is under way.
    InFlight,
    /// Its answer.
    Answered(ProbeAnswer),
}

/// What came back from one chat completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeAnswer {
    /// 200 with non-empty content or reasoning content; the first characters of it.
    Completion(String),
    /// 200, but without any text.
    Empty,
    /// 404, from a frontend that serves these models and not the one that was asked for.
    OtherModels(Vec<String>),
    /// Another status, and the beginning of the body.
    Refused(u16, String),
    /// No answer: connection refused, time-out, …
    Failed(String),
}

/// Job and pod of a trial.
#[derive(Clone, Debug, Default)]
pub struct TrialSeen {
    /// The Job.
    pub job: Option<Job>,
    /// Its pod; the newest, should there be several.
    pub pod: Option<Pod>,
    /// Record in the log of its AIPerf container, read only once the Job is over.
    pub record: Seen<Framed<TrialRecord>>,
    /// How far it is, read only while the Job runs and what is known is [old](crate::progress::is_old).
    pub progress: Option<Progress>,
}
