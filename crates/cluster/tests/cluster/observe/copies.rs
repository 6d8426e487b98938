//! Calls of passes that may rest on copies.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::core::DynamicObject;
use kube::runtime::watcher::Event;
use perfval_run::names::dynamo::{FRONTEND, WORKER};
use perfval_run::observed::{Need, Probe};
use perfval_run::{Effect, Needs, Observed, Run, build, names};
use serde_json::{Value, json};

use crate::world::{NAMESPACE, World};

/// A world whose watches work.
fn watched() -> World {
    let world = World::new();
    let copies = world.cluster.copies();
    copies.follow::<Pod>(None, &Ok(Event::InitDone));
    copies.follow::<Job>(None, &Ok(Event::InitDone));
    copies.follow::<DynamicObject>(None, &Ok(Event::InitDone));
    world
}

/// One look. Its calls are the only ones that are counted then.
async fn look(world: &World, parts: &[Need], trial: Option<i64>) -> Observed {
    let object = world.object();
    let run = Run::new(&object, &world.settings);
    let needs = Needs {
        parts: parts.iter().copied().collect(),
        trial,
        ..Needs::default()
    };
    world.server.forget_calls();
    Box::pin(world.cluster.observe(&run, &needs)).await
}

async fn look_at_trial(world: &World) -> Observed {
    Box::pin(look(world, &[Need::Workload, Need::Trial], Some(1))).await
}

/// Calls about Jobs, pods and logs.
fn calls(world: &World) -> [usize; 3] {
    ["jobs", "pods", "pods/log"].map(|resource| world.count_calls(resource))
}

/// The Job controller writes the status of the first trial's Job, and the watch shows it.
fn report_job(world: &World, status: &Value) {
    let name = names::trial_job(&world.run_id(), 1);
    let job = world
        .server
        .edit("jobs", NAMESPACE, &name, |job| job["status"] = status.clone());
    let event = Event::Apply(serde_json::from_value(job).expect("an object"));
    world.cluster.copies().follow::<Job>(None, &Ok(event));
}

#[tokio::test]
async fn a_job_that_was_just_created_is_not_read() {
    let world = watched();
    let seen = look_at_trial(&world).await;
    assert!(seen.trial.present().expect("a trial").job.is_none());
    let object = world.object();
    let run = Run::new(&object, &world.settings);
    let create = Effect::CreateTrialJob(Box::new(build::trial_job(&run, 1)));
    world.cluster.act(&run, &[create]).await.expect("it is created");
    let seen = look_at_trial(&world).await;
    assert!(seen.trial.present().expect("a trial").job.is_some());
    assert_eq!(calls(&world), [0, 0, 0]);
    report_job(&world, &json!({"active": 1}));
    look_at_trial(&world).await;
    assert_eq!(calls(&world), [1, 1, 0], "its pod has none of our labels");
}

#[tokio::test]
async fn pods_are_listed_by_the_name_of_a_job_that_counts_them() {
    for (status, lists) in [
        (json!({}), 0),
        (json!({"active": 0, "ready": 0, "uncountedTerminatedPods": {}}), 0),
        (json!({"active": 1}), 1),
        (json!({"failed": 1}), 1),
        (json!({"terminating": 1}), 1),
        (json!({"uncountedTerminatedPods": {"succeeded": ["a"]}}), 1),
        (json!({"conditions": [{"type": "Complete", "status": "True"}]}), 1),
    ] {
        let world = World::new();
        let name = names::trial_job(&world.run_id(), 1);
        world.put_child("batch/v1", "Job", &name, &json!({"status": status}));
        world.server.forget_calls();
        let seen = world.observe(Need::Trial).await;
        assert!(seen.trial.present().expect("a trial").job.is_some(), "{status}");
        assert_eq!(world.count_calls("pods"), 1 + lists, "with those of the run: {status}");
    }
}

#[tokio::test]
async fn a_changed_job_is_read_without_the_pods_until_it_is_over() {
    let world = watched();
    world.put_trial(None);
    look_at_trial(&world).await;
    for (status, is_over) in [
        (json!({"active": 1, "ready": 1}), false),
        (json!({"uncountedTerminatedPods": {"succeeded": ["a"]}}), false),
        (json!({"conditions": [{"type": "Complete", "status": "True"}]}), true),
    ] {
        report_job(&world, &status);
        let seen = look_at_trial(&world).await;
        assert_eq!(calls(&world), [1, usize::from(is_over), 1], "{status}");
        assert_eq!(seen.rests_on_copies, !is_over, "{status}");
    }
}

#[tokio::test]
async fn the_first_progress_of_a_trial_needs_its_log_alone() {
    let world = watched();
    world.put_trial(None);
    look_at_trial(&world).await;
    let seen = look_at_trial(&world).await;
    assert!(seen.rests_on_copies);
    assert_eq!(calls(&world), [0, 0, 1]);
}

#[tokio::test]
async fn a_pass_that_sends_the_probe_rests_on_copies() {
    let world = watched();
    world.edit(|object| object["status"]["phase"] = "WaitingForReady".into());
    let name = names::deployment(&world.run_id());
    let state = json!({"status": {"state": "successful"}});
    world.put_child("nvidia.com/v1beta1", "DynamoGraphDeployment", &name, &state);
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    for (pod, component) in [("one", WORKER), ("two", WORKER), ("three", FRONTEND)] {
        world.put_child("v1", "Pod", pod, &ready);
        world.server.edit("pods", NAMESPACE, pod, |pod| {
            pod["metadata"]["labels"]["perfvalidation.dev/component"] = component.into();
        });
    }
    let parts = [Need::Deployment, Need::Workload, Need::Probe];
    look(&world, &parts, None).await;
    let seen = look(&world, &parts, None).await;
    assert_eq!(seen.probe, Probe::Idle, "the pass sends one");
    assert!(seen.rests_on_copies && seen.deployment.present().is_some());
    let counts = ["dynamographdeployments", "pods"].map(|resource| world.count_calls(resource));
    assert_eq!(counts, [0, 0]);
}
