//! Nodes without a measurement, and why.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::ResourceSlice;
use kube::api::{Api, ListParams};
use kube::core::DeserializeGuard;
use kube::{Client, ResourceExt as _};
use perfval_api::fleet::{NodePerformance, PerfValidationPolicy};
use perfval_api::meta::{NODE_LABEL, POLICY_LABEL};
use perfval_api::{PerfValidation, Phase};
use perfval_fleet::policy::HOSTNAME;

use super::policies::Policies;
use crate::error::Error;
use crate::preset::{DRIVER, PRODUCT};
use crate::screen::Screen;

/// End of the name of GPUs of a device plugin, such as `nvidia.com/gpu`.
const GPU: &str = "/gpu";
/// End of the name of GPUs that several pods share.
const SHARED: &str = ".shared";
/// Nodes of one list of validations: a URL has room for about 8 kB, and a hostname has up to 63 bytes. All validations of a policy
/// may be many megabytes.
const NODES_AT_ONCE: usize = 50;

/// Nodes with GPUs and without a measurement, each with the reason, and the exit code; none where Nodes cannot be read.
pub async fn unmeasured(
    (screen, client): (&mut Screen, &Client),
    nodes: Option<&[Node]>,
    rows: &[NodePerformance],
    policies: &Policies,
) -> (BTreeMap<String, String>, u8) {
    let Some(nodes) = nodes else {
        return (BTreeMap::new(), 0);
    };
    let (published, mut code) = match published(client).await {
        Ok(published) => (published, 0),
        Err(error) => {
            screen.note(&format!(
                "Nodes whose GPUs only a ResourceSlice shows may be missing: {error}"
            ));
            (BTreeSet::new(), error.code_of_gap())
        }
    };
    let measured: BTreeSet<String> = rows
        .iter()
        .filter(|row| row.status.is_some())
        .map(kube::ResourceExt::name_any)
        .collect();
    let unmeasured = nodes.iter().filter(|node| !measured.contains(&node.name_any()));
    let unmeasured: Vec<&Node> = unmeasured
        .filter(|node| has_gpus(node, &published) || node.labels().contains_key(PRODUCT))
        .collect();
    let mut last_runs = BTreeMap::new();
    for policy in &policies.all {
        let waits = |node: &&&Node| policies.find(node).is_some_and(|found| std::ptr::eq(found, policy));
        let waiting = unmeasured.iter().filter(waits);
        let hostnames: Vec<&str> = waiting.filter_map(|node| hostname(node)).collect();
        if !hostnames.is_empty() {
            match list_last_runs(client, policy, &hostnames).await {
                Ok(runs) => last_runs.extend(runs),
                Err(error) => {
                    let policy = policy.name_any();
                    screen.note(&format!(
                        "Runs of policy {policy} on unmeasured nodes are not shown: {error}"
                    ));
                    code = code.max(error.code_of_gap());
                }
            }
        }
    }
    let nodes = unmeasured.into_iter().map(|node| {
        let last_run = hostname(node).and_then(|hostname| last_runs.get(hostname));
        let obstacle = obstacle(node, has_gpus(node, &published), policies, last_run);
        (node.name_any(), obstacle)
    });
    (nodes.collect(), code)
}

fn hostname(node: &Node) -> Option<&str> {
    node.labels().get(HOSTNAME).map(String::as_str)
}

/// Newest validation of each of these nodes by a policy, in words, by hostname.
async fn list_last_runs(
    client: &Client,
    policy: &PerfValidationPolicy,
    hostnames: &[&str],
) -> Result<BTreeMap<String, String>, Error> {
    let namespace = &policy.spec.validation_template.metadata.namespace;
    let validations: Api<DeserializeGuard<PerfValidation>> = Api::namespaced(client.clone(), namespace);
    let label = format!("{POLICY_LABEL}={}", policy.name_any());
    let mut objects = Vec::new();
    for some in hostnames.chunks(NODES_AT_ONCE) {
        let selector = format!("{label},{NODE_LABEL} in ({})", some.join(","));
        let list = validations.list(&ListParams::default().labels(&selector)).await;
        objects.extend(list.map_err(|error| Error::from_call("read PerfValidations", error))?);
    }
    objects.sort_by_key(kube::ResourceExt::creation_timestamp);
    let runs = objects.iter().filter_map(|object| {
        let hostname = object.labels().get(NODE_LABEL)?;
        let name = format!("{namespace}/{}", object.name_any());
        let text = object.0.as_ref().map_or_else(
            |_| format!("validation {name} cannot be read by this program"),
            |validation| describe(&name, validation),
        );
        Some((hostname.clone(), text))
    });
    // The last one of a node stays.
    Ok(runs.collect())
}

/// State of a validation, such as `validation perf/h100-n1-1 ended with Error (Saturated)`.
fn describe(name: &str, object: &PerfValidation) -> String {
    let status = object.status.as_ref();
    let phase = status.and_then(|status| status.phase).unwrap_or(Phase::Pending);
    match status.and_then(|status| Some((status.verdict?, status.reason.as_deref()?))) {
        Some((verdict, reason)) if phase.is_over() => {
            format!("validation {name} ended with {} ({reason})", verdict.as_str())
        }
        _ => format!("validation {name} is in phase {}", phase.as_str()),
    }
}

fn has_gpus(node: &Node, published: &BTreeSet<String>) -> bool {
    resources(node).any(|name| name.ends_with(GPU)) || published.contains(&node.name_any())
}

/// Nodes with GPUs under Dynamic Resource Allocation.
async fn published(client: &Client) -> Result<BTreeSet<String>, Error> {
    let slices: Api<ResourceSlice> = Api::all(client.clone());
    let params = ListParams::default().fields(&format!("spec.driver={DRIVER}"));
    let slices = match slices.list(&params).await {
        // A cluster without this API has a device plugin.
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(BTreeSet::new()),
        slices => slices.map_err(|error| Error::from_call("read ResourceSlices", error))?,
    };
    let nodes = slices.items.into_iter().filter(|slice| slice.spec.driver == DRIVER);
    Ok(nodes.filter_map(|slice| slice.spec.node_name).collect())
}

/// Names of the resources that the node has.
fn resources(node: &Node) -> impl Iterator<Item = &str> {
    let all = node.status.iter().flat_map(|status| status.capacity.iter().flatten());
    all.filter(|(_, amount)| amount.0 != "0").map(|(name, _)| name.as_str())
}

fn obstacle(node: &Node, usable: bool, policies: &Policies, last_run: Option<&String>) -> String {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions
        .into_iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let cordoned = node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true));
    if !ready {
        "the node is not ready".to_owned()
    } else if cordoned && !policies.tolerates_cordon(node) {
        "the node is cordoned".to_owned()
    } else if usable {
        policies.obstacle(node, last_run)
    } else if resources(node).any(|name| name.contains("nvidia.com/mig-") || name.ends_with(SHARED)) {
        "its GPUs are shared or cut into MIG devices: see docs/sizing.md#shared-gpus".to_owned()
    } else {
        "neither a device plugin nor a DRA driver offers its GPUs".to_owned()
    }
}
