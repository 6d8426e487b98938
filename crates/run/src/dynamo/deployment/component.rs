use k8s_openapi::api::core::v1::{Container, EnvVar, PodResourceClaim, PodSpec, ResourceClaim, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::core::ObjectMeta;
use perfval_api::{Allocation, PlacementStatus, RouterMode};
use perfval_sizing::{frontend_is_pinned, frontend_resources};

use crate::build::claim_template::GPU;
use crate::build::meta::{own_labels, pod_metadata};
use crate::build::model::{cache_mount, cache_volume, reader_env};
use crate::build::pod::{non_empty, ours_win, pin, templated, templated_container, var};
use crate::names::dynamo::{FRONTEND, MAIN, WORKER};
use crate::{Run, names};

/// Puts the driver libraries of GKE's device plugin, which comes without environment (aicr #2044), behind what the image
/// looks through anyway, and becomes the worker. The program is constant: all of the spec is in its arguments.
const WRAPPER: [&str; 4] = [
    "/bin/sh",
    "-c",
    r#"export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/nvidia/lib64"; exec "$@""#,
    "perfval",
];

/// Flags with which vLLM publishes its prefixes to the `kv` router; no other mode listens.
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
    /// Labels and annotations of its pods.
    pub metadata: ObjectMeta,
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
        let dynamo = run.spec().dynamo();
        let image = [&dynamo.frontend.image, &dynamo.image]
            .into_iter()
            .find(|image| !image.is_empty());
        let router = dynamo.router_mode.flag();
        // Both the flag and the variable: a frontend that does not know the mode refuses the flag, but takes the
        // variable for round-robin (Dynamo 1.0 and 1.2). The flag comes last because argparse takes the last one.
        let mut args = dynamo.frontend.args.clone();
        args.extend(["--router-mode", router].map(str::to_owned));
        let env = [reader_env(run), vec![var("DYN_ROUTER_MODE", router)]].concat();
        Self {
            name: FRONTEND,
            replicas: 1,
            runtime_version: runtime_version(run),
            metadata: pod_metadata(run, own_labels(run, FRONTEND)),
            shared_memory: None,
            pod: pod(run, frontend_is_pinned(run.spec())),
            main: Container {
                image: image.cloned(),
                // Command and arguments: Dynamo's operator defaults each on its own, and splits its own between them.
                command: Some(["python3", "-m", "dynamo.frontend"].map(str::to_owned).into()),
                args: Some(args),
                env: Some(ours_win(&dynamo.env, env)),
                ..main_container(run)
            },
            resources: frontend_resources(run.spec(), run.placement().map_or(0, |plan| plan.gpus)),
        }
    }

    /// The component that holds the GPUs.
    pub fn worker(run: &Run<'_>) -> Self {
        let dynamo = run.spec().dynamo();
        let placement = run.placement().cloned().unwrap_or_default();
        let (command, args) = worker_command(run);
        // From 1.5.1 a worker takes router variables too, and what it then advertises replaces the frontend's router.
        let env: Vec<EnvVar> = dynamo
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
            replicas: run.workers(),
            runtime_version: runtime_version(run),
            metadata: pod_metadata(run, own_labels(run, WORKER)),
            // The processes of a split model exchange data through shared memory (NCCL).
            shared_memory: (run.spec().gpus_per_worker() == 1).then_some("2Gi"),
            pod,
            main: Container {
                image: Some(dynamo.image.clone()),
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

/// Time to end (s). Dynamo's default is 60 s, but a pod that preempts a worker should have its GPU after half a minute.
const GRACE_SECONDS: i64 = 20;

fn pod(run: &Run<'_>, pinned: bool) -> PodSpec {
    let placement = run.placement().cloned().unwrap_or_default();
    PodSpec {
        termination_grace_period_seconds: Some(GRACE_SECONDS),
        // A Service called `vllm` would set `VLLM_PORT` to a URL, and vLLM would not start.
        enable_service_links: Some(false),
        affinity: pinned.then(|| pin(&placement.node)),
        tolerations: non_empty(run.status().state.plan.tolerations.clone()),
        volumes: cache_volume(run).map(|volume| vec![volume]),
        ..templated(run, None)
    }
}

fn main_container(run: &Run<'_>) -> Container {
    Container {
        name: MAIN.to_owned(),
        volume_mounts: cache_mount(run, true).map(|mount| vec![mount]),
        ..templated_container(run, None)
    }
}

/// The user's own command as it is; else vLLM on the model, split over the worker's GPUs, behind the wrapper.
fn worker_command(run: &Run<'_>) -> (Vec<String>, Vec<String>) {
    let dynamo = run.spec().dynamo();
    if !dynamo.worker.command.is_empty() {
        return (dynamo.worker.command.clone(), dynamo.worker.args.clone());
    }
    let model = &run.spec().model;
    let mut args: Vec<String> = ["python3", "-m", "dynamo.vllm", "--model", &model.name]
        .map(str::to_owned)
        .into();
    if let Some(revision) = &model.revision {
        // Of the tokenizer too: vLLM takes it from the same revision.
        args.extend(["--revision".to_owned(), revision.clone()]);
    }
    if dynamo.worker.gpus > 1 {
        args.extend(["--tensor-parallel-size".to_owned(), dynamo.worker.gpus.to_string()]);
    }
    if dynamo.router_mode == RouterMode::Kv {
        args.extend(KV_EVENTS.map(str::to_owned));
    }
    args.extend(dynamo.worker.args.clone());
    (WRAPPER.map(str::to_owned).into(), args)
}

/// The user's resources with exactly the worker's GPUs, through a claim or from the plugin. The spec's own GPU entry is
/// dropped: next to a claim the same device would be taken twice (KEP-5004).
fn worker_resources(run: &Run<'_>, placement: &PlacementStatus) -> ResourceRequirements {
    let resource = &run.spec().placement.resource_name;
    let mut resources = run.spec().dynamo().worker.resources.clone();
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
        limits.insert(resource.clone(), Quantity(run.spec().gpus_per_worker().to_string()));
    }
    resources
}
