//! The same cluster on a real API server, with nodes of kwok: what a look costs there, and how long a run sizes.

use std::time::{Duration, Instant};

use futures::{TryStreamExt as _, stream};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use perfval_api::Phase;
use perfval_e2e::{Lab, OutOfCluster, Validation, eventually, quick};
use perfval_sizing::Sizing;
use serde_json::{Value, json};

use super::measure::{cluster, look, object, size};
use super::{Outcome, serve};

/// Writes under way at once.
const AT_ONCE: usize = 16;
const NAMESPACE: &str = "bench";
/// Looks and runs of which each is shown.
const TIMES: usize = 3;

/// Fills the cluster of `KUBECONFIG`, looks, and lets the operator of `PERFVAL_OPERATOR` size runs.
#[tokio::main]
pub async fn real(nodes: usize) -> Outcome<()> {
    let lab = Lab::connect().await;
    lab.namespace(NAMESPACE).await;
    let began = Instant::now();
    fill(&lab.client, nodes).await?;
    println!("{nodes} nodes written in {:.0} s", began.elapsed().as_secs_f64());

    let object = object()?;
    for _ in 0..TIMES {
        let began = Instant::now();
        let survey = look(&cluster(&lab.client)).await?;
        let read = began.elapsed().as_secs_f64();
        let began = Instant::now();
        let sizing = size(&survey, &object)?;
        let decided = began.elapsed().as_secs_f64() * 1e3;
        match sizing {
            Sizing::Chosen(plan) => println!(
                "read {read:.2} s, decided {decided:.1} ms: {} GPUs on {}",
                plan.gpus, plan.node
            ),
            other => return Err(format!("no plan: {other:?}").into()),
        }
    }

    let operator = OutOfCluster::start();
    for number in 0..TIMES {
        let seconds = seconds_of_sizing(&lab, number).await?;
        println!("from Sizing to a settled plan: {seconds:.1} s (two equal looks at least 2 s apart are part of it)");
    }
    operator.kill().await;
    Ok(())
}

async fn seconds_of_sizing(lab: &Lab, number: usize) -> Outcome<f64> {
    let mut manifest = quick(&format!("bench-{number}"), NAMESPACE);
    manifest["spec"]["placement"] = json!({ "minGPUs": 8 });
    let validation = Validation::create(lab, manifest).await;
    let seen = |wanted: fn(Phase) -> bool| {
        let validation = &validation;
        eventually("a phase", Duration::from_mins(2), move || async move {
            let status = validation.status().await?;
            let phase = status.phase.ok_or_else(|| "no phase yet".to_owned())?;
            if wanted(phase) {
                Ok(phase)
            } else {
                Err(status.message.unwrap_or_default())
            }
        })
    };
    seen(|phase| phase != Phase::Pending).await;
    let began = Instant::now();
    let phase = seen(|phase| !matches!(phase, Phase::Pending | Phase::Sizing)).await;
    let seconds = began.elapsed().as_secs_f64();
    lab.kubectl(&[
        "delete",
        "perfvalidation",
        "-n",
        NAMESPACE,
        &validation.name,
        "--timeout=120s",
    ])
    .await;
    if phase == Phase::Deploying || phase == Phase::WaitingForReady {
        Ok(seconds)
    } else {
        Err(format!("the run went to {phase:?}").into())
    }
}

async fn fill(client: &Client, nodes: usize) -> Outcome<()> {
    account(client, NAMESPACE).await;
    let classes = api(client, ("resource.k8s.io/v1", "DeviceClass", "deviceclasses", None));
    let apply = PatchParams::apply("bench").force();
    classes
        .patch("gpu.nvidia.com", &apply, &Patch::Apply(&serve::class()))
        .await?;
    write_nodes(client, (0..nodes).map(|index| serve::node(index, nodes))).await?;
    write_slices(client, (0..nodes).map(|index| serve::slice(index, nodes))).await?;
    write_claims(client, NAMESPACE, (0..nodes - 1).map(serve::held)).await?;
    write_pods(client, NAMESPACE, nodes).await
}

/// Waits for the account of a new namespace, without which no pod is admitted.
pub async fn account(client: &Client, namespace: &'static str) {
    let accounts = api(client, ("v1", "ServiceAccount", "serviceaccounts", Some(namespace)));
    eventually("the namespace's account", Duration::from_mins(1), || {
        accounts.get("default")
    })
    .await;
}

/// Nodes of kwok.
pub async fn write_nodes(client: &Client, nodes: impl Iterator<Item = Value>) -> Outcome<()> {
    let of_kwok = nodes.map(|mut node| {
        node["metadata"]["annotations"] = json!({ "kwok.x-k8s.io/node": "fake" });
        node
    });
    write(client, ("v1", "Node", "nodes", None), of_kwok).await
}

pub async fn write_slices(client: &Client, slices: impl Iterator<Item = Value>) -> Outcome<()> {
    let without_owner = slices.map(|mut slice| {
        // A node of another uid would have it collected.
        slice["metadata"]
            .as_object_mut()
            .map(|metadata| metadata.remove("ownerReferences"));
        slice
    });
    let kind = ("resource.k8s.io/v1", "ResourceSlice", "resourceslices", None);
    write(client, kind, without_owner).await
}

/// Claims of others, which are allocated.
pub async fn write_claims(
    client: &Client,
    namespace: &'static str,
    claims: impl Iterator<Item = Value>,
) -> Outcome<()> {
    let here = claims.map(|mut claim| {
        claim["metadata"]["namespace"] = json!(namespace);
        claim
    });
    let kind = ("resource.k8s.io/v1", "ResourceClaim", "resourceclaims", Some(namespace));
    write(client, kind, here).await
}

/// Two pods of others on each node.
pub async fn write_pods(client: &Client, namespace: &'static str, nodes: usize) -> Outcome<()> {
    let pods = (0..nodes * 2).map(|index| {
        let mut pod = serve::pod(index * serve::PODS / 2, nodes);
        pod["metadata"]["namespace"] = json!(namespace);
        // kwok needs nine minutes for 10,000 pods, and pods of runs would wait behind them.
        pod["metadata"]["labels"]["lab.perfvalidation.dev/played"] = json!("true");
        pod
    });
    write(client, ("v1", "Pod", "pods", Some(namespace)), pods).await
}

/// apiVersion, kind, plural and namespace.
pub type Kind = (&'static str, &'static str, &'static str, Option<&'static str>);

async fn write(client: &Client, kind: Kind, objects: impl Iterator<Item = Value>) -> Outcome<()> {
    let api = &api(client, kind);
    stream::iter(objects.map(Ok))
        .try_for_each_concurrent(AT_ONCE, |object| async move {
            let mut body: DynamicObject = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
            body.types = Some(kube::core::TypeMeta {
                api_version: kind.0.to_owned(),
                kind: kind.1.to_owned(),
            });
            body.metadata.uid = None;
            body.metadata.resource_version = None;
            body.metadata.managed_fields = None;
            body.metadata.creation_timestamp = None;
            api.create(&PostParams::default(), &body).await?;
            if matches!(kind.1, "Pod" | "ResourceClaim") {
                let status = json!({ "status": body.data["status"] });
                let name = body.metadata.name.unwrap_or_default();
                api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&status))
                    .await?;
            }
            Ok::<(), kube::Error>(())
        })
        .await?;
    Ok(())
}

pub fn api(client: &Client, (version, kind, plural, namespace): Kind) -> Api<DynamicObject> {
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}
