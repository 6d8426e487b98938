use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, PodSpec, Volume, VolumeMount};
use perfval_api::{Gate, GpuMetrics};
use perfval_sizing::{generator_resources, installer_resources, trial_is_pinned};
use perfval_verdict::aiperf::Measure;

use super::aiperf_command::{RESULTS_PATH, aiperf_command};
use super::load::{extra_seconds, whole_seconds};
use super::model::{cache_mount, cache_volume, reader_env};
use super::pod::{
    away_from_gpus, job, mount, pin, restricted_container, restricted_pod, scratch, templated, templated_container, var,
};
use super::service_host;
use crate::names::dynamo::WORKER_METRICS_PORT;
use crate::{Run, names};

/// A user that no image contains and that has no rights.
const NON_ROOT_UID: i64 = 65532;
/// Path of the runner in the operator's image.
const RUNNER_IN_IMAGE: &str = "/perfval-runner";
const RUNNER_PATH: &str = "/perfval";
/// More than the 20 s that the runner gives AIPerf after an interrupt, so that a cancelled trial still reports.
const GRACE_SECONDS: i64 = 45;

/// The Job's deadline counts from its creation, AIPerf's limit from its start: pulling two images comes in between. The
/// operator itself gives a trial 30 s more than this.
const START_SECONDS: i64 = 90;

/// Variables of the spec with which AIPerf reaches the hub too. `HTTP_PROXY` is not one of them, because the frontend has an
/// `http` URL.
const WAY_TO_HUB: [&str; 5] = ["HF_ENDPOINT", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"];

/// The Job of one trial: AIPerf in any image, behind the runner of the operator's own image.
pub fn trial_job(run: &Run<'_>, trial: i64) -> Job {
    let name = names::trial_job(&run.id(), trial);
    let deadline = limit_seconds(run, trial).saturating_add(START_SECONDS);
    job(run, name, names::LOAD_GENERATOR, deadline, pod(run, trial))
}

fn limit_seconds(run: &Run<'_>, trial: i64) -> i64 {
    whole_seconds(&run.spec().timeouts.benchmark).saturating_add(extra_seconds(run, trial))
}

/// The runner ends AIPerf early enough to report it: a Job past its deadline loses its pod, and the record with it.
fn aiperf_seconds(run: &Run<'_>, trial: i64) -> i64 {
    let limit = limit_seconds(run, trial);
    (limit - GRACE_SECONDS).max(limit / 2).max(1)
}

fn pod(run: &Run<'_>, trial: i64) -> PodSpec {
    let placement = run.placement().cloned().unwrap_or_default();
    PodSpec {
        termination_grace_period_seconds: Some(GRACE_SECONDS),
        affinity: Some(if trial_is_pinned(run.spec()) {
            pin(&placement.node)
        } else {
            away_from_gpus()
        }),
        init_containers: Some(vec![installer(run)]),
        containers: vec![container(run, trial)],
        volumes: Some(volumes(run)),
        // No fsGroup: it would hand the weights' volume over to this pod's group, file by file.
        ..templated(run, Some(restricted_pod(NON_ROOT_UID)))
    }
}

/// Copies the runner to where the measuring container finds it.
fn installer(run: &Run<'_>) -> Container {
    Container {
        name: "install-runner".to_owned(),
        image: Some(run.settings.runner_image.clone()),
        command: Some([RUNNER_IN_IMAGE, "install", RUNNER_PATH].map(str::to_owned).into()),
        resources: Some(installer_resources()),
        volume_mounts: Some(vec![mount("runner", RUNNER_PATH)]),
        ..templated_container(run, Some(restricted_container()))
    }
}

fn container(run: &Run<'_>, trial: i64) -> Container {
    let benchmark = &run.spec().benchmark;
    let image = Some(&benchmark.image).filter(|image| !image.is_empty());
    let image = image.or(run.settings.aiperf_image.as_ref()).cloned();
    Container {
        name: names::AIPERF_CONTAINER.to_owned(),
        image,
        command: Some(vec![format!("{RUNNER_PATH}/perfval-runner")]),
        args: Some(arguments(run, trial)),
        env: Some(environment(run)),
        resources: Some(generator_resources(
            benchmark,
            run.placement().map_or(0, |plan| plan.gpus),
        )),
        termination_message_policy: Some("File".to_owned()),
        volume_mounts: Some(mounts(run)),
        ..templated_container(run, Some(restricted_container()))
    }
}

/// The runner's own arguments, then the command it runs.
fn arguments(run: &Run<'_>, trial: i64) -> Vec<String> {
    let id = run.id();
    let mut words = vec!["run".to_owned()];
    let mut flag = |name: &str, value: String| words.extend([name.to_owned(), value]);
    flag("--nonce", names::nonce(run.uid(), &id, trial));
    flag("--artifact-dir", RESULTS_PATH.to_owned());
    flag("--workers-host", service_host(run, &names::workers_service(&id)));
    flag("--workers-port", WORKER_METRICS_PORT.to_string());
    let deployment = run.status().state.deployment.as_ref();
    if let Some(GpuMetrics::Endpoint(page)) = deployment.and_then(|deployment| deployment.gpu_metrics.as_ref()) {
        flag("--gpu-metrics", page.clone());
        flag("--namespace", run.namespace().to_owned());
    }
    if let Some(plan) = run.placement() {
        flag("--node", plan.node.clone());
    }
    flag("--timeout", aiperf_seconds(run, trial).to_string());
    let gated: BTreeSet<Measure> = run
        .spec()
        .gates
        .iter()
        // What AIPerf does not measure comes with the workers.
        .filter(|gate| gate.metric.aiperf_tag().is_some())
        .map(|&Gate { metric, statistic, .. }| Measure { metric, statistic })
        .collect();
    for measure in gated {
        flag("--gated", measure.to_string());
    }
    words.push("--".to_owned());
    // The kubelet would expand `$(NAME)`: with the token in the environment, a spec could put it on the command line.
    words.extend(aiperf_command(run, trial).iter().map(|word| word.replace('$', "$$")));
    words
}

/// The root file system cannot be written, so everything that writes gets a directory.
fn environment(run: &Run<'_>) -> Vec<EnvVar> {
    // HF_HOME stays the image's: an image with its own tokenizer cache must find it again.
    let own_node = EnvVar {
        name: "PERFVAL_NODE".to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                field_path: "spec.nodeName".to_owned(),
                ..ObjectFieldSelector::default()
            }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    };
    let mut env = vec![var("HOME", "/tmp"), var("TMPDIR", "/tmp"), own_node];
    if run.spec().model.cache.is_none() {
        let users = run.spec().dynamo().env.iter();
        let ways = users.filter(|var| WAY_TO_HUB.contains(&var.name.as_str()));
        // The variables that a value refers to stay with the workers.
        let is_whole = |var: &&EnvVar| !var.value.as_ref().is_some_and(|value| value.contains("$("));
        env.extend(ways.filter(is_whole).cloned());
    }
    env.extend(reader_env(run));
    env
}

fn volumes(run: &Run<'_>) -> Vec<Volume> {
    let mut volumes: Vec<Volume> = ["runner", "results", "tmp"].map(scratch).into();
    volumes.extend(cache_volume(run));
    volumes
}

fn mounts(run: &Run<'_>) -> Vec<VolumeMount> {
    let runner = VolumeMount {
        read_only: Some(true),
        ..mount("runner", RUNNER_PATH)
    };
    let mut mounts = vec![runner, mount("results", RESULTS_PATH), mount("tmp", "/tmp")];
    mounts.extend(cache_mount(run, true));
    mounts
}
