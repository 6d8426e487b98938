//! `nodes`: the newest measurement of each node, the worst first, and the nodes without one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::ResourceSlice;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use perfval_api::Verdict;
use perfval_api::fleet::{NodePerformance, NodePerformanceStatus};
use perfval_report::FleetReport;
use serde_json::{Value, json};

use crate::args::{NodesArgs, Output};
use crate::draw::age;
use crate::error::Error;
use crate::output;
use crate::screen::Screen;
use crate::session::Session;
use crate::table::Table;

/// Label of nodes with GPUs, by NVIDIA's feature discovery.
const PRODUCT: &str = "nvidia.com/gpu.product";
/// End of the name of GPUs of a device plugin, such as `nvidia.com/gpu`.
const GPU: &str = "/gpu";
/// Driver of GPUs under Dynamic Resource Allocation.
const DRIVER: &str = "gpu.nvidia.com";

/// Lists nodes.
pub async fn run(screen: &mut Screen, session: &Session, args: &NodesArgs) -> Result<u8, Error> {
    let client = &session.client;
    let selected = ListParams::default().labels(args.selector.as_deref().unwrap_or_default());
    let measured: Api<NodePerformance> = Api::all(client.clone());
    let measured = measured.list(&ListParams::default()).await;
    let mut rows = measured
        .map_err(|error| Error::from_call("read NodePerformances", error))?
        .items;
    let nodes = Api::<Node>::all(client.clone()).list(&selected).await;
    let nodes = match nodes.map_err(|error| Error::from_call("read Nodes", error)) {
        Ok(nodes) => Some(nodes.items),
        Err(error) if args.selector.is_some() => return Err(error),
        Err(error) => {
            screen.note(&format!("Nodes that were never measured are not listed: {error}"));
            None
        }
    };
    if let Some(nodes) = &nodes {
        let known: BTreeSet<String> = nodes.iter().map(kube::ResourceExt::name_any).collect();
        // The garbage collector is some seconds behind a node that went.
        rows.retain(|row| known.contains(&row.name_any()));
    }
    rows.sort_by_cached_key(|row| (rank(row.status.as_ref()), row.name_any()));
    if let Some(path) = &args.html {
        let never = unmeasured((screen, client), nodes.as_deref(), &rows).await;
        let never = never.into_iter().map(|(node, why)| (node, why.to_owned()));
        let page = FleetReport::new(&rows, never.collect(), screen.now()).html();
        fs::write(path, page).map_err(Error::file(path))?;
        screen.say(&format!("{} is written\n", path.display()))?;
        return Ok(0);
    }
    match args.output {
        Output::Table | Output::Wide => {
            let never = unmeasured((screen, client), nodes.as_deref(), &rows).await;
            if rows.is_empty() && never.is_empty() {
                screen.note("No node has GPUs or a measurement.");
                return Ok(0);
            }
            let table = table(&rows, &never, args.output == Output::Wide, screen);
            screen.say(&table.on(screen.columns()))?;
        }
        Output::Name => {
            let names = rows
                .iter()
                .map(|row| format!("nodeperformance.perfvalidation.dev/{}\n", row.name_any()));
            screen.say(&names.collect::<String>())?;
        }
        Output::Json | Output::Yaml => {
            let items = rows.iter().map(printable).collect::<Result<Vec<_>, _>>()?;
            let list = json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items});
            let text = match args.output {
                Output::Yaml => output::yaml(&list)?,
                _ => output::json(&list)?,
            };
            screen.say(&text)?;
        }
    }
    Ok(0)
}

fn printable(row: &NodePerformance) -> Result<Value, Error> {
    let mut row = row.clone();
    row.metadata.managed_fields = None;
    serde_json::to_value(row).map_err(|error| Error::Render(error.to_string()))
}

/// Place of a node: misses first, then nodes without a reliable result, and in each group the largest loss.
fn rank(status: Option<&NodePerformanceStatus>) -> (u8, i64) {
    let Some(status) = status else {
        return (3, i64::MAX);
    };
    let group = match status.verdict {
        Verdict::Failed => 0,
        Verdict::Inconclusive => 1,
        _ => 2,
    };
    let losses = [
        status.percent_of_gate,
        status.percent_of_own_past,
        status.percent_of_peers,
    ];
    (group, losses.into_iter().flatten().min().unwrap_or(i64::MAX))
}

/// Nodes with GPUs and without a measurement, each with a visible obstacle; none where Nodes cannot be read.
async fn unmeasured(
    (screen, client): (&mut Screen, &Client),
    nodes: Option<&[Node]>,
    rows: &[NodePerformance],
) -> BTreeMap<String, &'static str> {
    let Some(nodes) = nodes else {
        return BTreeMap::new();
    };
    let published = published(client).await.unwrap_or_else(|error| {
        screen.note(&format!(
            "Nodes whose GPUs only a ResourceSlice shows may be missing: {error}"
        ));
        BTreeSet::new()
    });
    never_measured(nodes, rows, &published)
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
) -> BTreeMap<String, &'static str> {
    let measured = rows.iter().filter(|row| row.status.is_some());
    let measured: BTreeSet<String> = measured.map(kube::ResourceExt::name_any).collect();
    let nodes = nodes.iter().filter(|node| !measured.contains(&node.name_any()));
    let nodes = nodes.filter_map(|node| {
        let gpus = node.status.as_ref().and_then(|status| status.capacity.as_ref());
        let offers = gpus.is_some_and(|all| all.iter().any(|(name, amount)| name.ends_with(GPU) && amount.0 != "0"));
        let usable = offers || published.contains(&node.name_any());
        if !usable && !node.labels().contains_key(PRODUCT) {
            return None;
        }
        Some((node.name_any(), obstacle(node, usable)))
    });
    nodes.collect()
}

fn obstacle(node: &Node, usable: bool) -> &'static str {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions
        .into_iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let cordoned = node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true));
    if !ready {
        "the node is not ready"
    } else if cordoned {
        "the node is cordoned"
    } else if usable {
        "no run has measured it"
    } else {
        "neither a device plugin nor a DRA driver offers its GPUs"
    }
}

fn table(rows: &[NodePerformance], never: &BTreeMap<String, &'static str>, wide: bool, screen: &Screen) -> Table {
    let usual = ["RANK", "NODE", "VERDICT", "TOK/S", "OF-GATE", "OF-PAST", "MEASURED"];
    let more: &[&str] = if wide {
        &["OF-PEERS", "GPUS", "ENVIRONMENT", "VALIDATION"]
    } else {
        &[]
    };
    let head = usual.iter().chain(more).chain(&["REASON"]);
    let mut table = Table::headed(head.map(|&name| name.to_owned()));
    let percent = |value: Option<i64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value}%"));
    let number = |value: Option<i64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
    let measured = rows
        .iter()
        .filter_map(|row| Some((row.name_any(), row.status.as_ref()?)));
    for (place, (node, status)) in measured.enumerate() {
        let mut cells = vec![
            (place + 1).to_string(),
            node,
            status.verdict.as_str().to_owned(),
            number(status.output_tokens_per_second),
            percent(status.percent_of_gate),
            percent(status.percent_of_own_past),
            age(screen.now() - status.measured_at),
        ];
        if wide {
            let run = &status.validation;
            cells.extend([
                percent(status.percent_of_peers),
                number(status.gpu_count),
                status.environment.clone().unwrap_or_else(|| "-".to_owned()),
                format!("{}/{}", run.namespace, run.name),
            ]);
        }
        cells.push(status.reason.clone().unwrap_or_default());
        table.row(cells);
    }
    for (node, why) in never {
        let mut cells = vec!["-".to_owned(); usual.len() + more.len()];
        node.clone_into(&mut cells[1]);
        "never".clone_into(&mut cells[usual.len() - 1]);
        cells.push((*why).to_owned());
        table.row(cells);
    }
    table
}
