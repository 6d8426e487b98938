use maud::{Markup, html};
use perfval_verdict::frame::Outcome;
use perfval_verdict::trial::failure_text;

use super::parts::{head, or_dash, scrolling};
use crate::facts::{Facts, Trial};
use crate::words::{self, recorded};

pub(super) fn table(facts: &Facts) -> Markup {
    if facts.trials.is_empty() {
        return html! { p { "No trial was run." } };
    }
    let table = html! {
        table {
            caption { "Every trial of the run; the margin is that of its worst enforced gate on an average" }
            (head(&["#Trial", "Outcome", "#Tokens/s", "#TTFT p99 (ms)", "#Failed requests", "#Margin", "#Took", "Causes"]))
            tbody { @for trial in &facts.trials { (row(trial)) } }
        }
    };
    let trials = facts.trials.iter();
    let unread = trials.filter_map(|trial| match &trial.payload.as_ref()?.record.outcome {
        Outcome::Failure(failure) => Some((trial.status.number, failure_text(failure))),
        Outcome::Report(_) => None,
    });
    html! {
        (scrolling("Trials", &table))
        @for (number, why) in unread { p { "Trial " (number) " left nothing to judge: " (why) } }
    }
}

fn row(trial: &Trial) -> Markup {
    let status = &trial.status;
    let outcome = words::outcome(status.outcome);
    let began = recorded(status.started_at);
    let took = began
        .zip(status.completed_at)
        .map(|(began, ended)| words::duration(ended - began));
    html! {
        tr {
            th.number scope="row" { (status.number) @if status.soak { span.sub { "soak" } } }
            td { span.result.(outcome.to_lowercase()) { (sign(outcome)) " " (outcome) } }
            td.number { (or_dash(status.throughput.as_deref())) }
            td.number { (or_dash(status.ttft_p99_ms.as_deref())) }
            td.number { (or_dash(words::errors(status))) }
            td.number { (or_dash(status.margin_percent.as_deref().map(words::signed))) }
            td.number { (or_dash(took)) }
            td { (status.causes.join(", ")) @if let Some(from) = &trial.from { span.sub { (from) } } }
        }
    }
}

/// A sign for each outcome, so that colour is not alone.
pub(super) fn sign(outcome: &str) -> &'static str {
    match outcome {
        "Pass" => "✓",
        "Miss" => "✗",
        "Invalid" => "◻",
        _ => "…",
    }
}
