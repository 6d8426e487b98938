//! One object in a cluster, as a pass finds it.

use std::time::Duration;

use futures::StreamExt as _;
use kube::Client;
use perfval_api::PerfValidation;
use perfval_cluster::{Cluster, EndpointAccess, Wakeups};
use perfval_run::observed::Need;
use perfval_run::{Needs, Observed, Run, Settings, names};
use perfval_sizing::inventory::Inventory;
use perfval_testkit::api_server::{ApiServer, Fault, Wire};
use perfval_testkit::trial;
use perfval_verdict::frame::{Outcome, TrialRecord};
use serde_json::{Value, json};

pub const NAMESPACE: &str = "perf";
pub const NAME: &str = "demo";

macro_rules! needs {
    ($($need:ident),+ $(,)?) => {
        /// Every need.
        pub const NEEDS: &[Need] = &[$(Need::$need),+];
        // A new one does not compile without its place among them.
        const _: fn(Need) = |need| match need {
            $(Need::$need)|+ => {}
        };
    };
}

needs!(
    Permission,
    Dynamo,
    StorageClasses,
    Holders,
    // Before the inventory, whose watches have the devices too.
    Devices,
    Inventory,
    Children,
    Deployment,
    DryRun,
    Workload,
    Claims,
    Probe,
    Trial,
    GpuExporter,
    Results,
    SavedRun,
    SavedResults,
    CacheJob,
    Baselines,
);

pub struct World {
    pub server: ApiServer,
    pub cluster: Cluster,
    pub wakeups: Wakeups,
    pub settings: Settings,
}

impl World {
    /// A running validation on a cluster with Dynamo 1.4.2.
    pub fn new() -> Self {
        let server = ApiServer::new();
        server.install_dynamo(&["v1alpha1", "v1beta1"], Some("1.4.2"));
        server.put(validation(NAME, "node-1", "Benchmarking"));
        let (cluster, wakeups) = Cluster::new(
            server.client(),
            server.client(),
            EndpointAccess::ServiceProxy,
            "test".into(),
        );
        Self {
            server,
            cluster,
            wakeups,
            settings: Settings::default(),
        }
    }

    /// The same, through a line at which single calls fail.
    pub fn wired() -> (Self, Wire) {
        let mut world = Self::new();
        let wire = Wire::new(&world.server);
        let client = Client::new(wire.connect(), "default");
        (world.cluster, world.wakeups) =
            Cluster::new(client.clone(), client, EndpointAccess::ServiceProxy, "test".into());
        (world, wire)
    }

    /// The object as the API server has it now.
    pub fn object(&self) -> PerfValidation {
        let found = self.server.get("perfvalidations", NAMESPACE, NAME).expect("the object");
        serde_json::from_value(found).expect("a PerfValidation")
    }

    /// Changes the object.
    pub fn edit(&self, change: impl FnOnce(&mut Value)) {
        self.server.edit("perfvalidations", NAMESPACE, NAME, change);
    }

    /// Calls go wrong from now on.
    pub fn fail(&self, fault: Fault) {
        self.server.fail(fault);
    }

    /// Reads one need of the object as it is now.
    pub async fn observe(&self, need: Need) -> Observed {
        let object = self.object();
        let run = Run::new(&object, &self.settings);
        // A trial is read with the pods.
        let pods = (need == Need::Trial).then_some(Need::Workload);
        let needs = Needs {
            parts: pods.into_iter().chain([need]).collect(),
            trial: Some(1),
            finished_trials: vec![1],
        };
        self.cluster.observe(&run, &needs).await
    }

    /// The inventory for the object as it is now.
    pub async fn inventory(&self) -> Inventory {
        let seen = Box::pin(self.observe(Need::Inventory)).await;
        seen.inventory.present().expect("an inventory").clone()
    }

    /// Number of calls about a resource until now.
    pub fn count_calls(&self, resource: &str) -> usize {
        self.server.count_calls("*", resource)
    }

    /// Id of its run.
    pub fn run_id(&self) -> String {
        Run::new(&self.object(), &self.settings).id()
    }

    /// Puts an object of this run into the cluster: our labels, our ownership.
    pub fn put_child(&self, api_version: &str, kind: &str, name: &str, rest: &Value) -> Value {
        let mut child = json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {
                "namespace": NAMESPACE, "name": name, "creationTimestamp": "2026-11-20T00:00:00Z",
                "labels": {"perfvalidation.dev/name": NAME, "perfvalidation.dev/run": self.run_id()},
                "ownerReferences": [self.owner()],
            },
        });
        for (key, value) in rest.as_object().into_iter().flatten() {
            child[key] = value.clone();
        }
        self.server.put(child)
    }

    /// The reference by which children name their owner.
    pub fn owner(&self) -> Value {
        json!({
            "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation", "controller": true,
            "name": NAME, "uid": self.object().metadata.uid,
        })
    }

    /// A model cache on a volume that only the nodes of zone `a` reach.
    pub fn put_cache(&self) {
        self.edit(|object| {
            object["spec"]["model"]["cache"] = json!({"persistentVolumeClaim": {"claimName": "weights"}});
        });
        self.server.put(json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"namespace": NAMESPACE, "name": "weights"}, "spec": {"volumeName": "disk-1"},
        }));
        let zone = json!({"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]});
        self.server.put(json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk-1"},
            "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}}},
        }));
    }

    /// A Job of trial 1 with its pod; over, if `log` is given.
    pub fn put_trial(&self, log: Option<&str>) {
        self.put_numbered_trial(1, log);
    }

    /// The record of a trial of this run.
    pub fn record(&self, number: i64) -> TrialRecord {
        let object = self.object();
        let nonce = names::nonce(Run::new(&object, &self.settings).uid(), &self.run_id(), number);
        let outcome = Outcome::Report(Box::new(trial::report(|recorded| recorded, false)));
        trial::record(nonce, outcome, [])
    }

    /// A trial that is over, with its record behind other output.
    pub fn put_result(&self, number: i64) {
        let log = format!("AIPerf says something\n{}", trial::log(self.record(number)));
        self.put_numbered_trial(number, Some(&log));
    }

    /// A Job of a trial with its pod; over, if `log` is given.
    pub fn put_numbered_trial(&self, number: i64, log: Option<&str>) {
        let job = names::trial_job(&self.run_id(), number);
        let (job_status, container) = match log {
            Some(_) => (
                json!({"conditions": [{"type": "Complete", "status": "True"}]}),
                json!({"terminated": {"exitCode": 0}}),
            ),
            None => (json!({"active": 1}), json!({"running": {}})),
        };
        let uid = self.put_child("batch/v1", "Job", &job, &json!({"status": job_status}))["metadata"]["uid"].clone();
        let pod = format!("{job}-abcde");
        self.put_child("v1", "Pod", &pod, &json!({"status": container_status(&container)}));
        self.server.edit("pods", NAMESPACE, &pod, |pod| {
            pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] = job.clone().into();
            pod["metadata"]["ownerReferences"] =
                json!([{"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": uid, "controller": true}]);
        });
        if let Some(log) = log {
            self.server.set_log(NAMESPACE, &pod, names::AIPERF_CONTAINER, log);
        }
    }
}

/// Name of the object whose probe is answered next. A probe ends after two minutes.
pub async fn woken(wakeups: &mut Wakeups) -> String {
    let woken = tokio::time::timeout(Duration::from_mins(3), wakeups.next()).await;
    woken.expect("in time").expect("a wake-up").name
}

/// A `PerfValidation` whose run is on a node.
pub fn validation(name: &str, node: &str, phase: &str) -> Value {
    json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation",
        "metadata": {"namespace": NAMESPACE, "name": name},
        "spec": {
            "model": {"name": "lab/tiny-qwen3"},
            "workload": {"dynamo": {"image": "localhost/dynamo-lab:1.4.2"}},
            "gates": [{
                "name": "ttft-p99", "metric": "TimeToFirstToken", "statistic": "P99", "operator": "<=", "threshold": "2000",
            }],
        },
        "status": {
            "observedGeneration": 1, "phase": phase,
            "placement": {"node": node, "allocation": "DRA", "gpus": 2, "nodeGPUs": 8},
            "workload": {"name": "pv", "workersReady": 2},
            "operatorState": {"deployment": {"apiVersion": "nvidia.com/v1beta1", "routerMode": "least-loaded"}},
        },
    })
}

/// Status of a pod whose AIPerf container is in a state.
pub fn container_status(state: &Value) -> Value {
    json!({
        "containerStatuses": [{
            "name": names::AIPERF_CONTAINER, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state,
        }],
    })
}
