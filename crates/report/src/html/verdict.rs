use maud::{Markup, html};
use perfval_api::{Finding, GateResult, GateStatus, Verdict};
use perfval_verdict::trials::claim;

use super::parts::{or_dash, scrolling};
use crate::environment;
use crate::facts::Facts;
use crate::words::{self, recorded};

/// Entries of the list at the top, by their names in the environment.
const FIRST: [&str; 5] = ["run", "node", "gpuProduct", "gpus", "model"];

/// The first screen: verdict, why, gates.
pub(super) fn header(facts: &Facts) -> Markup {
    let status = &facts.status;
    let (class, icon) = look(status.verdict);
    html! {
        header {
            p.kind { "Performance validation" }
            h1 { (facts.title()) }
            div.verdict.(class) {
                svg.icon viewBox="0 0 24 24" aria-hidden="true" { path d=(icon) {} }
                p {
                    strong { (words::verdict(facts)) }
                    @if let Some(reason) = &status.reason { " " span.reason { (reason) } }
                }
                @if let Some(message) = &status.message { p.message { (message) } }
            }
            @for note in &facts.notes { p.warning { strong { "Note: " } (note) } }
            @if !status.diagnosis.is_empty() {
                h2 { "Findings" }
                ul.findings { @for found in &status.diagnosis { (finding(found)) } }
            }
            h2 { "Gates" }
            (gates(facts))
            (key_facts(facts))
        }
    }
}

/// Class and icon of a verdict: a tick, a cross, a question mark, an exclamation mark, a stroke or an hourglass.
fn look(verdict: Option<Verdict>) -> (&'static str, &'static str) {
    match verdict {
        Some(Verdict::Passed) => ("passed", "M4 12.5l5.5 5.5L20 6"),
        Some(Verdict::Failed) => ("failed", "M5 5l14 14M19 5L5 19"),
        Some(Verdict::Inconclusive) => ("inconclusive", "M8 8.5a4 4 0 1 1 5.5 3.7c-1 .5-1.5 1-1.5 2.3M12 19v.4"),
        Some(Verdict::Error) => ("error", "M12 4v11M12 19v.4"),
        Some(Verdict::Skipped) => ("skipped", "M5 12h14"),
        None => ("running", "M6 4h12L12 12 18 20H6L12 12z"),
    }
}

fn finding(finding: &Finding) -> Markup {
    let severity = format!("{:?}", finding.severity);
    html! {
        li.(severity.to_lowercase()) {
            p { span.severity { (severity) } " " strong { (finding.cause) } }
            p { (finding.evidence) }
            p { strong { "What to do: " } (finding.remedy) }
        }
    }
}

fn gates(facts: &Facts) -> Markup {
    let gates = &facts.status.gates;
    if gates.is_empty() {
        return html! { p { "No gate was judged." } };
    }
    let table = html! {
        table {
            caption { "Each gate in the deciding trial, and how far it was from its threshold" }
            thead { tr {
                th scope="col" { "Gate" } th scope="col" { "Result" } th.number scope="col" { "Observed" }
                th.number scope="col" { "Threshold" } th.number scope="col" { "Margin" } td.bar {}
            } }
            tbody { @for gate in gates { (row(facts, gate)) } }
        }
    };
    scrolling("Gates", &table)
}

fn row(facts: &Facts, gate: &GateStatus) -> Markup {
    let result = format!("{:?}", gate.result);
    let unit = words::unit(facts, gate);
    let metric = facts.gate(&gate.name).map(|gate| {
        let statistic = (!gate.metric.has_an_average_only()).then(|| format!(" {:?}", gate.statistic));
        format!("{}{}", gate.metric.as_str(), statistic.unwrap_or_default())
    });
    let threshold = facts.status.state.thresholds.get(&gate.name);
    let as_written = threshold.filter(|threshold| **threshold != gate.effective);
    html! {
        tr {
            th scope="row" { (gate.name) @if let Some(metric) = metric { span.sub { (metric) } } }
            td { span.result.(result.to_lowercase()) { (sign(gate.result)) " " (result) } }
            td.number { (or_dash(gate.observed.as_deref())) @if gate.observed.is_some() { " " (unit) } }
            td.number { (words::sign(facts, gate)) " " (gate.effective) " " (unit) @if let Some(threshold) = as_written { span.sub { "as written: " (threshold) } } }
            td.number { (or_dash(gate.margin_percent.as_deref().map(words::signed))) }
            td.bar { @if let Some(margin) = &gate.margin_percent { (bar(margin, &result)) } }
        }
    }
}

fn sign(result: GateResult) -> &'static str {
    match result {
        GateResult::Met => "✓",
        GateResult::Missed => "✗",
        GateResult::Warned => "!",
        GateResult::Unmeasured => "–",
    }
}

/// The margin as a bar to the right of the threshold or to the left; the text beside it has the same content.
fn bar(margin: &str, result: &str) -> Markup {
    let percent = margin.parse::<f64>().unwrap_or_default().clamp(-100.0, 100.0);
    let (from, length) = (60.0 + percent.min(0.0) * 0.6, percent.abs() * 0.6);
    html! {
        svg.margin viewBox="0 0 120 14" aria-hidden="true" {
            rect class=(result.to_lowercase()) x=(format!("{from:.1}")) y="3" width=(format!("{length:.1}")) height="8" {}
            path.threshold d="M60 0v14" {}
        }
    }
}

/// Change that a pass rules out. The distances of the trials are in the order of the gates of the run.
fn claimed(facts: &Facts) -> Option<String> {
    let passed = facts.status.verdict == Some(Verdict::Passed);
    let spec = facts.spec.as_ref().filter(|_| passed && !facts.edited)?;
    claim(spec, &facts.status).map(|claim| claim.in_words())
}

fn key_facts(facts: &Facts) -> Markup {
    let run = facts.status.run.as_ref();
    let began = run.and_then(|run| recorded(run.started_at));
    let length = began.and_then(|began| Some(words::duration(run?.completed_at? - began)));
    let known = environment::known(facts);
    html! {
        dl.facts {
            @for fact in known.iter().filter(|fact| FIRST.contains(&fact.key)) { div { dt { (fact.label) } dd { (fact.value) } } }
            div { dt { "Trials" } dd { (words::tally(facts)) } }
            @if let Some(began) = began { div { dt { "Began" } dd { (words::time(began)) } } }
            @if let Some(length) = length { div { dt { "Took" } dd { (length) } } }
            @if let Some(claim) = claimed(facts) { div { dt { "Rules out" } dd { (claim) } } }
        }
    }
}
