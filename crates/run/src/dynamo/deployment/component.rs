use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvVar, PodResourceClaim, PodSpec, ResourceClaim, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use perfval_api::{Allocation, PlacementStatus, RouterMode};
use perfval_sizing::{frontend_is_pinned, frontend_resources};

use crate::build::claim_template::GPU;
use crate::build::meta::own_labels;
use crate::build::model::{cache_mount, cache_volume, reader_env};
use crate::build::pod::{non_empty, pin, var};
use crate::dynamo::names::{FRONTEND, MAIN, WORKER};
use crate::{Run, names};

/// Puts the driver libraries of GKE's device plugin, which comes without environment (aicr #2044), behind what the image
/// looks through anyway, and becomes the worker. The program is constant: all of the spec is in its arguments.
const WRAPPER: [&str; 4] = [
    "/bin/sh",
    "-c",
    r#"export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/nvidia/lib64"; exec "$@""#,
    "perfval",
];

/// What makes vLLM publish its prefixes to the `kv` router; no other mode listens.
const KV_EVENTS: [&str; 2] = [
    "--kv-events-config",
    r#"{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557"}"#,
];

/// One role of the graph; each API version writes it in its own shape.
pub struct Component {
    pub name: &'static str,
    pub replicas: i64,
    /// The version that its image does not name, where the API takes it.
    pub runtime_version: Option<String>,
    /// Labels of its pods.
    pub labels: BTreeMap<String, String>,
    /// `/dev/shm`, where it is not the default 8Gi.
    pub shared_memory: Option<&'static str>,
    /// Its pods, without containers.
    pub pod: PodSpec,
    /// Its one container; resources are apart, because v1alpha1 has its own words for them.
    pub main: Container,
    pub resources: ResourceRequirements,
}

impl Component {
    /// The component that takes requests. One replica: the router counts requests per process.
    pub fn frontend(run: &Run<'_>) -> Self {
        let workload = &run.spec().workload;
        let image = [&workload.frontend_image, &workload.image]
            .into_iter()
            .find(|image| !image.is_empty());
        let router = workload.router_mode.flag();
        // Both the flag and the variable: a frontend that does not know the mode refuses the flag, but takes the
        // variable for round-robin (Dynamo 1.0 and 1.2). The flag comes last because argparse takes the last one.
        let mut args = workload.frontend_args.clone();
        args.extend(["--router-mode", router].map(str::to_owned));
        let env = [reader_env(run), vec![var("DYN_ROUTER_MODE", router)]].concat();
        Self {
            name: FRONTEND,
            replicas: 1,
            runtime_version: runtime_version(run),
            labels: own_labels(run, FRONTEND),
            shared_memory: None,
            pod: pod(run, frontend_is_pinned(run.spec())),
            main: Container {
                image: image.cloned(),
                // Command and arguments: Dynamo's operator defaults each on its own, and splits its own between them.
                command: Some(["python3", "-m", "dynamo.frontend"].map(str::to_owned).into()),
                args: Some(args),
                env: Some(ours_win(&workload.env, env)),
                ..main_container(run)
            },
            resources: frontend_resources(),
        }
    }

    /// The component that holds the GPUs, one each.
    pub fn worker(run: &Run<'_>) -> Self {
        let workload = &run.spec().workload;
        let placement = run.placement().cloned().unwrap_or_default();
        let (command, args) = worker_command(run);
        // From 1.5.1 a worker takes router variables too, and what it then advertises replaces the frontend's router.
        let env: Vec<EnvVar> = workload
            .env
            .iter()
            .filter(|var| !var.name.starts_with("DYN_ROUTER_"))
            .cloned()
            .collect();
        let mut pod = pod(run, true);
        if placement.allocation == Allocation::Dra {
            pod.resource_claims = Some(vec![PodResourceClaim {
                name: GPU.to_owned(),
                resource_claim_template_name: Some(names::deployment(&run.id())),
                resource_claim_name: None,
            }]);
        }
        Self {
            name: WORKER,
            replicas: placement.gpus,
            runtime_version: runtime_version(run),
            labels: own_labels(run, WORKER),
            shared_memory: Some("2Gi"),
            pod,
            main: Container {
                image: Some(workload.image.clone()),
                command: Some(command),
                args: Some(args),
                env: Some(ours_win(&env, reader_env(run))),
                ..main_container(run)
            },
            resources: worker_resources(run, &placement),
        }
    }
}

fn runtime_version(run: &Run<'_>) -> Option<String> {
    run.status().state.runtime_version.clone()
}

fn pod(run: &Run<'_>, pinned: bool) -> PodSpec {
    let placement = run.placement().cloned().unwrap_or_default();
    PodSpec {
        affinity: pinned.then(|| pin(&placement.node)),
        tolerations: non_empty(run.status().state.plan.tolerations.clone()),
        image_pull_secrets: non_empty(run.spec().workload.image_pull_secrets.clone()),
        volumes: cache_volume(run).map(|volume| vec![volume]),
        ..PodSpec::default()
    }
}

fn main_container(run: &Run<'_>) -> Container {
    Container {
        name: MAIN.to_owned(),
        image_pull_policy: Some(run.spec().workload.image_pull_policy.as_str().to_owned()),
        volume_mounts: cache_mount(run, true).map(|mount| vec![mount]),
        ..Container::default()
    }
}

/// The user's own command as it is; else vLLM on the model, behind the wrapper.
fn worker_command(run: &Run<'_>) -> (Vec<String>, Vec<String>) {
    let workload = &run.spec().workload;
    if !workload.command.is_empty() {
        return (workload.command.clone(), workload.args.clone());
    }
    let mut args: Vec<String> = ["python3", "-m", "dynamo.vllm", "--model", &run.spec().model.name]
        .map(str::to_owned)
        .into();
    if workload.router_mode == RouterMode::Kv {
        args.extend(KV_EVENTS.map(str::to_owned));
    }
    args.extend(workload.args.clone());
    (WRAPPER.map(str::to_owned).into(), args)
}

/// The user's resources with exactly one GPU, whichever way GPUs are asked for. What the spec itself says about the GPU
/// is dropped: next to a claim the same device would be taken twice (KEP-5004).
fn worker_resources(run: &Run<'_>, placement: &PlacementStatus) -> ResourceRequirements {
    let resource = &run.spec().placement.resource_name;
    let mut resources = run.spec().workload.resources.clone();
    for amounts in [&mut resources.requests, &mut resources.limits].into_iter().flatten() {
        amounts.remove(resource);
    }
    resources.claims = None;
    if placement.allocation == Allocation::Dra {
        resources.claims = Some(vec![ResourceClaim {
            name: GPU.to_owned(),
            request: None,
        }]);
    } else {
        let limits = resources.limits.get_or_insert_default();
        limits.insert(resource.clone(), Quantity("1".to_owned()));
    }
    resources
}

/// The user's variables, then ours; one name never appears twice, so none of ours can be overridden.
fn ours_win(user: &[EnvVar], ours: Vec<EnvVar>) -> Vec<EnvVar> {
    let mut env: Vec<EnvVar> = user
        .iter()
        .filter(|var| ours.iter().all(|own| own.name != var.name))
        .cloned()
        .collect();
    env.extend(ours);
    env
}
