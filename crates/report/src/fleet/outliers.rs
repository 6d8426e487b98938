//! Sections about policies and their outliers.

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use perfval_api::fleet::{Outlier, OutlierConfidence, PolicyNodes};

use super::data::FleetReport;
use crate::html::parts::{head, or_dash, scrolling};

/// A section that lacks policies, with their number.
pub(super) fn incomplete(fleet: &FleetReport, section: &Markup) -> Markup {
    html! {
        @if fleet.unparsed_policies > 0 {
            p.absent { "Policies that could not be parsed, and are missing here with their outliers: " (fleet.unparsed_policies) "." }
        }
        (section)
    }
}

/// Outliers of all policies, and the number of those that are a reason to take a node out of service.
pub(super) fn outliers(fleet: &FleetReport) -> Markup {
    // A new policy has a status before its nodes were read.
    if fleet.policies.values().all(|status| status.nodes.is_none()) {
        return html! { p.absent { "No comparison by a PerfValidationPolicy was read." } };
    }
    let found: Vec<&Outlier> = fleet.policies.values().flat_map(|status| &status.outliers).collect();
    if found.is_empty() {
        return html! { p { "No node is an outlier" @if fleet.unparsed_policies > 0 { " by the other policies" } "." } };
    }
    let acts = |outlier: &&&Outlier| outlier.confidence == Some(OutlierConfidence::Actionable);
    let out = found.iter().filter(acts).count();
    let word = |confidence: OutlierConfidence| -> &'static str { confidence.into() };
    let table = html! {
        table {
            caption { "Percentages are of the gate, of the GPU's earlier runs, or of the peers: see Comparison" }
            (head(&["Node", "GPU", "Comparison", "Confidence", "#Result", "Validation"]))
            tbody { @for outlier in &found { tr {
                th scope="row" { (outlier.node) }
                td { (outlier.gpu.as_deref().unwrap_or("all")) }
                td { (outlier.reason.as_str()) }
                td { (or_dash(outlier.confidence.map(word))) }
                td.number { (or_dash(outlier.percent.map(|percent| format!("{percent} %")))) }
                td { (outlier.validation) }
            } } }
        }
    };
    html! {
        p.legend {
            "Reasons to take a node out of service: " (out) " of " (found.len()) " outliers. The operator only reports them: it taints no node. "
            "Each policy lists its worst 20."
        }
        (scrolling("Outliers", &table))
    }
}

/// Properties that outliers share.
pub(super) fn difference(fleet: &FleetReport) -> Markup {
    let found = fleet.difference();
    if fleet.properties.is_none() {
        return html! { p.absent { "Nodes were not read, so their labels and versions were not compared." } };
    }
    if found.odd < 2 || found.passing == 0 {
        return html! { p.absent { "Too few nodes: a comparison needs two outliers and a node that passes." } };
    }
    if found.properties.is_empty() {
        return html! { p { "No label or version is more frequent among outliers than among nodes that pass." } };
    }
    let table = html! {
        table {
            (head(&["Label or version", "Value", "#Outliers", "#Nodes that pass"]))
            tbody { @for property in &found.properties { tr {
                th scope="row" { (property.name) }
                td { (property.value) }
                td.number { (property.odd) " of " (found.odd) }
                td.number { (property.passing) " of " (found.passing) }
            } } }
        }
    };
    html! {
        p.legend { "Failed nodes and confirmed outliers, beside the other nodes that pass. With few outliers a difference may be chance." }
        (scrolling("Difference from nodes that pass", &table))
    }
}

/// Coverage and cost of each policy.
pub(super) fn policies(fleet: &FleetReport) -> Markup {
    if fleet.policies.is_empty() {
        return html! { p.absent { "No status of a PerfValidationPolicy was read." } };
    }
    let time = |at: DateTime<Utc>| at.format("%Y-%m-%d %H:%M UTC").to_string();
    let table = html! {
        table {
            (head(&["Policy", "#Nodes", "#Fresh", "#Stale", "#Never measured", "#Running", "#Busy", "#GPU minutes today", "All fresh at"]))
            tbody { @for (name, status) in &fleet.policies {
                @let count = |number: fn(PolicyNodes) -> i64| or_dash(status.nodes.map(number));
                tr {
                    th scope="row" { (name) }
                    td.number { (count(|nodes| nodes.selected)) }
                    td.number { (count(|nodes| nodes.fresh)) }
                    td.number { (count(|nodes| nodes.stale)) }
                    td.number { (count(|nodes| nodes.never_measured)) }
                    td.number { (count(|nodes| nodes.running)) }
                    td.number { (count(|nodes| nodes.busy)) }
                    td.number { (or_dash(status.gpu_minutes_today)) }
                    td { (or_dash(status.expected_completion_time.map(time))) }
                }
            } }
        }
    };
    scrolling("Policies", &table)
}
