use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::Api;
use kube::api::ListParams;
use perfval_api::{GpuTelemetry, ModelCache, Reason};
use perfval_cluster::{Cluster, EndpointAccess};
use perfval_run::build::{ARCHITECTURE_LABEL, has_storage_class};
use perfval_run::dynamo::compatibility::{self, SUPPORTED};
use perfval_run::dynamo::version::Version;
use perfval_run::observed::{Inventory, Need, Observed};
use perfval_run::{Needs, Run, Settings};
use perfval_sizing::{NodeObstacle, NodeReport, Seen, Sizing, explain};

use super::architecture;
use super::asked::Asked;
use super::check::Check;
use super::dra;
use super::operator::{EXPORTER_NAMESPACES, FoundOperator};
use crate::error::Error;

/// Labels of the exporter's pods: of NVIDIA's GPU Operator, and of the exporter's own chart.
const EXPORTERS: [&str; 2] = ["app=nvidia-dcgm-exporter", "app.kubernetes.io/name=dcgm-exporter"];
/// Most reasons of nodes in the answer.
const NAMED: usize = 3;

/// Dynamo, the GPUs and what gives them out, storage and the exporter, at this moment.
pub async fn checks(asked: &Asked<'_>, operator: Option<&FoundOperator>) -> Vec<Check> {
    let client = asked.session.client.clone();
    let (cluster, _) = Cluster::new(client.clone(), client, EndpointAccess::ServiceProxy, String::new());
    let settings = Settings::default();
    let run = Run::new(asked.object, &settings);
    let needs = Needs {
        parts: BTreeSet::from([Need::Dynamo, Need::StorageClasses, Need::Inventory]),
        ..Needs::default()
    };
    let seen = cluster.observe(&run, &needs).await;
    let inventory = seen.inventory.present();
    let sized = inventory.map(|inventory| explain(inventory, &asked.object.spec, &[]));
    let reports = sized.iter().flat_map(|(reports, _)| reports);
    let mut checks = vec![dynamo(asked, &run, &seen), gpus(asked, &seen.inventory, sized.as_ref())];
    checks.extend(architectures(asked, inventory, reports).await);
    checks.extend(inventory.map(|inventory| dra::check(asked, inventory)));
    checks.extend(storage(asked, &seen).await);
    let telemetry = &asked.object.spec.telemetry;
    if telemetry.gpus == GpuTelemetry::Auto && telemetry.endpoint.is_none() {
        let namespaces = operator.and_then(|operator| operator.exporter_namespaces.as_deref());
        checks.push(exporter(asked, namespaces).await);
    }
    checks
}

fn dynamo(asked: &Asked<'_>, run: &Run<'_>, seen: &Observed) -> Check {
    let api = match &seen.dynamo {
        Seen::Present(api) => api,
        Seen::Absent | Seen::NotAsked => {
            return Check::missing(
                "Dynamo is not installed: nothing serves DynamoGraphDeployments",
                format!("{}; a waiting run picks it up", install_dynamo()),
            );
        }
        Seen::Unknown(why) => {
            return Check::unknown(
                format!("it is not known whether Dynamo is installed: {why}"),
                "kubectl get crd dynamographdeployments.nvidia.com",
            );
        }
    };
    let known = api.operator_version.as_deref().and_then(Version::parse);
    let version = api.operator_version.as_deref().unwrap_or("of an unknown version");
    // Without a manifest of the user's there is no image to compare with, but a namespace and a way to route.
    match compatibility::refusal(run, api) {
        Some(why) => Check::missing(
            format!("Dynamo {version}: {}", why.message),
            match why.reason {
                Reason::Refused => "kubectl create namespace NAME, with a shorter name".to_owned(),
                _ if asked.given() => "correct the image in the manifest".to_owned(),
                _ => install_dynamo(),
            },
        ),
        None if known.is_some_and(|known| SUPPORTED.contains(&known)) => {
            Check::good(format!("Dynamo {version}, {}", api.resource.api_version))
        }
        None => Check::worse(
            format!(
                "Dynamo {version}, {}; this release supports {} to {}",
                api.resource.api_version,
                SUPPORTED.start(),
                SUPPORTED.end()
            ),
            "docs/compatibility.md (a run goes on all the same)",
        ),
    }
}

fn install_dynamo() -> String {
    format!("install Dynamo's operator {} to {}", SUPPORTED.start(), SUPPORTED.end())
}

fn gpus(asked: &Asked<'_>, inventory: &Seen<Inventory>, sized: Option<&(Vec<NodeReport>, Sizing)>) -> Check {
    let Some((nodes, sizing)) = sized else {
        let why = inventory.unknown().unwrap_or("they were not read");
        return Check::unknown(format!("the GPUs: {why}"), asked.command("size"));
    };
    if let Sizing::Wait {
        reason: Reason::CallFailed,
        message,
    } = sizing
    {
        return Check::unknown(format!("the GPUs: {message}"), asked.command("size"));
    }
    let with_gpus: Vec<_> = nodes
        .iter()
        .filter(|node| node.obstacle != Some(NodeObstacle::NoGpus))
        .collect();
    let usable: i64 = with_gpus.iter().map(|node| node.usable).sum();
    let all: i64 = with_gpus.iter().map(|node| node.total).sum();
    if with_gpus.is_empty() {
        return Check::missing(
            format!(
                "none of {} nodes offers GPUs: neither a DRA driver nor a device plugin publishes any",
                nodes.len()
            ),
            "install NVIDIA's GPU Operator, or its DRA driver, and look at `kubectl get resourceslices`",
        );
    }
    let nodes = match with_gpus.len() {
        1 => "one node".to_owned(),
        count => format!("{count} nodes"),
    };
    let text = format!("{usable} of {all} GPUs on {nodes} are free for a run");
    if let Sizing::Chosen(_) = sizing {
        return Check::good(text);
    }
    let summaries = with_gpus
        .iter()
        .take(NAMED)
        .map(|node| format!("{}: {}", node.node, node.summary()));
    let why: Vec<_> = summaries.collect();
    Check::missing(format!("{text}; {}", why.join("; ")), asked.command("size"))
}

async fn architectures<'a>(
    asked: &Asked<'_>,
    inventory: Option<&'a Inventory>,
    reports: impl Iterator<Item = &'a NodeReport>,
) -> Vec<Check> {
    let Some(nodes) = inventory.and_then(|inventory| inventory.nodes.present()) else {
        return Vec::new();
    };
    let with_gpus = reports.filter(|report| report.obstacle != Some(NodeObstacle::NoGpus));
    let labels = with_gpus.map(|report| {
        let node = nodes.iter().find(|node| *node.name == *report.node);
        node.and_then(|node| node.label(ARCHITECTURE_LABEL))
    });
    let all = nodes.iter().map(|node| node.label(ARCHITECTURE_LABEL));
    architecture::checks(asked, labels, all).await
}

async fn storage(asked: &Asked<'_>, seen: &Observed) -> Option<Check> {
    let template = match asked.object.spec.model.cache.as_ref()? {
        ModelCache::VolumeClaimTemplate(template) => template,
        ModelCache::PersistentVolumeClaim(claim) => {
            let next = "name one of these claims in model.cache: kubectl get persistentvolumeclaims";
            return Some(asked.exists::<PersistentVolumeClaim>(&claim.claim_name, next).await);
        }
    };
    let classes = match &seen.storage_classes {
        Seen::Present(classes) => classes,
        unread => {
            let why = unread.unknown().unwrap_or("not read");
            return Some(Check::unknown(
                format!("storage classes: {why}"),
                "kubectl get storageclasses",
            ));
        }
    };
    if has_storage_class(template, classes) {
        return Some(Check::good("there is storage for the model cache"));
    }
    Some(Check::missing(
        "the manifest has a model cache, and there is no such StorageClass, or no default one",
        "name one of `kubectl get storageclasses` in spec.model.cache.volumeClaimTemplate.storageClassName",
    ))
}

/// Looks for an exporter in the operator's `namespaces`, if they are known, then in all.
async fn exporter(asked: &Asked<'_>, namespaces: Option<&[String]>) -> Check {
    let good = || Check::good("a DCGM exporter runs: temperatures, clocks and power explain slow GPUs");
    for namespace in namespaces.unwrap_or_default() {
        match find_exporter(asked, Some(namespace.as_str())).await {
            Ok(Some(_)) => return good(),
            Ok(None) => {}
            Err(unknown) => return unknown,
        }
    }
    match find_exporter(asked, None).await {
        Ok(Some(other)) if namespaces.is_some() => Check::worse(
            format!("a DCGM exporter runs in {other}, where the operator does not look: a run goes without"),
            format!("add {other} to the operator's {EXPORTER_NAMESPACES}, or to the chart's dcgmExporterNamespaces"),
        ),
        Ok(Some(_)) => good(),
        Ok(None) => Check::worse(
            "no DCGM exporter runs: a slow GPU is found, but not whether it is hot or throttled",
            "docs/telemetry.md (a run goes without)",
        ),
        Err(unknown) => unknown,
    }
}

/// Namespace of an exporter, in this or in any namespace; the check without an answer if pods cannot be read.
async fn find_exporter(asked: &Asked<'_>, namespace: Option<&str>) -> Result<Option<String>, Check> {
    let client = asked.session.client.clone();
    let (api, place, flag): (Api<Pod>, _, _) = match namespace {
        Some(name) => (
            Api::namespaced(client, name),
            format!("in {name}"),
            format!("-n {name}"),
        ),
        None => (Api::all(client), "of all namespaces".to_owned(), "-A".to_owned()),
    };
    for label in EXPORTERS {
        let pods = api.list(&ListParams::default().labels(label).limit(1)).await;
        let pods = pods.map_err(|error| {
            let why = Error::from_call(&format!("read Pods {place}"), error);
            Check::unknown(
                format!("it is not known whether a DCGM exporter runs: {why}"),
                format!("kubectl get pods {flag} -l {label}"),
            )
        })?;
        if let Some(pod) = pods.items.into_iter().next() {
            return Ok(pod.metadata.namespace);
        }
    }
    Ok(None)
}
