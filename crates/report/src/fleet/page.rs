//! The page itself.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use perfval_api::Verdict;
use perfval_api::fleet::{GpuPerformance, NodePerformanceStatus};
use perfval_api::text::number_of;
use perfval_fleet::margin::own_past_margin;

use super::data::{FleetEnvironment, FleetReport, digest, percent_of_median};
use super::outliers::{self, incomplete};
use crate::html::parts::{head, or_dash, scrolling};
use crate::html::{Section, document};

impl FleetReport {
    /// One self-contained page: no network, light and dark, for screen, paper and screen reader.
    pub fn html(&self) -> String {
        let failed = self.count(Verdict::Failed);
        let title = format!("{} measured, {failed} failed", number_of_nodes(self.measured.len()));
        let environments = self.environments();
        let header = html! {
            header {
                p.kind { "Newest measurement of each node" }
                h1 { (title) }
                (coverage(self))
            }
        };
        let sections = [
            Section("gpus", "GPUs of each node", heat_map(self, &environments)),
            Section("nodes", "Nodes, the worst first", ranking(self)),
            Section("outliers", "Outliers", incomplete(self, &outliers::outliers(self))),
            Section(
                "difference",
                "How outliers differ from nodes that pass",
                incomplete(self, &outliers::difference(self)),
            ),
            Section(
                "policies",
                "Coverage and cost",
                incomplete(self, &outliers::policies(self)),
            ),
            Section("environments", "Environments", compared(&environments)),
            Section("never", "Never measured", never(self)),
        ];
        let footer = html! {
            "Written by perfvalidation " (env!("CARGO_PKG_VERSION")) " at " (self.now.format("%Y-%m-%d %H:%M UTC"))
            ". Every number is of the status of a NodePerformance or of a PerfValidationPolicy."
        };
        document(&title, &header, &sections, &footer)
    }
}

fn number_of_nodes(count: usize) -> String {
    number_of(i64::try_from(count).unwrap_or(i64::MAX), "node")
}

fn coverage(fleet: &FleetReport) -> Markup {
    let measured = fleet.measured.len();
    let all = measured + fleet.unparsed + fleet.never.len();
    let oldest = fleet.measured.iter().map(|(_, status)| status.measured_at).min();
    html! {
        dl.facts {
            div { dt { "Passed" } dd { (fleet.count(Verdict::Passed)) } }
            div { dt { "Failed" } dd { (fleet.count(Verdict::Failed)) } }
            div { dt { "Inconclusive" } dd { (fleet.count(Verdict::Inconclusive)) } }
            div { dt { "Measured" } dd {
                @if fleet.properties.is_none() { (number_of_nodes(measured)) } @else { (measured) " of " (all) " nodes with GPUs" }
            } }
            @if fleet.unparsed > 0 { div { dt { "Measurement cannot be parsed" } dd { (fleet.unparsed) } } }
            @if let Some(oldest) = oldest { div { dt { "Oldest measurement" } dd { (age(fleet, oldest)) " ago" } } }
        }
    }
}

/// One row per node, one cell per GPU.
fn heat_map(fleet: &FleetReport, environments: &[FleetEnvironment<'_>]) -> Markup {
    let medians: BTreeMap<&str, i64> = environments
        .iter()
        .filter_map(|environment| Some((environment.digest, environment.token_microseconds?)))
        .collect();
    let rows: Vec<(&String, &NodePerformanceStatus, i64)> = fleet
        .measured
        .iter()
        .filter_map(|(node, status)| Some((node, status, *medians.get(digest(status))?)))
        .collect();
    if rows.is_empty() {
        return html! { p.absent { "No three GPUs of one environment reported their time from token to token, so no median exists." } };
    }
    let table = html! {
        table.heat {
            caption { "Decode speed of each GPU (percent of the median of all GPUs in the same environment)" }
            tbody { @for (node, status, median) in rows {
                tr {
                    th scope="row" { (node) }
                    @for gpu in in_order(status) { (cell(gpu, median)) }
                }
            } }
        }
    };
    html! {
        p.legend { "The numbers compare single measurements, which differ by some percent between healthy GPUs. A low number is a reason to measure again, not a proof." }
        (scrolling("GPUs of each node", &table))
    }
}

/// The object lists the slowest GPU first; the page keeps each GPU in its place from one page to the next.
fn in_order(status: &NodePerformanceStatus) -> Vec<&GpuPerformance> {
    let mut gpus: Vec<&GpuPerformance> = status.gpus.iter().collect();
    gpus.sort_by(|a, b| a.uuid.cmp(&b.uuid));
    gpus
}

fn cell(gpu: &GpuPerformance, median: i64) -> Markup {
    let percent = percent_of_median(gpu, median);
    let class = match percent {
        None => "number",
        Some(..90) => "number heat-0",
        Some(90..95) => "number heat-1",
        Some(95..98) => "number heat-2",
        Some(_) => "number heat-3",
    };
    html! { td class=(class) title=(gpu.uuid) { (or_dash(percent)) } }
}

fn ranking(fleet: &FleetReport) -> Markup {
    let percent = |value: Option<i64>| value.map(|value| format!("{value} %"));
    let table = html! {
        table {
            caption { "Percentages are of the tightest gate, of the GPU's own earlier runs (± the distance from 100 % that about 90 of 100 healthy runs keep, 70 on very noisy hosts), and of the node's other GPUs" }
            (head(&["Node", "Verdict", "#Tokens/s", "#Of gate", "#Own past", "#Peers", "#Measured", "Reason", "Validation"]))
            tbody { @for (node, status) in &fleet.measured {
                tr {
                    th scope="row" { (node) }
                    td class={ "result " (class_of(status.verdict)) } { (status.verdict.as_str()) }
                    td.number { (or_dash(status.output_tokens_per_second)) }
                    td.number { (or_dash(percent(status.percent_of_gate))) }
                    td.number { (or_dash(format_own_past(status))) }
                    td.number { (or_dash(percent(status.percent_of_peers))) }
                    td.number { (age(fleet, status.measured_at)) }
                    td { (or_dash(status.reason.as_deref())) }
                    td { (status.validation.namespace) "/" (status.validation.name) }
                }
            } }
        }
    };
    scrolling("Nodes", &table)
}

/// With the margin within which healthy runs vary, where the past is known.
fn format_own_past(status: &NodePerformanceStatus) -> Option<String> {
    let percent = status.percent_of_own_past?;
    let margin = own_past_margin(status).map_or_else(String::new, |margin| format!(" ± {margin:.0}"));
    Some(format!("{percent}{margin} %"))
}

fn class_of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "pass",
        Verdict::Failed => "miss",
        _ => "invalid",
    }
}

fn compared(environments: &[FleetEnvironment<'_>]) -> Markup {
    let table = html! {
        table {
            caption { "Nodes with equal model, revision, image, settings, GPUs, driver, Dynamo and AIPerf. Compare only within one environment" }
            (head(&["Environment", "GPU", "#Nodes", "Verdicts", "#Median tokens/s", "#Median µs per token"]))
            tbody { @for environment in environments {
                tr {
                    th scope="row" { (or_dash(Some(environment.digest).filter(|digest| !digest.is_empty()))) }
                    td { (or_dash(environment.product)) }
                    td.number { (environment.nodes) }
                    td { (verdicts(environment)) }
                    td.number { (or_dash(environment.throughput)) }
                    td.number { (or_dash(environment.token_microseconds)) }
                }
            } }
        }
    };
    scrolling("Environments", &table)
}

fn verdicts(environment: &FleetEnvironment<'_>) -> String {
    let counted = environment.verdicts.iter();
    let counted: Vec<String> = counted.map(|(verdict, count)| format!("{count} {verdict}")).collect();
    counted.join(", ")
}

fn never(fleet: &FleetReport) -> Markup {
    if fleet.properties.is_none() {
        return html! { p.absent { "Nodes were not read, so those without a measurement are unknown." } };
    }
    if fleet.never.is_empty() {
        return html! { p { "Every node with GPUs that could be listed has a measurement." } };
    }
    let table = html! {
        table {
            thead { tr { th scope="col" { "Node" } th scope="col" { "Obstacle" } } }
            tbody { @for (node, why) in &fleet.never { tr { th scope="row" { (node) } td { (why) } } } }
        }
    };
    scrolling("Never measured", &table)
}

/// `5m`, `3h` or `2d`.
fn age(fleet: &FleetReport, at: DateTime<Utc>) -> String {
    let minutes = (fleet.now - at).num_minutes().max(0);
    match minutes {
        ..60 => format!("{minutes}m"),
        60..2880 => format!("{}h", minutes / 60),
        _ => format!("{}d", minutes / 1440),
    }
}
