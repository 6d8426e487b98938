//! `nodes`: the newest measurement of each node, the worst first, and the nodes without one.

mod never;
mod policies;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use kube::core::DeserializeGuard;
use perfval_api::Verdict;
use perfval_api::fleet::{NodePerformance, NodePerformanceStatus, OutlierConfidence};
use perfval_fleet::margin::own_past_margin;
use perfval_report::FleetReport;

use never::unmeasured;
use policies::Policies;

use crate::args::{NodesArgs, Output};
use crate::draw::age;
use crate::error::Error;
use crate::listed::keep_readable;
use crate::output;
use crate::screen::Screen;
use crate::session::Session;
use crate::table::{Table, dash};

const READ: &str = "read NodePerformances";

/// Lists nodes.
pub async fn run(screen: &mut Screen, session: &Session, args: &NodesArgs) -> Result<u8, Error> {
    let client = &session.client;
    let selected = ListParams::default().labels(args.selector.as_deref().unwrap_or_default());
    let measured: Api<DeserializeGuard<NodePerformance>> = Api::all(client.clone());
    let measured = measured.list(&ListParams::default()).await;
    let mut listed = measured.map_err(|error| Error::from_call(READ, error))?.items;
    let nodes = Api::<Node>::all(client.clone()).list(&selected).await;
    let mut gap = 0;
    let nodes = match nodes.map_err(|error| Error::from_call("read Nodes", error)) {
        Ok(nodes) => Some(nodes.items),
        Err(error) if args.selector.is_some() => return Err(error),
        Err(error) => {
            screen.note(&format!("Nodes that were never measured are not listed: {error}"));
            gap = error.code_of_gap();
            None
        }
    };
    // Other outputs show no outliers.
    let shows_outliers = matches!(args.output, Output::Table | Output::Wide);
    let mut policies = if shows_outliers {
        Policies::read(screen, session).await
    } else {
        Policies::default()
    };
    policies.note_cut_off(screen);
    if let Some(nodes) = &nodes {
        let known: BTreeSet<String> = nodes.iter().map(kube::ResourceExt::name_any).collect();
        // The garbage collector is some seconds behind a node that went.
        listed.retain(|row| known.contains(&row.name_any()));
        policies.retain(&known);
    }
    let unparsed = listed.iter().filter(|row| row.0.is_err());
    let unparsed: BTreeSet<String> = unparsed.map(kube::ResourceExt::name_any).collect();
    let (mut rows, code) = keep_readable(screen, READ, &session.flags, listed);
    let code = code.max(policies.code);
    rows.sort_by_cached_key(|row| {
        (
            rank(row.status.as_ref(), policies.confidence(&row.name_any())),
            row.name_any(),
        )
    });
    if let Some(text) = output::objects(&rows, true, args.output)? {
        screen.print(&text)?;
        return Ok(code);
    }
    let (mut never, unknown) = unmeasured((screen, client), nodes.as_deref(), &rows, &policies).await;
    let code = code.max(gap).max(unknown);
    never.retain(|node, _| !unparsed.contains(node));
    if let Some(path) = &args.html {
        let read_policies = (policies.all.as_slice(), policies.unparsed);
        let read_rows = (rows.as_slice(), unparsed.len());
        let page = FleetReport::new(read_rows, never, read_policies, nodes.as_deref(), screen.now()).html();
        fs::write(path, page).map_err(Error::file(path))?;
        screen.print(&format!("{} is written\n", path.display()))?;
        return Ok(code);
    }
    if rows.is_empty() && never.is_empty() {
        if unparsed.is_empty() {
            screen.note("No node has GPUs or a measurement.");
        }
        return Ok(code);
    }
    let table = table((&rows, &policies), &never, args.output == Output::Wide, screen);
    screen.print(&table.on(screen.columns()))?;
    Ok(code)
}

/// Place of a node: misses first, then confirmed outliers, nodes without a reliable result, and suspected outliers. In each group the
/// largest loss comes first.
fn rank(status: Option<&NodePerformanceStatus>, confidence: Option<OutlierConfidence>) -> (u8, i64) {
    let Some(status) = status else {
        return (5, i64::MAX);
    };
    let group = match (status.verdict, confidence) {
        (Verdict::Failed, _) => 0,
        (_, Some(OutlierConfidence::Confirmed | OutlierConfidence::Actionable)) => 1,
        (Verdict::Inconclusive, _) => 2,
        (_, Some(OutlierConfidence::Suspected)) => 3,
        _ => 4,
    };
    let losses = [
        status.percent_of_gate,
        status.percent_of_own_past,
        status.percent_of_peers,
    ];
    (group, losses.into_iter().flatten().min().unwrap_or(i64::MAX))
}

fn table(
    (rows, policies): (&[NodePerformance], &Policies),
    never: &BTreeMap<String, String>,
    wide: bool,
    screen: &Screen,
) -> Table {
    let usual = [
        "RANK", "NODE", "VERDICT", "TOK/S", "OF-GATE", "OF-PAST", "OUTLIER", "MEASURED",
    ];
    let more: &[&str] = if wide {
        &["OF-PEERS", "GPUS", "ENVIRONMENT", "VALIDATION"]
    } else {
        &[]
    };
    let head = usual.iter().chain(more).chain(&["REASON"]);
    let mut table = Table::new(head.copied());
    let percent = |value: Option<i64>| dash(value.map(|value| format!("{value}%")));
    let measured = rows
        .iter()
        .filter_map(|row| Some((row.name_any(), row.status.as_ref()?)));
    for (place, (node, status)) in measured.enumerate() {
        let margin = own_past_margin(status).map_or_else(String::new, |margin| format!(" ±{margin:.0}"));
        let outlier = dash(policies.words(&node));
        let mut cells = vec![
            (place + 1).to_string(),
            node,
            status.verdict.as_str().to_owned(),
            dash(status.output_tokens_per_second),
            percent(status.percent_of_gate),
            percent(status.percent_of_own_past) + &margin,
            outlier,
            age(screen.now() - status.measured_at),
        ];
        if wide {
            let run = &status.validation;
            cells.extend([
                percent(status.percent_of_peers),
                dash(status.gpu_count),
                dash(status.environment.as_ref()),
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
        cells.push(why.clone());
        table.row(cells);
    }
    table
}
