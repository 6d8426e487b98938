//! What goes wrong before a benchmark, and how the run has to name it: one row each, on a real cluster.

mod signs;
mod table;

use std::time::Duration;

use chrono::{DateTime, Utc};
use perfval_api::{PerfValidationStatus, Phase, Severity, Verdict};
use serde_json::{Value, json};

use crate::lab::{Lab, eventually};
use crate::spec::quick;
use crate::validation::Validation;

pub use table::TABLE;

/// The hub, as pods reach it.
pub const HUB: &str = "http://hub.failures-world";
const WORLD: &str = include_str!("failures/world.py");
const WORLD_NAMESPACE: &str = "failures-world";
/// A policy is enforced some seconds after it was created.
const ENFORCED: Duration = Duration::from_mins(1);

/// How a run with a failure goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Verdict Error, of the same reason.
    Error,
    /// It says what it waits for.
    Told,
}

/// One way to fail.
pub struct Failure {
    /// Its name, and that of the validation.
    pub name: &'static str,
    /// The reason that the status has to show.
    pub reason: &'static str,
    /// What its message has to quote.
    pub says: &'static str,
    /// What is wrong in the spec; the namespace is given.
    pub change: fn(&mut Value, &str),
    /// What is wrong around it: objects to create, with the namespace.
    pub objects: fn(&str) -> Vec<Value>,
    /// Faults of the stand-in for Dynamo's operator.
    pub faults: &'static str,
    /// How the run goes on.
    pub end: End,
    /// Whether `just e2e` has it, and not only `just failures`.
    pub in_every_run: bool,
}

/// A hub that has nothing.
///
/// # Panics
/// If it does not start.
pub async fn install_world(lab: &Lab) {
    lab.namespace(WORLD_NAMESPACE).await;
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hub", "namespace": WORLD_NAMESPACE},
        "spec": {"selector": {"app": "hub"}, "ports": [{"port": 80, "targetPort": 5001}]}});
    lab.apply(&service).await;
    let metadata = json!({"name": "world", "namespace": WORLD_NAMESPACE, "labels": {"app": "hub"}});
    let world = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "world",
            "image": "localhost/dynamo-lab:1.4.2", "imagePullPolicy": "Never", "command": ["python3", "-c", WORLD],
            "readinessProbe": {"tcpSocket": {"port": 5001}, "periodSeconds": 1}}]}});
    lab.apply(&world).await;
    let ready = [
        "wait",
        "-n",
        WORLD_NAMESPACE,
        "pod/world",
        "--for=condition=Ready",
        "--timeout=120s",
    ];
    lab.kubectl(&ready).await;
}

/// Takes it away.
///
/// # Panics
/// If it stays.
pub async fn remove_world(lab: &Lab) {
    lab.kubectl(&["delete", "namespace", WORLD_NAMESPACE, "--timeout=120s"])
        .await;
}

impl Failure {
    /// Makes it happen, and checks that the run names it and leaves nothing.
    ///
    /// # Panics
    /// If the run names something else, or something stays.
    pub async fn happens(&self, lab: &Lab) {
        let namespace = lab.namespace(&format!("fail-{}", self.name)).await;
        let objects = (self.objects)(&namespace);
        if !objects.is_empty() {
            lab.apply(&json!({"apiVersion": "v1", "kind": "List", "items": objects}))
                .await;
        }
        enforced(lab, &objects, &namespace).await;
        // Pods that still start would take Dynamo's minute to end.
        let faults = [&format!("grace=1@{namespace}"), self.faults].join(",");
        lab.run(&["fault", "dgd", faults.trim_end_matches(',')]).await;
        let mut manifest = quick(self.name, &namespace);
        manifest["spec"]["placement"]["maxGPUs"] = json!(1);
        (self.change)(&mut manifest["spec"], &namespace);
        let run = Validation::create(lab, manifest).await;
        let told = run
            .until("it is named, or over", |status| {
                self.is_named(status) || status.phase == Some(Phase::Completed)
            })
            .await;
        let seen = Utc::now();
        assert!(
            self.is_named(&told),
            "{}: {:?} {:?}",
            self.name,
            told.reason,
            told.message
        );
        let first = signs::first(lab, &namespace).await;
        let after = first.map_or(0, |first| (seen - first).num_seconds().max(0));
        println!(
            "{}: {} named after {} s in {}, {after} s after it could be seen ({first:?})",
            self.name,
            self.reason,
            waited(&told),
            phase(&told)
        );
        if self.end == End::Error {
            let status = run.ends(Verdict::Error).await;
            assert!(
                self.is_named(&status),
                "{}: {:?} {:?}",
                self.name,
                status.reason,
                status.message
            );
            let found = status
                .diagnosis
                .iter()
                .find(|finding| finding.severity == Severity::Error);
            let found = found.unwrap_or_else(|| panic!("{}: no finding in {:?}", self.name, status.diagnosis));
            assert!(!found.evidence.is_empty() && !found.remedy.is_empty(), "{found:?}");
            println!(
                "{}: over after {} s; {}: {}",
                self.name,
                waited(&status),
                found.cause,
                found.evidence
            );
        }
        run.delete().await;
        for object in &objects {
            let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
            let named = format!(
                "{}/{}",
                kind.as_str().unwrap_or_default(),
                name.as_str().unwrap_or_default()
            );
            lab.kubectl(&["delete", "-n", &namespace, &named, "--wait=false"]).await;
        }
        lab.kubectl(&["delete", "namespace", &namespace, "--wait=false"]).await;
    }

    fn is_named(&self, status: &PerfValidationStatus) -> bool {
        let message = status.message.as_deref().unwrap_or_default();
        let found = status
            .diagnosis
            .iter()
            .any(|finding| finding.evidence.contains(self.says));
        status.reason.as_deref() == Some(self.reason) && (message.contains(self.says) || found)
    }
}

/// Waits until policies hold: the API server takes them up some time after they were created.
async fn enforced(lab: &Lab, objects: &[Value], namespace: &str) {
    let denies = objects
        .iter()
        .any(|object| object["kind"] == "ValidatingAdmissionPolicy");
    if !denies {
        return;
    }
    // Both kinds that rows deny, in the shape that they deny.
    let labels = json!({"perfvalidation.dev/component": "worker"});
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "denied", "namespace": namespace, "labels": labels},
        "spec": {"containers": [{"name": "c", "image": "x"}]}});
    let graph = json!({"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment",
        "metadata": {"name": "denied", "namespace": namespace}, "spec": {"components": []}});
    let of_pods = objects.iter().any(|object| object.to_string().contains("\"pods\""));
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let object = if of_pods { pod } else { graph };
    std::fs::write(file.path(), object.to_string()).expect("write the manifest");
    let path = file.path().to_string_lossy().into_owned();
    eventually("the policy holds", ENFORCED, || async {
        match lab.try_kubectl(&["create", "--dry-run=server", "-f", &path]).await {
            Err(refusal) if refusal.contains("denied request") => Ok(()),
            other => Err(other),
        }
    })
    .await;
}

/// Seconds from the beginning of the phase that the run is in, or that it ended in.
fn waited(status: &PerfValidationStatus) -> i64 {
    let running = status
        .state
        .timeline
        .iter()
        .rev()
        .find(|entry| entry.phase < Phase::Evaluating);
    let now = |at: Option<DateTime<Utc>>| at.unwrap_or_else(Utc::now);
    running.map_or(0, |entry| (now(entry.completed_at) - entry.started_at).num_seconds())
}

fn phase(status: &PerfValidationStatus) -> &'static str {
    status.phase.map_or("-", Phase::as_str)
}
