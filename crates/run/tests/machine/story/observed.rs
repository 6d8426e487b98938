//! What a pass observes of the world: its inventory, the deployment, pods, claims and events.

use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::api::core::v1::Pod;
use kube::core::DynamicObject;
use perfval_run::observed::{LogRequest, Need, NodeSeen, PodEvent, PodLog};
use perfval_run::queue::{self, Contender, Line};
use perfval_run::{Observed, Run, names};
use perfval_sizing::inventory::{ClaimUse, Interned, Inventory};
use perfval_sizing::{Fleet, HeldNodes, Seen};
use perfval_testkit::inventory::{ClaimBuilder, Cluster, NodeBuilder, PodBuilder};
use serde_json::{Value, json};

use super::Story;

/// What is around the pods of a run, and who fills its cache.
#[derive(Default)]
pub struct Around {
    pub node: Seen<NodeSeen>,
    pub refusals: Vec<PodEvent>,
    /// Pods (`Workload`) and claims that others made, by their labels.
    pub helpers: Vec<(Need, Value)>,
    /// Status of the pod that fills the model cache.
    pub filler: Option<Value>,
    pub filler_log: Option<&'static str>,
    /// Status of the open trial's pod, if it is seen.
    pub generator: Option<Value>,
    /// Worker pods that the kubelet rejected: creation, reason and message.
    pub rejected: Vec<(DateTime<Utc>, &'static str, &'static str)>,
    /// Whether the worker `w1` has no pod at the moment.
    pub lacks_worker: bool,
}

impl Story {
    pub fn observe(&self, needs: &std::collections::BTreeSet<Need>) -> Observed {
        let mut seen = Observed {
            looked_before: self.planned,
            ..Observed::default()
        };
        for need in needs {
            match need {
                Need::Permission => seen.permission = self.permission.clone(),
                Need::Dynamo => {
                    seen.dynamo = self.dynamo.clone();
                    seen.kubernetes = Some("v1.36.4".into());
                }
                Need::StorageClasses => {
                    let fast = json!({"metadata": {"name": "fast"}, "provisioner": "p"});
                    seen.storage_classes = Seen::Present(vec![serde_json::from_value(fast).expect("well-formed")]);
                }
                Need::Holders => {
                    let holds = |run: &&Contender| run.holds.is_some();
                    seen.holders = Seen::Present(self.others.iter().filter(holds).cloned().collect());
                }
                Need::Inventory => seen.inventory = self.inventory(self.shared_gpu),
                Need::Devices => {
                    let from_watch = self.status().state.gpu_check.is_none();
                    seen.devices = self.inventory(self.shared_gpu && (from_watch || !self.watch_is_behind));
                    if !(from_watch && self.watch_lacks_claims) {
                        self.add_claims(&mut seen.devices);
                    }
                }
                Need::Children if self.unreadable => seen.children = Seen::Unknown("GET jobs: 403".into()),
                Need::Children => seen.children = Seen::Present(self.children.clone()),
                Need::Deployment => seen.deployment = self.deployment(),
                Need::DryRun => seen.dry_run = self.admission.clone(),
                Need::Workload if self.unreadable || self.pods_unreadable => {
                    seen.pods = Seen::Unknown("GET pods: 403".into());
                }
                Need::Claims if self.unreadable => seen.claims = Seen::Unknown("GET claims: 403".into()),
                Need::Claims => {
                    let helpers = self.around.helpers.iter().filter(|(kind, _)| *kind == Need::Claims);
                    let helpers = helpers.map(|(_, labels)| {
                        let claim = json!({"metadata": {"name": "helper", "labels": labels}, "spec": {}});
                        serde_json::from_value(claim).expect("well-formed")
                    });
                    seen.claims = Seen::Present(self.claims().into_iter().chain(helpers).collect());
                }
                Need::Workload => {
                    let helpers = self.around.helpers.iter().filter(|(kind, _)| *kind == Need::Workload);
                    let helpers = helpers.map(|(_, labels)| {
                        let pod = json!({"metadata": {"name": "helper", "labels": labels}});
                        serde_json::from_value(pod).expect("well-formed")
                    });
                    let pods = self.pods().into_iter().chain(self.filler()).chain(self.rejected());
                    seen.pods = Seen::Present(pods.chain(helpers).collect());
                    seen.pod_events = Seen::Present(self.events());
                    seen.endings = self.endings.clone();
                    seen.preemptions = self.preemptions.clone();
                    seen.error_logs.clone_from(&self.error_logs);
                    let frontend = self.frontend_log.map(|text| log("frontend", "main", text));
                    let filler = self.around.filler_log.map(|text| log("filler", "fill", text));
                    seen.pod_logs = frontend.into_iter().chain(filler).collect();
                    if self.logs_unreadable {
                        let unread = |log: &mut PodLog| log.text = Seen::Unknown("logs: 500".into());
                        seen.pod_logs.iter_mut().for_each(unread);
                    }
                    seen.refusals = Seen::Present(self.around.refusals.clone());
                    seen.node = self.around.node.clone();
                }
                Need::Probe => seen.probe = self.probe.clone(),
                Need::Trial => seen.trial = Seen::Present(self.trial()),
                Need::GpuExporter => seen.gpu_exporter = self.gpu_exporter.clone(),
                Need::Baselines => seen.baselines = self.baselines.clone(),
                Need::Results => self.results(&mut seen),
                Need::SavedRun => seen.saved_run = self.saved_run(),
                Need::SavedResults => seen.saved_results = self.saved_results.clone(),
                Need::CacheJob => {
                    let job = |end| Seen::Present(self.job(end, DateTime::UNIX_EPOCH));
                    seen.cache_job = self.cache_job.map_or(Seen::Absent, job);
                }
            }
        }
        seen
    }

    /// What the planner sees for a run of the queue.
    pub fn turn(&self) -> Observed {
        let run = Run::new(&self.object, &self.settings);
        let own = Contender::new(&self.object.metadata, run.spec(), run.status(), true, self.now);
        let line = Line {
            runs: self.others.iter().cloned().chain(own).collect(),
            usual: None,
        };
        let inventory = self.inventory(self.shared_gpu);
        let turn = match &inventory {
            Seen::Present(inventory) => {
                let fleet = Fleet::new(inventory);
                let turns = queue::plan(
                    &line,
                    |_| None,
                    |_, spec, held, granted| {
                        let held = if self.endless { &HeldNodes::default() } else { held };
                        fleet.choose(inventory.for_run(), spec, held, granted)
                    },
                );
                let own = turns.into_iter().find(|(of, _)| of.position.uid() == run.uid());
                own.map_or(Seen::NotAsked, |(_, turn)| Seen::Present(turn))
            }
            unread => Seen::Unknown(unread.unknown().unwrap_or_default().to_owned()),
        };
        let oddities = inventory
            .present()
            .map(|inventory| Fleet::new(inventory).warnings(&inventory.naming))
            .unwrap_or_default();
        Observed {
            turn,
            oddities,
            looked_before: self.planned,
            ..Observed::default()
        }
    }

    fn inventory(&self, shared_gpu: bool) -> Seen<Inventory> {
        if self.unreadable {
            return Seen::Unknown("GET resourceslices: 403".into());
        }
        let held = (self.free..8).fold(ClaimBuilder::named("held"), |claim, n| {
            claim.holds("n1", &format!("gpu-{n}"))
        });
        let mut cluster = Cluster::of_gpus(8).claim(held);
        if self.tainted {
            let selector = json!({ "device": "gpu-7" });
            let taint = json!({ "key": "gpu.nvidia.com/xid", "effect": "NoSchedule" });
            cluster = cluster.taint_rule(&json!({ "deviceSelector": selector, "taint": taint }));
        }
        if shared_gpu {
            cluster = cluster.claim(ClaimBuilder::named("second").holds("n1", "gpu-1"));
        }
        if let Some(pods) = self.plugin_pods {
            let healthy = (8 - self.plugin_faulty).to_string();
            let node = NodeBuilder::named("n1").offers("nvidia.com/gpu", &healthy);
            cluster = cluster.node(node.has_in_all("nvidia.com/gpu", "8"));
            let pod = |n: usize| {
                let (pod, gpu) = (format!("train-{n}"), format!("GPU-{}", 7 - n));
                let pod = PodBuilder::on("n1", &pod).requests("nvidia.com/gpu", "1");
                pod.has_devices("nvidia.com/gpu", &[gpu.as_str()])
            };
            cluster = (0..pods).map(pod).fold(cluster, Cluster::pod);
        }
        let mut inventory = cluster.inventory();
        inventory.naming = self.settings.naming("perf");
        if self.quotas_unreadable {
            inventory.quotas = Seen::Unknown("GET resourcequotas: 403".into());
        }
        Seen::Present(inventory)
    }

    fn add_claims(&self, devices: &mut Seen<Inventory>) {
        if let Seen::Present(devices) = devices
            && let Seen::Present(known) = &mut devices.claims
        {
            let own = self.claims();
            known.extend(
                own.iter()
                    .filter_map(|claim| ClaimUse::read(claim, &mut Interned::default())),
            );
        }
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
                "ownerReferences": [{"apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation", "name": "run", "uid": self.uid(), "controller": true}]},
            "status": {"observedGeneration": 1, "state": if self.deployment_failed { "failed" } else { "successful" },
                "conditions": [{"type": "Ready", "status": "True", "reason": "r", "message": "words of the operator"}],
                "components": {"frontend": {"readyReplicas": ready}, "worker": {"readyReplicas": ready * 2}}},
        })).expect("well-formed"))
    }

    fn filler(&self) -> Option<Pod> {
        let status = self.around.filler.as_ref()?;
        Some(self.job_pod("filler", names::MODEL_CACHE, status))
    }

    /// Pod of the open trial.
    pub(super) fn generator(&self) -> Option<Pod> {
        let status = self.around.generator.as_ref()?;
        Some(self.job_pod("generator", names::LOAD_GENERATOR, status))
    }

    fn job_pod(&self, name: &str, component: &str, status: &Value) -> Pod {
        let created = (self.now - TimeDelta::seconds(self.pods_age)).to_rfc3339();
        let labels = json!({"perfvalidation.dev/run": self.id(), "perfvalidation.dev/component": component});
        let pod = json!({"metadata": {"name": name, "uid": format!("u-{name}"), "creationTimestamp": created, "labels": labels},
            "spec": {"nodeName": "n1", "restartPolicy": "Never", "containers": []}, "status": status});
        serde_json::from_value(pod).expect("well-formed")
    }

    fn rejected(&self) -> Vec<Pod> {
        let pod = |(number, (created, reason, message)): (usize, &(DateTime<Utc>, &str, &str))| {
            let labels = json!({"perfvalidation.dev/run": self.id(), "perfvalidation.dev/component": "worker"});
            let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "pv-worker", "uid": "u-set"});
            serde_json::from_value(json!({
                "metadata": {"name": format!("w-rejected-{number}"), "uid": format!("uid-rejected-{number}"),
                    "creationTimestamp": created.to_rfc3339(), "labels": labels, "ownerReferences": [owner]},
                "spec": {"nodeName": "n1", "containers": []},
                "status": {"phase": "Failed", "reason": reason, "message": message},
            }))
            .expect("well-formed")
        };
        // The garbage collector removes them with their ReplicaSet.
        let rejected = self.around.rejected.iter().filter(|_| self.deployed);
        rejected.enumerate().map(pod).collect()
    }

    fn pods(&self) -> Vec<Pod> {
        if !self.deployed {
            return Vec::new();
        }
        let pod = |name: &str, component: &str| {
            let held = self.queued && component == "worker";
            let ready = if self.workers_ready && !self.unschedulable && !held {
                "True"
            } else {
                "False"
            };
            let name = &*format!("{name}{}", self.pod_name);
            let created = (self.now - TimeDelta::seconds(self.pods_age)).to_rfc3339();
            let refused = (self.now + TimeDelta::seconds(self.others_clock)).to_rfc3339();
            let mut conditions = vec![json!({"type": "Ready", "status": ready})];
            if self.unschedulable && component == "worker" {
                conditions.push(
                    json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                    "message": "cannot allocate all claims", "lastTransitionTime": refused}),
                );
            }
            if held {
                conditions.push(
                    json!({"type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates"}),
                );
            }
            let gates = if held {
                json!([{"name": "kueue.x-k8s.io/admission"}])
            } else {
                json!([])
            };
            let is_preempted = self.preempted == Some(name);
            // In one step with the condition.
            let deleted = is_preempted.then_some(&created);
            if is_preempted {
                conditions.push(
                    json!({"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
                    "message": "default-scheduler: preempting to accommodate a higher priority pod"}),
                );
            }
            let state = match self.pod_waiting {
                Some(reason) => json!({"waiting": {"reason": reason, "message": "manifest unknown"}}),
                None if self.prepare_error.is_some() => json!({"waiting": {"reason": "ContainerCreating"}}),
                None => json!({"running": {}}),
            };
            let node = if self.wrong_node { "n2" } else { "n1" };
            let last = match self.restarts {
                0 => json!({}),
                _ => json!({"terminated": {"exitCode": self.ended.0, "reason": self.ended.1}}),
            };
            serde_json::from_value(json!({
                "metadata": {"name": name, "uid": self.pod_uid(name), "creationTimestamp": created, "deletionTimestamp": deleted,
                    "labels": {"perfvalidation.dev/run": self.id(), "perfvalidation.dev/component": component}},
                "spec": {"nodeName": node, "containers": [], "schedulingGates": gates},
                "status": {"conditions": conditions, "containerStatuses": [{"name": "main", "image": "i", "imageID": "sha256:1",
                    "ready": true, "restartCount": if self.pod_waiting.is_some() { 5 } else { self.restarts }, "state": state, "lastState": last}]},
            })).expect("well-formed")
        };
        let mut pods = vec![pod("frontend", "frontend"), pod("w0", "worker"), pod("w1", "worker")];
        pods.extend(self.leaving_worker.then(|| {
            let mut leaving: Pod = pod("w-old", "worker");
            leaving.metadata.deletion_timestamp = leaving.metadata.creation_timestamp.clone();
            leaving
        }));
        pods.extend(self.stray_generator.then(|| pod("stray", names::LOAD_GENERATOR)));
        if self.around.lacks_worker {
            pods.remove(2);
        }
        pods
    }

    fn pod_uid(&self, name: &str) -> String {
        format!("uid-{name}{}", if self.replaced { "-new" } else { "" })
    }

    fn claims(&self) -> Vec<k8s_openapi::api::resource::v1::ResourceClaim> {
        let claim = |n: usize| {
            serde_json::from_value(json!({
            "metadata": {"name": format!("c{n}"), "namespace": "perf", "labels": {"perfvalidation.dev/run": self.id()},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": format!("w{n}"), "uid": self.pod_uid(&format!("w{n}"))}]},
            "spec": {"devices": {"requests": []}},
            "status": {"allocation": {"devices": {"results": [
                {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n1", "device": format!("gpu-{n}")}]}}}})).expect("well-formed")
        };
        if self.deployed && !self.unschedulable {
            (0..2).map(claim).collect()
        } else {
            Vec::new()
        }
    }

    fn events(&self) -> Vec<perfval_run::observed::PodEvent> {
        self.prepare_error
            .map(|message| perfval_run::observed::PodEvent {
                pod: "w0".into(),
                pod_uid: "uid-w0".into(),
                reason: "FailedPrepareDynamicResources".into(),
                message: message.into(),
                last_seen: Some(self.now),
            })
            .into_iter()
            .collect()
    }
}

fn log(pod: &str, container: &str, text: &str) -> PodLog {
    PodLog {
        of: LogRequest::new(pod, container, false),
        text: Seen::Present(text.into()),
    }
}
