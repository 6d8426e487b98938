//! A run in a small world that does what it is told: effects change it, the next pass observes it.

use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::{ApiResource, DynamicObject};
use perfval_api::{PerfValidation, PerfValidationStatus, Phase, Verdict, meta};
use perfval_core::aiperf::Report;
use perfval_core::frame::{Failure, Outcome, Payload, TrialRecord, frame};
use perfval_core::observed::{
    Admission, Child, ChildKind, ChildRef, DynamoApi, Inventory, Need, OtherRun, Probe, ProbeAnswer, TrialSeen,
};
use perfval_core::workers::WorkerSummary;
use perfval_core::{Decision, Effect, Observed, Run, Seen, Settings, machine, names};
use perfval_testkit::inventory::{ClaimBuilder, Cluster, NodeBuilder, PodBuilder};
use rust_decimal::Decimal;
use serde_json::{Value, json};

/// What the next trial will show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Showing {
    Fast,
    Slow,
    Starved,
    Crash,
    Hang,
}

/// One run and its world: a switch for everything that can go wrong in it. Fields are set by a test between steps.
#[expect(clippy::struct_excessive_bools, reason = "each is one switch of the world")]
pub struct Story {
    pub object: PerfValidation,
    pub now: DateTime<Utc>,
    pub settings: Settings,
    pub dynamo: Seen<DynamoApi>,
    pub free: usize,
    /// Pods with a GPU of a device plugin, on a node where one offers the same GPUs.
    pub plugin_pods: Option<usize>,
    pub unreadable: bool,
    pub others: Vec<OtherRun>,
    pub refused: Option<String>,
    pub deployed: bool,
    pub deployment_failed: bool,
    pub workers_ready: bool,
    pub restarts: i32,
    pub pod_waiting: Option<&'static str>,
    pub unschedulable: bool,
    pub prepare_error: Option<&'static str>,
    pub wrong_node: bool,
    pub probe: Probe,
    pub answer: ProbeAnswer,
    pub cache_job: Option<&'static str>,
    pub showing: Showing,
    pub trial_job: Option<i64>,
    pub children: Vec<Child>,
    pub stuck: bool,
    pub logs_unreadable: bool,
    pub saved: Option<String>,
    pub saving_fails: bool,
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
                "model": {"name": "m"}, "workload": {"image": "vllm-runtime:1.4.2"},
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
            settings: Settings::default(),
            dynamo: Seen::Present(DynamoApi {
                resource: dgd_resource(),
                operator_version: Some("1.4.2".into()),
            }),
            free: 8,
            plugin_pods: None,
            unreadable: false,
            others: Vec::new(),
            refused: None,
            deployed: false,
            deployment_failed: false,
            workers_ready: true,
            restarts: 0,
            pod_waiting: None,
            unschedulable: false,
            prepare_error: None,
            wrong_node: false,
            probe: Probe::Idle,
            answer: ProbeAnswer::Completion("hello".into()),
            cache_job: None,
            showing: Showing::Fast,
            trial_job: None,
            children: Vec::new(),
            stuck: false,
            logs_unreadable: false,
            saved: None,
            saving_fails: false,
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

    pub fn reason(&self) -> String {
        self.status().reason.unwrap_or_default()
    }

    pub fn id(&self) -> String {
        self.status().run.map(|run| run.id).unwrap_or_default()
    }

    pub fn wait(&mut self, seconds: i64) -> &mut Self {
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
        self
    }

    /// One pass, one second later.
    pub fn step(&mut self) -> Decision {
        self.wait(1);
        let decision = self.decide();
        self.object.status = Some(decision.status.clone());
        for effect in decision.effects.clone() {
            self.act(effect);
        }
        self.log.push(decision.clone());
        decision
    }

    /// What a pass would decide now.
    pub fn decide(&self) -> Decision {
        let run = Run::new(&self.object, &self.settings);
        machine::decide(&run, &self.observe(&machine::needs(&run).parts), self.now)
    }

    /// Steps until the phase is reached.
    pub fn until(&mut self, phase: Phase) -> &mut Self {
        for _ in 0..80 {
            if self.phase() == Some(phase) {
                return self;
            }
            self.step();
        }
        panic!("{phase:?} not reached: {:?} {}", self.phase(), self.reason());
    }

    fn observe(&self, needs: &std::collections::BTreeSet<Need>) -> Observed {
        let mut seen = Observed::default();
        for need in needs {
            match need {
                Need::Dynamo => {
                    seen.dynamo = self.dynamo.clone();
                    seen.kubernetes = Some("v1.36.4".into());
                }
                Need::StorageClasses => {
                    let fast = json!({"metadata": {"name": "fast"}, "provisioner": "p"});
                    seen.storage_classes = Seen::Present(vec![serde_json::from_value(fast).expect("well-formed")]);
                }
                Need::OtherRuns => seen.other_runs = Seen::Present(self.others.clone()),
                Need::Inventory => seen.inventory = self.inventory(),
                Need::Children => seen.children = Seen::Present(self.children.clone()),
                Need::Deployment => seen.deployment = self.deployment(),
                Need::DryRun => {
                    seen.dry_run = Seen::Present(self.refused.clone().map_or(Admission::Accepted, Admission::Rejected));
                }
                Need::Workload if self.unreadable => {
                    seen.pods = Seen::Unknown("GET pods: 403".into());
                    seen.claims = Seen::Unknown("GET claims: 403".into());
                }
                Need::Workload => {
                    seen.pods = Seen::Present(self.pods());
                    seen.claims = Seen::Present(self.claims());
                    seen.pod_events = Seen::Present(self.events());
                }
                Need::Probe => seen.probe = self.probe.clone(),
                Need::Trial => seen.trial = Seen::Present(self.trial()),
                Need::Results => self.results(&mut seen),
                Need::CacheJob => seen.cache_job = self.cache_job.map_or(Seen::Absent, |end| Seen::Present(job(end))),
            }
        }
        seen
    }

    fn act(&mut self, effect: Effect) {
        let id = self.id();
        match effect {
            Effect::EnsureFinalizer => self.object.metadata.finalizers = Some(vec![meta::FINALIZER.into()]),
            Effect::ReleaseFinalizer => self.gone = true,
            Effect::CreateClaimTemplate(_) => self.child(ChildKind::ClaimTemplate, &names::deployment(&id)),
            Effect::CreateWorkersService(_) => self.child(ChildKind::Service, &names::workers_service(&id)),
            Effect::CreateDeployment(_) => {
                self.deployed = true;
                self.child(ChildKind::Deployment, &names::deployment(&id));
            }
            Effect::CreateCacheClaim(_) => {}
            Effect::CreateCacheJob(_) => self.cache_job = self.cache_job.or(Some("Complete")),
            Effect::CreateTrialJob(_) => {
                self.trial_job = self.status().trials.last().map(|trial| trial.number);
                let name = names::trial_job(&id, self.trial_job.unwrap_or(0));
                self.child(ChildKind::Job, &name);
            }
            Effect::Probe(_) => self.probe = Probe::Answered(self.answer.clone()),
            Effect::SaveResults(map) => {
                if !self.saving_fails {
                    self.saved = Some(perfval_core::build::results_sha256(&map));
                }
            }
            Effect::Delete(child) => {
                if !self.stuck {
                    self.children.retain(|existing| existing.id != child);
                    self.deployed &= child.kind != ChildKind::Deployment;
                }
            }
            Effect::DeleteSelf => {
                self.delete();
            }
        }
    }

    fn child(&mut self, kind: ChildKind, name: &str) {
        let id = ChildRef {
            kind,
            name: name.into(),
            uid: format!("uid-{name}"),
        };
        if !self.children.iter().any(|child| child.id == id) {
            self.children.push(Child {
                id,
                deleting: false,
                run: self.id(),
                ours: true,
            });
        }
    }

    fn inventory(&self) -> Seen<Inventory> {
        if self.unreadable {
            return Seen::Unknown("GET resourceslices: 403".into());
        }
        let held = (self.free..8).fold(ClaimBuilder::named("held"), |claim, n| {
            claim.holds("n1", &format!("gpu-{n}"))
        });
        let mut cluster = Cluster::of_gpus(8).claim(held);
        if let Some(pods) = self.plugin_pods {
            cluster = cluster.node(NodeBuilder::named("n1").offers("nvidia.com/gpu", "8"));
            let pod = |n: usize| PodBuilder::on("n1", &format!("train-{n}")).requests("nvidia.com/gpu", "1");
            cluster = (0..pods).map(pod).fold(cluster, Cluster::pod);
        }
        Seen::Present(cluster.inventory())
    }

    fn deployment(&self) -> Seen<DynamicObject> {
        if self.unreadable {
            return Seen::Unknown("GET dynamographdeployments: timed out".into());
        }
        if !self.deployed {
            return Seen::Absent;
        }
        let ready = i64::from(self.workers_ready && !self.unschedulable);
        Seen::Present(serde_json::from_value(json!({
            "apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment",
            "metadata": {"name": names::deployment(&self.id()), "namespace": "perf", "generation": 1,
                "ownerReferences": [{"apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation", "name": "run", "uid": "u-1", "controller": true}]},
            "status": {"observedGeneration": 1, "state": if self.deployment_failed { "failed" } else { "successful" },
                "conditions": [{"type": "Ready", "status": "True", "reason": "r", "message": "words of the operator"}],
                "components": {"frontend": {"readyReplicas": ready}, "worker": {"readyReplicas": ready * 2}}},
        })).expect("well-formed"))
    }

    fn pods(&self) -> Vec<k8s_openapi::api::core::v1::Pod> {
        if !self.deployed {
            return Vec::new();
        }
        let pod = |name: &str, component: &str| {
            let ready = if self.workers_ready && !self.unschedulable {
                "True"
            } else {
                "False"
            };
            let created = (self.now - TimeDelta::seconds(200)).to_rfc3339();
            let mut conditions = vec![json!({"type": "Ready", "status": ready})];
            if self.unschedulable && component == "worker" {
                conditions.push(
                    json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                    "message": "cannot allocate all claims", "lastTransitionTime": created}),
                );
            }
            let state = match self.pod_waiting {
                Some(reason) => json!({"waiting": {"reason": reason, "message": "manifest unknown"}}),
                None if self.prepare_error.is_some() => json!({"waiting": {"reason": "ContainerCreating"}}),
                None => json!({"running": {}}),
            };
            let node = if self.wrong_node { "n2" } else { "n1" };
            serde_json::from_value(json!({
                "metadata": {"name": name, "uid": format!("uid-{name}"), "creationTimestamp": created,
                    "labels": {"perfvalidation.dev/run": self.id(), "perfvalidation.dev/component": component}},
                "spec": {"nodeName": node, "containers": []},
                "status": {"conditions": conditions, "containerStatuses": [{"name": "main", "image": "i", "imageID": "sha256:1",
                    "ready": true, "restartCount": if self.pod_waiting.is_some() { 5 } else { self.restarts }, "state": state}]},
            })).expect("well-formed")
        };
        vec![pod("frontend", "frontend"), pod("w0", "worker"), pod("w1", "worker")]
    }

    fn claims(&self) -> Vec<k8s_openapi::api::resource::v1::ResourceClaim> {
        let claim = |n: usize| {
            serde_json::from_value(json!({
            "metadata": {"name": format!("c{n}"), "namespace": "perf",
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": format!("w{n}"), "uid": format!("uid-w{n}")}]},
            "spec": {"devices": {"requests": []}},
            "status": {"allocation": {"devices": {"results": [
                {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n1", "device": format!("gpu-{n}")}]}}}})).expect("well-formed")
        };
        if self.deployed {
            (0..2).map(claim).collect()
        } else {
            Vec::new()
        }
    }

    fn events(&self) -> Vec<perfval_core::observed::PodEvent> {
        self.prepare_error
            .map(|message| perfval_core::observed::PodEvent {
                pod: "w0".into(),
                pod_uid: "uid-w0".into(),
                reason: "FailedPrepareDynamicResources".into(),
                message: message.into(),
                last_seen: Some(self.now),
            })
            .into_iter()
            .collect()
    }

    fn nonce(&self, trial: i64) -> String {
        names::nonce("u-1", &self.id(), trial)
    }

    fn record(&self, trial: i64) -> TrialRecord {
        let throughput = if self.showing == Showing::Slow { 900 } else { 2000 };
        let outcome = if self.showing == Showing::Crash {
            Outcome::Failure(Failure::Exited {
                tail: "Traceback".into(),
            })
        } else {
            Outcome::Report(Box::new(report(throughput, self.showing == Showing::Starved)))
        };
        let worker = |n: usize| WorkerSummary {
            address: format!("10.0.0.{n}"),
            samples: 10,
            served: 50,
            peak_in_flight: 8,
            rate_per_second: Decimal::from(5),
            ..WorkerSummary::default()
        };
        TrialRecord {
            nonce: self.nonce(trial),
            exit_code: 0,
            outcome,
            workers: vec![worker(1), worker(2)],
            scrape_errors: std::collections::BTreeMap::new(),
            abridged: std::collections::BTreeSet::new(),
        }
    }

    fn log_of(&self, trial: i64) -> String {
        frame(&Payload {
            record: self.record(trial),
            aiperf: None,
            workers: Vec::new(),
        })
        .expect("well-formed")
    }

    fn trial(&self) -> TrialSeen {
        let Some(number) = self.trial_job else {
            return TrialSeen::default();
        };
        if self.status().trials.last().map(|trial| trial.number) != Some(number) {
            return TrialSeen::default();
        }
        let end = if self.showing == Showing::Hang {
            "Running"
        } else {
            "Complete"
        };
        TrialSeen {
            job: Some(job(end)),
            pod: None,
            log: Seen::Present(self.log_of(number)),
        }
    }

    fn results(&self, seen: &mut Observed) {
        for trial in self.status().trials.iter().filter(|trial| trial.outcome.is_some()) {
            let log = if self.logs_unreadable {
                Seen::Unknown("logs: 500".into())
            } else {
                Seen::Present(self.log_of(trial.number))
            };
            seen.trial_logs.insert(trial.number, log);
        }
        seen.results = self.saved.clone().map_or(Seen::Absent, |sha| Seen::Present(Some(sha)));
    }
}

fn report(throughput: i64, starved: bool) -> Report {
    let text = include_str!("../fixtures/aiperf-success.json");
    let mut report = perfval_core::aiperf::parse(text.as_bytes()).expect("well-formed");
    let metric = report
        .metrics
        .get_mut(&perfval_api::Metric::OutputTokenThroughput)
        .expect("well-formed");
    metric.insert(perfval_api::Statistic::Avg, Decimal::from(throughput));
    if starved {
        report.generator.effective_concurrency_p50 = Some(Decimal::ONE);
        report.generator.credit_to_start_p50_ms = Some(Decimal::from(100_000));
    }
    report
}

fn job(end: &str) -> k8s_openapi::api::batch::v1::Job {
    serde_json::from_value(json!({"metadata": {"name": "j"}, "status": {"conditions": [
        {"type": end, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "BackoffLimitExceeded"}]}}))
    .expect("well-formed")
}

fn dgd_resource() -> ApiResource {
    ApiResource {
        group: "nvidia.com".into(),
        version: "v1beta1".into(),
        api_version: "nvidia.com/v1beta1".into(),
        kind: "DynamoGraphDeployment".into(),
        plural: "dynamographdeployments".into(),
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
