//! One world from its first creation until nothing is left of it.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::happening::{Happening, Kind, NAMES, Step, World};
use super::history::{Change, VALIDATIONS};
use super::laws::{self, Broken};
use super::stage::Stage;
use crate::leftovers::leftovers_of_all;
use crate::spec::short;

/// So long nothing may move: a token or an edit may not have been looked at.
const STILL: Duration = Duration::from_secs(2);

const LOOK: Duration = Duration::from_millis(100);

/// What became of a world.
#[derive(Debug)]
pub struct Played {
    /// The world.
    pub world: World,
    /// What was refused or had nothing to happen to, beside what happened.
    pub told: Vec<String>,
    /// The statuses when everything rested.
    pub statuses: Vec<Value>,
    /// A law that was broken.
    pub broken: Option<Broken>,
    /// How long it took.
    pub took: Duration,
}

/// Plays a world in a namespace of its own.
///
/// # Panics
/// If the lab itself fails.
pub async fn play(stage: &Stage, world: World) -> Played {
    let began = Instant::now();
    let namespace = stage.namespace(&format!("world-{}", world.seed)).await;
    let mut told = Vec::new();
    for step in &world.steps {
        moment(stage, &namespace, step).await;
        let outcome = happen(stage, &namespace, step.what).await;
        told.push(format!("{:?}: {outcome}", step.what));
    }
    heal(stage, &namespace).await;
    let rested = rest(stage, &namespace).await;
    let statuses = validations(stage, &namespace)
        .map(|change| change.object["status"].clone())
        .collect();
    let removed = remove(stage, &namespace).await;
    let held = || {
        laws::of_a_world(&stage.history.changes(Some(&namespace)))?;
        laws::one_run_has_a_node(&stage.history.changes(None))
    };
    let broken = rested.and(removed).and_then(|()| held()).err();
    if broken.is_none() {
        let _ = stage
            .lab
            .try_kubectl(&["delete", "namespace", &namespace, "--wait=false"])
            .await;
    }
    Played {
        world,
        told,
        statuses,
        broken,
        took: began.elapsed(),
    }
}

/// Waits for the moment of a step. Where every object rests or is kept, none comes into a phase any more.
async fn moment(stage: &Stage, namespace: &str, step: &Step) {
    let began = Instant::now();
    while let Some(phase) = step.when
        && began.elapsed() < stage.patience
    {
        let objects: Vec<Change> = validations(stage, namespace).collect();
        let is_there = |change: &Change| change.object["status"]["phase"] == phase.as_str();
        let comes_no_more = |change: &Change| laws::rests(&change.object) || laws::is_kept(&change.object);
        if objects.iter().any(is_there) || objects.iter().all(comes_no_more) {
            break;
        }
        sleep(LOOK).await;
    }
    sleep(step.after).await;
}

fn manifest(namespace: &str, object: usize, kind: Kind, gpus: u8) -> Value {
    let mut manifest = short(NAMES[object], namespace);
    let spec = &mut manifest["spec"];
    spec["placement"]["maxGPUs"] = gpus.into();
    // Sizing counts only while another object keeps the node for its user.
    spec["timeouts"] =
        json!({"sizing": "45s", "workloadReady": "90s", "endpointProbe": "20s", "benchmark": "90s", "cleanup": "60s"});
    match kind {
        Kind::Healthy => {}
        Kind::Slow => spec["gates"] = json!([gate("9000000")]),
        Kind::Crashing => {
            spec["workload"]["dynamo"]["worker"]["command"] = json!(["sh", "-c", "exit 3"]);
            spec["workload"]["dynamo"]["worker"]["args"] = json!([]);
        }
        Kind::NoImage => spec["workload"]["dynamo"]["image"] = "localhost/no-such-image:1.4.2".into(),
    }
    manifest
}

fn gate(threshold: &str) -> Value {
    json!({"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": threshold})
}

/// Lets one thing happen; what came of it.
async fn happen(stage: &Stage, namespace: &str, what: Happening) -> String {
    let edit = |object: usize, spec: Value| stage.merge(VALIDATIONS, namespace, NAMES[object], json!({"spec": spec}));
    let annotate = |object: usize, key: &str, value: Value| {
        let annotations = json!({"metadata": {"annotations": {key: value}}});
        stage.merge(VALIDATIONS, namespace, NAMES[object], annotations)
    };
    let done = match what {
        Happening::Create(object, kind, gpus) => {
            stage.create(VALIDATIONS, manifest(namespace, object, kind, gpus)).await
        }
        Happening::Delete(object) => stage.delete(VALIDATIONS, namespace, NAMES[object]).await,
        Happening::Gate(object, met) => edit(object, json!({"gates": [gate(if met { "1" } else { "9000000" })]})).await,
        Happening::Gpus(object, gpus) => edit(object, json!({"placement": {"maxGPUs": gpus}})).await,
        Happening::Limit(object, n) => {
            let field = ["cleanup", "modelCache", "total"][usize::from(n % 3)];
            edit(object, json!({"timeouts": {field: "10m"}})).await
        }
        Happening::Suspend(object, yes) => edit(object, json!({"suspend": yes})).await,
        Happening::Keep(object, yes) => {
            let value = if yes { json!("true") } else { Value::Null };
            annotate(object, perfval_api::meta::NO_CLEANUP, value).await
        }
        Happening::Rerun(object, token) => annotate(object, perfval_api::meta::RERUN, json!(token.to_string())).await,
        Happening::DeleteChild(n) => match nth(stage.children(namespace), n, |_| true) {
            Some(child) => {
                let deleted = stage.delete(child.plural, namespace, child.metadata("name")).await;
                return format!("{}: {}", child.named(), words(deleted));
            }
            None => return "nothing there".to_owned(),
        },
        Happening::LabelChild(n) => match nth(stage.children(namespace), n, |_| true) {
            Some(child) => {
                let label = json!({"metadata": {"labels": {"team": "a"}}});
                stage
                    .merge(child.plural, namespace, child.metadata("name"), label)
                    .await
            }
            None => return "nothing there".to_owned(),
        },
        Happening::ScaleWorkers(n) => match nth(stage.children(namespace), 0, is_deployment) {
            Some(deployment) => scale(stage, &deployment, n).await,
            None => return "nothing there".to_owned(),
        },
        Happening::Cordon(seconds) => {
            let cordoned = stage.cordon(true).await;
            sleep(Duration::from_secs(seconds.into())).await;
            cordoned.and(stage.cordon(false).await)
        }
        Happening::KillOperator(tenths) => {
            stage.kill_operator(Duration::from_millis(100) * tenths.into()).await;
            Ok(())
        }
        Happening::RestartApiServer => {
            stage.restart_api_server().await;
            Ok(())
        }
        Happening::RestartEtcd => {
            stage.restart_etcd().await;
            Ok(())
        }
    };
    words(done)
}

fn words(done: Result<(), kube::Error>) -> String {
    done.map_or_else(|error| error.to_string(), |()| "done".to_owned())
}

fn is_deployment(child: &Change) -> bool {
    child.plural == "dynamographdeployments"
}

fn nth(mut children: Vec<Change>, n: u8, wanted: impl Fn(&Change) -> bool) -> Option<Change> {
    children.retain(wanted);
    let at = usize::from(n).checked_rem(children.len())?;
    Some(children.swap_remove(at))
}

/// Other numbers of workers than the run asked for; the rest of the deployment stays as it is.
async fn scale(stage: &Stage, deployment: &Change, workers: u8) -> Result<(), kube::Error> {
    let mut components = deployment.object["spec"]["components"].clone();
    for component in components.as_array_mut().into_iter().flatten() {
        if component["name"] == "worker" {
            component["replicas"] = workers.into();
        }
    }
    let (namespace, name) = (deployment.metadata("namespace"), deployment.metadata("name"));
    let patch = json!({"spec": {"components": components}});
    stage.merge(deployment.plural, namespace, name, patch).await
}

/// Nobody keeps what a run made any more; who is suspended stays so.
async fn heal(stage: &Stage, namespace: &str) {
    for object in 0..NAMES.len() {
        happen(stage, namespace, Happening::Keep(object, false)).await;
    }
}

fn validations(stage: &Stage, namespace: &str) -> impl Iterator<Item = Change> {
    let present = stage.history.present(namespace).into_iter();
    present.filter(|change| change.plural == VALIDATIONS)
}

/// Waits until every object rests, nothing is left, and both stay so.
async fn rest(stage: &Stage, namespace: &str) -> Result<(), Broken> {
    still(stage.patience, || {
        let restless: Vec<String> = validations(stage, namespace)
            .filter(|change| !laws::rests(&change.object))
            .map(|change| format!("{}: {}", change.named(), change.object["status"]))
            .chain(stage.children(namespace).iter().map(Change::named))
            .collect();
        if restless.is_empty() {
            Ok(())
        } else {
            Err(format!("never at rest: {}", restless.join("\n")))
        }
    })
    .await
}

/// Deletes every object, and asks the API server itself what is left.
async fn remove(stage: &Stage, namespace: &str) -> Result<(), Broken> {
    for validation in validations(stage, namespace).collect::<Vec<_>>() {
        happen(stage, namespace, Happening::Delete(object(&validation))).await;
    }
    still(stage.patience, || {
        let present: Vec<String> = stage.history.present(namespace).iter().map(Change::named).collect();
        if present.is_empty() {
            Ok(())
        } else {
            Err(format!("never gone: {present:?}"))
        }
    })
    .await?;
    let left = stage.left_in(namespace).await;
    if left.is_empty() {
        Ok(())
    } else {
        Err(format!("left behind: {left:?}"))
    }
}

fn object(validation: &Change) -> usize {
    usize::from(validation.metadata("name") != NAMES[0])
}

async fn still(patience: Duration, look: impl Fn() -> Result<(), Broken>) -> Result<(), Broken> {
    let began = Instant::now();
    let mut since = Instant::now();
    loop {
        if let Err(broken) = look() {
            if began.elapsed() > patience {
                return Err(broken);
            }
            since = Instant::now();
        } else if since.elapsed() >= STILL {
            return Ok(());
        }
        sleep(LOOK).await;
    }
}

impl Stage {
    async fn left_in(&self, namespace: &str) -> Vec<String> {
        let _served = self.served().await;
        leftovers_of_all(&self.lab, namespace).await
    }
}
