//! Observation of the cluster by a pass. `machine::needs` lists the parts that a phase reads; all others stay
//! `NotAsked`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::core::{ApiResource, DynamicObject};
use perfval_api::fleet::PerfBaseline;
use perfval_sizing::Seen;
use perfval_verdict::frame::{Framed, TrialRecord};
use perfval_verdict::progress::Progress;

use crate::build::PackedTrial;
use crate::queue::{Contender, Turn};
pub use perfval_sizing::inventory::Inventory;

/// One part of the world that a phase reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// Permission of the operator to create what a run needs in its namespace.
    Permission,
    /// The DynamoGraphDeployment API as the cluster serves it, if it does.
    Dynamo,
    /// `StorageClasses`.
    StorageClasses,
    /// All `PerfValidation`s that hold a node.
    Holders,
    /// Device class, slices, taint rules, nodes, pods, claims: what sizing counts.
    Inventory,
    /// Device slices, claims and the run's node: whether each worker has a GPU of its own. They come from the watches, and from
    /// new lists while the check is repeated (`gpuCheck` in the status): a watch may be behind, and a fault that two looks find
    /// ends the run.
    Devices,
    /// Everything that carries our name label and our owner reference, of any run.
    Children,
    /// The DynamoGraphDeployment of this run.
    Deployment,
    /// A server-side dry run of the DynamoGraphDeployment.
    DryRun,
    /// Pods of any run of this object, and events of this run.
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
    /// The whole ConfigMap of `status.resultsRef`.
    SavedRun,
    /// The results `ConfigMaps` of every run of this object, without their content.
    SavedResults,
    /// Job that fills the model cache.
    CacheJob,
    /// All `PerfBaseline`s.
    Baselines,
}

/// Everything a pass has to read before it can decide.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    /// The parts.
    pub parts: BTreeSet<Need>,
    /// Number of the open trial ([`Need::Trial`]).
    pub trial: Option<i64>,
    /// Numbers of the finished trials ([`Need::Results`]).
    pub finished_trials: Vec<i64>,
}

impl Needs {
    /// Returns true if there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Creates a set of these parts without further parameters.
    pub(crate) fn new(parts: impl IntoIterator<Item = Need>) -> Self {
        Self {
            parts: parts.into_iter().collect(),
            ..Self::default()
        }
    }
}

/// Observation of the cluster by a pass.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Start of the look; a long look is no pause.
    pub began: Option<DateTime<Utc>>,
    /// Time of this process's look before, if it remembers one; it may have written nothing then.
    pub looked_before: Option<DateTime<Utc>>,
    /// True if some parts may be copies of an earlier pass, or from a watch. Most decisions that change anything need new reads
    /// ([`may_rest_on_copies`](crate::Decision::may_rest_on_copies)).
    pub rests_on_copies: bool,
    /// True if the operator may create what a run needs in its namespace.
    pub permission: Seen<bool>,
    /// The DynamoGraphDeployment API.
    pub dynamo: Seen<DynamoApi>,
    /// `/version` of the API server, such as `v1.36.4`.
    pub kubernetes: Option<String>,
    /// `StorageClasses` of the cluster.
    pub storage_classes: Seen<Vec<StorageClass>>,
    /// Runs that hold a node or plan to, in any namespace.
    pub holders: Seen<Arc<[Contender]>>,
    /// The queue's answer for this run; only the planner has it.
    pub turn: Seen<Turn>,
    /// Since when the planner has chosen this very plan for the run; it is in no status until the run gets its GPUs.
    pub chosen_since: Option<DateTime<Utc>>,
    /// Oddities of the cluster's devices and claims; only the planner reports them.
    pub oddities: Vec<String>,
    /// Everything that sizing counts.
    pub inventory: Seen<Inventory>,
    /// Devices of the run's node and their holders.
    pub devices: Seen<Inventory>,
    /// All objects of the operator for this object, of any run.
    pub children: Seen<Vec<Child>>,
    /// Those of some kinds, if the list of another kind failed.
    pub listed_children: Vec<Child>,
    /// The DynamoGraphDeployment of this run.
    pub deployment: Seen<DynamicObject>,
    /// The API server's answer to a dry run of the DynamoGraphDeployment.
    pub dry_run: Seen<DryRunResult>,
    /// Pods of this object (any run), terminating ones included.
    pub pods: Seen<Vec<Pod>>,
    /// `ResourceClaims` of this object (any run).
    pub claims: Seen<Vec<ResourceClaim>>,
    /// Warnings on pods of this run that are late and not prepared ([`is_prepared`](crate::diagnosis::pods::is_prepared)).
    pub pod_events: Seen<Vec<PodEvent>>,
    /// Events on workers that restarted since they were recorded ([`restarted`](crate::readiness::restarted)), while a run
    /// measures.
    pub endings: Seen<Vec<PodEvent>>,
    /// Preemptions of workers that are gone; looked for only while one is missing
    /// ([`lacks_pods`](crate::preemption::lacks_pods)).
    pub preemptions: Seen<Vec<PodEvent>>,
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
    /// Digest of the results that this process has just written for the object as it is, and that are there.
    pub written_results: Option<String>,
    /// All baselines.
    pub baselines: Seen<Vec<PerfBaseline>>,
    /// The ConfigMap of `status.resultsRef`, with its content.
    pub saved_run: Seen<ConfigMap>,
    /// The results `ConfigMaps` of every run of this object.
    pub saved_results: Seen<Vec<Child>>,
    /// Job that fills the model cache.
    pub cache_job: Seen<Job>,
}

/// The DynamoGraphDeployment API as the cluster serves it.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamoApi {
    /// The newest supported version: v1beta1, or v1alpha1 when only that is served.
    pub resource: ApiResource,
    /// Version of the installed operator (annotation `dynamo.nvidia.com/operator-version` of the CRD).
    pub operator_version: Option<String>,
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
    /// `NetworkPolicy` of the run's pods.
    NetworkPolicy,
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
    /// True if it is being deleted already.
    pub deleting: bool,
    /// The run it belongs to (label).
    pub run: String,
    /// True if its controller owner is this very object; others of the same name are never touched.
    pub ours: bool,
}

/// The API server's answer to a dry run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DryRunResult {
    /// It would create it.
    Accepted,
    /// It refuses: schema, CEL, webhook or quota; its words.
    Rejected(String),
}

/// An Event on a pod or controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodEvent {
    /// Name of the pod, or kind and name of the controller.
    pub pod: String,
    /// Uid of that object.
    pub pod_uid: String,
    /// Reason, such as `FailedScheduling`.
    pub reason: String,
    /// Text.
    pub message: String,
    /// Last time it was seen, by the clock of who reports it.
    pub last_seen: Option<DateTime<Utc>>,
}

/// The node of a run, from its own status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSeen {
    /// True if it is Ready.
    pub ready: bool,
    /// Reason why it is not, in the words of the kubelet or of the node controller.
    pub message: String,
    /// Architecture as in its label `kubernetes.io/arch`; empty if the kubelet has not reported it.
    pub architecture: String,
}

/// The log of one container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRequest {
    /// Pod name.
    pub pod: String,
    /// Container name.
    pub container: String,
    /// True for the log of the container before the current one, which ended.
    pub previous: bool,
}

impl LogRequest {
    /// Creates a request.
    pub fn new(pod: impl Into<String>, container: impl Into<String>, previous: bool) -> Self {
        Self {
            pod: pod.into(),
            container: container.into(),
            previous,
        }
    }
}

/// The end of a log, without colours and secrets.
#[derive(Clone, Debug, PartialEq)]
pub struct PodLog {
    /// Container of the log.
    pub of: LogRequest,
    /// Its last lines.
    pub text: Seen<String>,
}

/// The last lines of a log in each trial with errors, without colours and secrets.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorLog {
    /// Container of the log.
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
    /// It was sent this long ago and is under way.
    InFlight(Duration),
    /// Its answer.
    Answered(ProbeAnswer),
}

/// Answer to one chat completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeAnswer {
    /// 200 with non-empty content or reasoning content.
    Completion,
    /// 200, but without any text.
    Empty,
    /// 404, from a frontend that serves these models and not the requested one.
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
    /// Progress of the trial, read only while the Job runs and the last reading is [old](crate::progress::is_old).
    pub progress: Option<Progress>,
}
