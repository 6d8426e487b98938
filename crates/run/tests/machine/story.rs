//! A run in a simulated cluster: effects change it, the next pass observes it.

mod assertions;
mod effects;
mod observed;
mod trials;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::{ApiResource, GroupVersionKind};
use perfval_api::fleet::PerfBaseline;
use perfval_api::{PerfValidation, PerfValidationStatus, Phase, Reason, Verdict};
use perfval_run::observed::{Child, DryRunResult, DynamoApi, ErrorLog, Need, PodEvent, Probe, ProbeAnswer};
use perfval_run::obstacle::Obstacle;
use perfval_run::queue::Contender;
use perfval_run::{Decision, Run, Settings, machine};
use perfval_sizing::Seen;
use perfval_verdict::node_cpu::NodeCpu;
use perfval_verdict::progress::Progress;
use serde_json::{Value, json};

pub use assertions::ARROWS;
pub use observed::Around;

/// What the next trial will show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Showing {
    Fast,
    Slow,
    Starved,
    Crash,
    Hang,
    /// The Job's deadline ended it, and nothing is left of what it printed.
    TimedOut,
}

/// One run and its world: a switch for everything that can go wrong in it. Fields are set by a test between steps.
#[expect(clippy::struct_excessive_bools, reason = "each is one switch of the world")]
pub struct Story {
    pub object: PerfValidation,
    pub now: DateTime<Utc>,
    pub settings: Settings,
    /// Whether an administrator allows runs in the namespace.
    pub permission: Seen<bool>,
    pub dynamo: Seen<DynamoApi>,
    pub free: usize,
    /// Pods with a GPU of a device plugin, on a node where one offers the same GPUs.
    pub plugin_pods: Option<usize>,
    /// GPUs that the device plugin reports as unhealthy.
    pub plugin_faulty: usize,
    /// Whether the driver has taken one GPU of the node out of service.
    pub tainted: bool,
    pub unreadable: bool,
    /// True if the quotas of the namespace cannot be listed, unlike everything else.
    pub quotas_unreadable: bool,
    /// True if the pods cannot be listed, unlike everything else.
    pub pods_unreadable: bool,
    /// Whether the watch of the claims still shows the holder of a shared GPU, which is gone.
    pub watch_is_behind: bool,
    /// The watch of the claims does not show those of the workers yet.
    pub watch_lacks_claims: bool,
    pub others: Vec<Contender>,
    /// Whether there is a node for every run.
    pub endless: bool,
    pub admission: Seen<DryRunResult>,
    pub deployed: bool,
    pub deployment_failed: bool,
    pub workers_ready: bool,
    pub restarts: i32,
    /// Exit code and reason of a container that restarted.
    pub ended: (i32, &'static str),
    /// Events on the workers that restarted.
    pub endings: Seen<Vec<PodEvent>>,
    /// Preemptions of workers that are gone.
    pub preemptions: Seen<Vec<PodEvent>>,
    /// Last lines of the workload in trials with errors.
    pub error_logs: Vec<ErrorLog>,
    /// CPUs of the node during the trials.
    pub node_cpu: Option<NodeCpu>,
    /// Commit of the model in the record of a trial.
    pub commit: Option<String>,
    /// Every pod was replaced by another one on the same GPU.
    pub replaced: bool,
    pub pod_waiting: Option<&'static str>,
    /// The scheduler removes this pod for one of higher priority; it is still there while it ends.
    pub preempted: Option<&'static str>,
    pub unschedulable: bool,
    pub pods_age: i64,
    /// What the names of its pods end with.
    pub pod_name: &'static str,
    /// How far the clock of the scheduler is ahead (s).
    pub others_clock: i64,
    pub shared_gpu: bool,
    pub prepare_error: Option<&'static str>,
    pub wrong_node: bool,
    pub frontend_log: Option<&'static str>,
    pub probe: Probe,
    pub answer: ProbeAnswer,
    pub cache_job: Option<&'static str>,
    pub around: Around,
    pub showing: Showing,
    pub trial_job: Option<i64>,
    /// When the open trial's Job ended; long ago, unless a test says so.
    pub trial_ended_at: DateTime<Utc>,
    pub trial_log_unreadable: bool,
    /// Whether the open trial's Job left no record.
    pub trial_log_missing: bool,
    /// Whether a queue has held the Jobs before.
    pub jobs_were_suspended: bool,
    /// What the runner says of the open trial.
    pub progress: Option<Progress>,
    /// Page of the DCGM exporter on the node.
    pub gpu_exporter: Seen<String>,
    /// Time from one token to the next that the engines report (ms).
    pub token_ms: Option<i64>,
    /// Baselines of the cluster.
    pub baselines: Seen<Vec<PerfBaseline>>,
    /// Whom the Jobs belong to, if not to this run.
    pub job_owner: Option<&'static str>,
    /// Changes when another client replaces the Jobs.
    pub job_uid: &'static str,
    /// Whether a queue holds the trials' Jobs and the workers back.
    pub queued: bool,
    /// A load generator that outlived its Job.
    pub stray_generator: bool,
    /// A worker that was deleted, for which another one has come.
    pub leaving_worker: bool,
    pub children: Vec<Child>,
    /// Whether finalizers hold what is deleted.
    pub stuck: bool,
    /// Whether the logs of pods and of finished trials cannot be read.
    pub logs_unreadable: bool,
    pub saved: Option<String>,
    /// Every results ConfigMap that was saved, by its name.
    pub results: BTreeMap<String, ConfigMap>,
    pub results_unreadable: bool,
    pub saving_fails: bool,
    /// What earlier runs saved.
    pub saved_results: Seen<Vec<Child>>,
    /// When the operator looked at it, as far as its process remembers.
    pub planned: Option<DateTime<Utc>>,
    pub log: Vec<Decision>,
    pub gone: bool,
}

impl Story {
    pub fn new() -> Self {
        Self::with(json!({}))
    }

    /// A run whose spec is the usual one merged with `spec`.
    pub fn with(spec: Value) -> Self {
        let mut manifest = json!({
            "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation",
            "metadata": {"name": "run", "namespace": "perf", "uid": "u-1", "generation": 1},
            "spec": {
                "model": {"name": "m"}, "workload": {"dynamo": {"image": "vllm-runtime:1.4.2"}},
                "placement": {"maxGPUs": 2},
                "benchmark": {"image": "aiperf:0.13.0"},
                "trials": {"rule": "Single", "max": 1},
                "gates": [{"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1000"}],
            },
        });
        merge(&mut manifest["spec"], spec);
        Self {
            object: serde_json::from_value(manifest).expect("well-formed"),
            now: DateTime::from_timestamp(1_790_000_000, 0).expect("well-formed"),
            settings: Settings {
                names_foreign_pods: true,
                benchmark_images: vec!["aiperf".into()],
                ..Settings::default()
            },
            permission: Seen::Present(true),
            dynamo: Seen::Present(DynamoApi {
                resource: ApiResource::from_gvk(&GroupVersionKind::gvk(
                    "nvidia.com",
                    "v1beta1",
                    "DynamoGraphDeployment",
                )),
                operator_version: Some("1.4.2".into()),
            }),
            free: 8,
            plugin_pods: None,
            plugin_faulty: 0,
            tainted: false,
            unreadable: false,
            quotas_unreadable: false,
            pods_unreadable: false,
            watch_is_behind: false,
            watch_lacks_claims: false,
            others: Vec::new(),
            endless: false,
            admission: Seen::Present(DryRunResult::Accepted),
            deployed: false,
            deployment_failed: false,
            workers_ready: true,
            restarts: 0,
            ended: (139, "Error"),
            endings: Seen::Present(Vec::new()),
            preemptions: Seen::NotAsked,
            error_logs: Vec::new(),
            node_cpu: None,
            commit: None,
            replaced: false,
            pod_waiting: None,
            preempted: None,
            unschedulable: false,
            pods_age: 200,
            pod_name: "",
            others_clock: 0,
            shared_gpu: false,
            prepare_error: None,
            wrong_node: false,
            frontend_log: None,
            probe: Probe::Idle,
            answer: ProbeAnswer::Completion,
            cache_job: None,
            around: Around::default(),
            showing: Showing::Fast,
            trial_job: None,
            trial_ended_at: DateTime::UNIX_EPOCH,
            trial_log_unreadable: false,
            trial_log_missing: false,
            jobs_were_suspended: false,
            progress: None,
            gpu_exporter: Seen::Absent,
            token_ms: None,
            baselines: Seen::Absent,
            job_owner: None,
            job_uid: "first",
            queued: false,
            stray_generator: false,
            leaving_worker: false,
            children: Vec::new(),
            stuck: false,
            logs_unreadable: false,
            saved: None,
            results: BTreeMap::new(),
            results_unreadable: false,
            saving_fails: false,
            saved_results: Seen::Present(Vec::new()),
            planned: None,
            log: Vec::new(),
            gone: false,
        }
    }

    pub fn status(&self) -> PerfValidationStatus {
        self.object.status.clone().unwrap_or_default()
    }

    pub fn phase(&self) -> Option<Phase> {
        self.status().phase
    }

    pub fn verdict(&self) -> Option<Verdict> {
        self.status().verdict
    }

    pub fn message(&self) -> String {
        self.status().message.unwrap_or_default()
    }

    /// Reason as a reader can tell it: the word, or of several reasons with this word the one whose remedy the message or the
    /// newest finding shows.
    pub fn reason(&self) -> String {
        let status = self.status();
        let word = status.reason.unwrap_or_default();
        let message = status.message.unwrap_or_default();
        let own = Reason::ALL.iter().map(|reason| (*reason, reason.remedy()));
        let obstacles = Obstacle::ALL
            .iter()
            .map(|obstacle| (obstacle.reason(), obstacle.remedy()));
        let same: Vec<(Reason, &str)> = obstacles
            .chain(own)
            .filter(|(reason, remedy)| reason.as_str() == word && *remedy != reason.word().remedy())
            .collect();
        let findings = status.diagnosis.iter().rev().filter(|finding| finding.cause == word);
        let texts = std::iter::once(message).chain(findings.map(|finding| finding.remedy.clone()));
        let told = texts
            .into_iter()
            .find_map(|text| same.iter().find(|(_, remedy)| text.contains(remedy)));
        told.map_or(word, |(reason, _)| reason.name().to_owned())
    }

    fn uid(&self) -> &str {
        self.object.metadata.uid.as_deref().unwrap_or_default()
    }

    pub fn id(&self) -> String {
        let run = self.status().run;
        run.map(|run| perfval_run::names::run_id(self.uid(), run.number))
            .unwrap_or_default()
    }

    /// Time passes in which the operator looks and finds nothing new: only its heartbeat moves.
    pub fn wait(&mut self, seconds: i64) -> &mut Self {
        let status = self.object.status.as_mut();
        if let Some(last) = status.and_then(|status| status.state.last_looked_at.as_mut()) {
            *last += TimeDelta::seconds(seconds);
        }
        self.planned = self.planned.map(|last| last + TimeDelta::seconds(seconds));
        self.outage(seconds)
    }

    /// Time passes in which the operator does not look.
    pub fn outage(&mut self, seconds: i64) -> &mut Self {
        self.now += TimeDelta::seconds(seconds);
        self
    }

    pub fn spec(&mut self, change: Value) -> &mut Self {
        let mut spec = serde_json::to_value(&self.object.spec).expect("well-formed");
        merge(&mut spec, change);
        self.object.spec = serde_json::from_value(spec).expect("well-formed");
        self.object.metadata.generation = self.object.metadata.generation.map(|generation| generation + 1);
        self
    }

    pub fn annotate(&mut self, key: &str, value: Option<&str>) -> &mut Self {
        let annotations = self.object.metadata.annotations.get_or_insert_default();
        match value {
            Some(value) => drop(annotations.insert(key.into(), value.into())),
            None => drop(annotations.remove(key)),
        }
        self
    }

    pub fn delete(&mut self) -> &mut Self {
        self.object.metadata.deletion_timestamp = Some(Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH));
        // As the API server does.
        self.object.metadata.generation = self.object.metadata.generation.map(|generation| generation + 1);
        self
    }

    /// One pass, one second later.
    pub fn step(&mut self) -> Decision {
        self.outage(1);
        self.finish_deletions();
        let before = Run::new(&self.object, &self.settings).phase();
        let decision = self.decide();
        self.planned = Some(self.now);
        self.object.status = Some(decision.status.clone());
        self.assert_arrow(before);
        for effect in decision.effects.clone() {
            self.act(effect);
        }
        self.log.push(decision.clone());
        decision
    }

    /// Several passes.
    pub fn steps(&mut self, passes: usize) -> &mut Self {
        for _ in 0..passes {
            self.step();
        }
        self
    }

    /// Several passes with a pause before each.
    pub fn looks(&mut self, passes: usize, pause: i64) -> &mut Self {
        for _ in 0..passes {
            self.wait(pause).step();
        }
        self
    }

    /// From now on the endpoint gives this answer.
    pub fn answers(&mut self, answer: ProbeAnswer) -> &mut Self {
        self.answer = answer;
        self.probe = Probe::Idle;
        self
    }

    /// What a pass would decide now.
    pub fn decide(&self) -> Decision {
        let run = Run::new(&self.object, &self.settings);
        let mut needs = self.needs();
        let seen = if machine::is_queued(&run) {
            self.turn()
        } else {
            self.observe(&needs)
        };
        let mut decision = machine::decide(&run, &seen, self.now);
        for _ in 0..4 {
            if decision.reads.is_empty() {
                break;
            }
            needs.extend(decision.reads.parts.clone());
            decision = machine::decide(&run, &self.observe(&needs), self.now);
        }
        assert!(decision.reads.is_empty(), "{:?} was read already", decision.reads.parts);
        decision
    }

    /// Reads that the next pass needs first.
    pub fn needs(&self) -> BTreeSet<Need> {
        machine::needs(&Run::new(&self.object, &self.settings)).parts
    }

    /// Steps until this trial is open.
    #[track_caller]
    pub fn until_trial(&mut self, number: usize) -> &mut Self {
        self.until_that(|story| story.status().state.trials.len() >= number)
    }

    /// Steps until a trial is over.
    #[track_caller]
    pub fn until_measured(&mut self) -> &mut Self {
        self.until_that(|story| story.status().state.trials.iter().any(|trial| trial.outcome.is_some()))
    }

    /// Steps until a trial is over while the next one is not open yet, because a load generator still works.
    pub fn until_between_trials(&mut self) -> &mut Self {
        self.until(Phase::Benchmarking);
        self.until_that(|story| story.trial_job.is_some());
        self.stray_generator = true;
        self.until_measured();
        self.stray_generator = false;
        self
    }

    /// Steps until the phase is reached.
    #[track_caller]
    pub fn until(&mut self, phase: Phase) -> &mut Self {
        self.until_that(|story| story.phase() == Some(phase))
    }

    /// Steps until this is so.
    #[track_caller]
    pub fn until_that(&mut self, is_so: impl Fn(&Self) -> bool) -> &mut Self {
        for _ in 0..80 {
            if is_so(self) {
                return self;
            }
            self.step();
        }
        panic!("not reached: {:?} {}", self.phase(), self.reason());
    }
}

fn merge(base: &mut Value, change: Value) {
    match (base, change) {
        (Value::Object(base), Value::Object(change)) => {
            for (key, value) in change {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, change) => *base = change,
    }
}
