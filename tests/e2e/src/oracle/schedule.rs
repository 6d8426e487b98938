//! What the real scheduler does with the pods of a run, and with one worker more.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures::{TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Toleration;
use kube::Client;
use kube::api::{DynamicObject, ListParams, PostParams};
use perfval_api::{Allocation, AllocationMode, PerfValidation, PlacementStatus, PlanDetails};
use perfval_run::names::dynamo::{FRONTEND, WORKER};
use perfval_run::{Run, Settings, build, dynamo};
use perfval_sizing::Plan;
use serde_json::{Value, json};

use super::ask::{Answer, Asked};
use super::kinds::Kind;
use super::write::{Fate, PATIENCE};

/// Label of a pod of ours: the node it is for.
const FOR_NODE: &str = "oracle.perfvalidation.dev/for";
/// Label of a pod of ours: which part of a run it stands for.
const PART: &str = "oracle.perfvalidation.dev/part";
/// How long fewer bound workers than expected are looked at again: the scheduler retries what it could not write.
const SECOND_THOUGHTS: Duration = Duration::from_secs(12);

/// What became of the pods of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scheduled {
    /// Workers created: one more than the plan.
    pub workers: usize,
    /// Workers that got the node.
    pub bound: usize,
    /// Whether every pod other than the workers got the node.
    pub others_bound: bool,
    /// Pods that the scheduler did not decide about in time.
    pub open: usize,
}

/// A run's pods on one node.
struct Attempt {
    node: String,
    template: Value,
    worker: Value,
    others: Vec<Value>,
    workers: usize,
}

/// Gives the scheduler the pods of each answer: the frontend and the load generator where they are pinned, then one
/// worker more than sizing counted.
pub async fn schedule(client: &Client, namespace: &str, asked: &[&Asked]) -> Result<Vec<Scheduled>, kube::Error> {
    let attempts: Vec<Attempt> = asked.iter().map(|asked| Attempt::of(asked)).collect();
    for attempt in &attempts {
        create(client, namespace, "ResourceClaimTemplate", &attempt.template).await?;
    }
    let others = attempts.iter().flat_map(|attempt| attempt.others.clone());
    create_all(client, namespace, others.collect()).await?;
    settled(client, namespace, &attempts).await?;
    let workers = attempts.iter().flat_map(|attempt| {
        (0..attempt.workers).map(|number| {
            let mut worker = attempt.worker.clone();
            worker["metadata"]["name"] = json!(format!("{}-worker-{number}", attempt.node));
            worker
        })
    });
    create_all(client, namespace, workers.collect()).await?;
    let mut found = settled(client, namespace, &attempts).await?;
    for (scheduled, attempt) in found.iter_mut().zip(&attempts) {
        // Another component removed pods, such as the node controller on a starved machine: they are undecided.
        scheduled.open += attempt.workers.saturating_sub(scheduled.workers);
        scheduled.workers = attempt.workers;
    }
    Ok(found)
}

async fn create_all(client: &Client, namespace: &str, pods: Vec<Value>) -> Result<(), kube::Error> {
    stream::iter(pods.iter().map(Ok))
        .try_for_each_concurrent(8, |pod| create(client, namespace, "Pod", pod))
        .await
}

async fn create(client: &Client, namespace: &str, kind: &str, object: &Value) -> Result<(), kube::Error> {
    let object: DynamicObject = serde_json::from_value(object.clone()).map_err(kube::Error::SerdeError)?;
    Kind::named(kind)
        .api(client, namespace)
        .create(&PostParams::default(), &object)
        .await?;
    Ok(())
}

/// Waits until the scheduler decided about every pod of ours, and a little longer where it bound fewer than planned.
async fn settled(client: &Client, namespace: &str, attempts: &[Attempt]) -> Result<Vec<Scheduled>, kube::Error> {
    let api = Kind::named("Pod").api(client, namespace);
    let began = Instant::now();
    loop {
        let pods = api.list(&ListParams::default().labels(FOR_NODE)).await?;
        let found: Vec<Scheduled> = attempts.iter().map(|attempt| count(&pods.items, attempt)).collect();
        let open = found.iter().any(|scheduled| scheduled.open > 0);
        let short = found
            .iter()
            .any(|scheduled| scheduled.workers > 0 && scheduled.bound + 1 < scheduled.workers);
        let waited = began.elapsed();
        if !open && (!short || waited > SECOND_THOUGHTS) || waited > PATIENCE {
            return Ok(found);
        }
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
}

fn count(pods: &[DynamicObject], attempt: &Attempt) -> Scheduled {
    let label =
        |pod: &DynamicObject, key: &str| pod.metadata.labels.as_ref().and_then(|labels| labels.get(key).cloned());
    let mut scheduled = Scheduled {
        others_bound: true,
        ..Scheduled::default()
    };
    for pod in pods
        .iter()
        .filter(|pod| label(pod, FOR_NODE).as_ref() == Some(&attempt.node))
    {
        let fate = Fate::of(&pod.data);
        scheduled.open += usize::from(fate == Fate::Open);
        if label(pod, PART).as_deref() == Some(WORKER) {
            scheduled.workers += 1;
            scheduled.bound += usize::from(fate == Fate::Bound);
        } else {
            scheduled.others_bound &= fate == Fate::Bound;
        }
    }
    scheduled
}

impl Attempt {
    /// The pods of a run, from the very objects that a run creates.
    fn of(Asked { probe, object, answer }: &Asked) -> Self {
        let (plan, planned) = match answer {
            Answer::Plan(plan) => ((**plan).clone(), usize::try_from(plan.gpus).unwrap_or_default()),
            Answer::None(..) => (without_plan(object, &probe.node, &probe.features), 0),
        };
        let mut object = object.clone();
        let status = object.status.get_or_insert_default();
        (status.placement, status.state.plan) = (Some(plan.placement), plan.details);
        let settings = Settings::default();
        let run = Run::new(&object, &settings);
        let deployment = dynamo::deployment(&run);
        let components = deployment.data.pointer("/spec/components").and_then(Value::as_array);
        let component = |name: &str| {
            let of_name = components
                .into_iter()
                .flatten()
                .find(|component| component["name"] == name);
            of_name
                .map(|component| component["podTemplate"]["spec"].clone())
                .unwrap_or_default()
        };
        let pod = |part: &str, spec: Value| pod(&probe.node, part, spec);
        let mut others = Vec::new();
        if perfval_sizing::frontend_is_pinned(run.spec()) {
            others.push(pod(FRONTEND, component(FRONTEND)));
        }
        if perfval_sizing::trial_is_pinned(run.spec()) {
            let job = json!(build::trial_job(&run, 1));
            others.push(pod("trial", job["spec"]["template"]["spec"].clone()));
        }
        let mut template = json!(build::claim_template(&run));
        // Its owner is nowhere: the garbage collector would take it.
        template["metadata"]
            .as_object_mut()
            .map(|metadata| metadata.remove("ownerReferences"));
        Self {
            node: probe.node.clone(),
            worker: pod(WORKER, component(WORKER)),
            template,
            others,
            workers: planned + 1,
        }
    }
}

fn pod(node: &str, part: &str, mut spec: Value) -> Value {
    // Containers that never run need no patience at their end.
    spec["terminationGracePeriodSeconds"] = json!(0);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": format!("{node}-{part}"), "labels": { FOR_NODE: node, PART: part } },
        "spec": spec,
    })
}

/// The plan that a run would follow if there were one: what its pods would tolerate, and how they would ask for a GPU.
fn without_plan(object: &PerfValidation, node: &str, features: &BTreeSet<&'static str>) -> Plan {
    let placement = &object.spec.placement;
    let by_plugin = match placement.allocation {
        AllocationMode::Auto => features.contains("device plugin"),
        AllocationMode::Dra => false,
        AllocationMode::DevicePlugin => true,
    };
    // What a run tolerates by itself, whether or not the node carries it. Every other taint keeps the workers away.
    let own = |key: &str| Toleration {
        key: Some(key.to_owned()),
        operator: Some("Exists".to_owned()),
        ..Toleration::default()
    };
    let sku = Toleration {
        key: Some("sku".to_owned()),
        value: Some("gpu".to_owned()),
        ..Toleration::default()
    };
    let mut tolerations = placement.tolerations.clone();
    tolerations.extend([own("nvidia.com/gpu"), own(&placement.resource_name), sku]);
    let placement = PlacementStatus {
        node: node.to_owned(),
        allocation: if by_plugin {
            Allocation::DevicePlugin
        } else {
            Allocation::Dra
        },
        gpus: 1,
        ..PlacementStatus::default()
    };
    let details = PlanDetails {
        // What the workers' claims ask for on nodes with such devices; elsewhere it holds anyway.
        selectors: vec!["!device.allowMultipleAllocations".to_owned()],
        tolerations,
        ..PlanDetails::default()
    };
    Plan { placement, details }
}
