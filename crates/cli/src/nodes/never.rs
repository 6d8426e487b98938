//! Nodes without a measurement, and why.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::ResourceSlice;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use perfval_api::fleet::NodePerformance;

use super::policies::Policies;
use crate::error::Error;
use crate::preset::{DRIVER, PRODUCT};
use crate::screen::Screen;

/// End of the name of GPUs of a device plugin, such as `nvidia.com/gpu`.
const GPU: &str = "/gpu";
/// End of the name of GPUs that several pods share.
const SHARED: &str = ".shared";

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
    let (published, code) = match published(client).await {
        Ok(published) => (published, 0),
        Err(error) => {
            screen.note(&format!(
                "Nodes whose GPUs only a ResourceSlice shows may be missing: {error}"
            ));
            (BTreeSet::new(), error.code_of_gap())
        }
    };
    (never_measured(nodes, rows, &published, policies), code)
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

fn never_measured(
    nodes: &[Node],
    rows: &[NodePerformance],
    published: &BTreeSet<String>,
    policies: &Policies,
) -> BTreeMap<String, String> {
    let measured = rows.iter().filter(|row| row.status.is_some());
    let measured: BTreeSet<String> = measured.map(kube::ResourceExt::name_any).collect();
    let nodes = nodes.iter().filter(|node| !measured.contains(&node.name_any()));
    let nodes = nodes.filter_map(|node| {
        let usable = resources(node).any(|name| name.ends_with(GPU)) || published.contains(&node.name_any());
        if !usable && !node.labels().contains_key(PRODUCT) {
            return None;
        }
        Some((node.name_any(), obstacle(node, usable, policies)))
    });
    nodes.collect()
}

/// Names of the resources that the node has.
fn resources(node: &Node) -> impl Iterator<Item = &str> {
    let all = node.status.iter().flat_map(|status| status.capacity.iter().flatten());
    all.filter(|(_, amount)| amount.0 != "0").map(|(name, _)| name.as_str())
}

fn obstacle(node: &Node, usable: bool, policies: &Policies) -> String {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions
        .into_iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let cordoned = node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true));
    if !ready {
        "the node is not ready".to_owned()
    } else if cordoned {
        "the node is cordoned".to_owned()
    } else if usable {
        policies.obstacle(node)
    } else if resources(node).any(|name| name.contains("nvidia.com/mig-") || name.ends_with(SHARED)) {
        "its GPUs are shared or cut into MIG devices: see docs/sizing.md#shared-gpus".to_owned()
    } else {
        "neither a device plugin nor a DRA driver offers its GPUs".to_owned()
    }
}
