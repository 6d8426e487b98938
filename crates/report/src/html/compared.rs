use maud::{Markup, html};
use perfval_api::EarlierRun;
use perfval_verdict::history::in_words;

use super::parts::{head, or_dash, scrolling};
use crate::environment;
use crate::facts::Facts;
use crate::words;

pub(super) fn environment(facts: &Facts) -> Markup {
    let known = environment::known(facts);
    let comparison = facts.status.state.comparison.as_ref();
    html! {
        @if known.is_empty() { p { "Nothing is recorded of what the run ran on." } } @else {
            (scrolling("Environment", &html! {
                table {
                    caption { "What the run ran on" }
                    tbody { @for fact in &known { tr { th scope="row" { (fact.label) } td { (fact.value) } } } }
                }
            }))
        }
        h3 { "Against an earlier run" }
        @match comparison {
            Some(comparison) => {
                p { (in_words(comparison)) }
                @if comparison.differs.len() > 1 { ul { @for difference in &comparison.differs { li { (difference) } } } }
            },
            None => p { "No comparison with an earlier run is recorded." },
        }
        @if !facts.status.state.history.is_empty() {
            (scrolling("Earlier runs", &html! {
                table {
                    caption { "Earlier runs, newest first; equal digests of the environment may be compared" }
                    (head(&["#Run", "Verdict", "Reason", "#Tokens/s", "#TTFT p99 (ms)", "Environment", "Over at", "Slow GPUs"]))
                    tbody { @for entry in &facts.status.state.history { (row(entry)) } }
                }
            }))
        }
    }
}

fn row(entry: &EarlierRun) -> Markup {
    html! {
        tr {
            th.number scope="row" { (entry.run) }
            td { @match entry.verdict { Some(verdict) => (verdict.as_str()), None => "interrupted" } }
            td { (entry.reason) }
            td.number { (or_dash(entry.throughput.as_deref())) }
            td.number { (or_dash(entry.ttft_p99_ms.as_deref())) }
            td { (or_dash(entry.environment.as_deref())) }
            td { (words::time(entry.completed_at)) }
            td { (entry.slow_gpus.join(", ")) }
        }
    }
}
