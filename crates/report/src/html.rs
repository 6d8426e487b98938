//! One self-contained page.

mod compared;
mod distributions;
mod over_time;
pub(crate) mod parts;
mod reproduce;
mod requests;
mod rule;
mod trials;
mod verdict;
mod workers;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use perfval_api::text::reorders;

use crate::facts::Facts;
use crate::timeline::Timeline;
use crate::words;

const STYLE: &str = include_str!("html/style.css");
/// Blocks every fetch and every script, even if a name of the cluster contains one.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

pub(crate) fn page(facts: &Facts) -> String {
    let timeline = Timeline::new(facts);
    let latency = html! { (distributions::all(facts)) (requests::over_time(facts)) (over_time::latency(&timeline)) };
    let sections = [
        Section("trials", "Trials", trials::table(facts)),
        Section("rule", "How the trials became a verdict", rule::path_of_the_run(facts)),
        Section("throughput", "Throughput over time", over_time::throughput(&timeline)),
        Section("latency", "Latency", latency),
        Section(
            "workers",
            "Workers side by side",
            workers::side_by_side(facts, &timeline),
        ),
        Section("gpus", "GPUs", workers::gpus(facts, &timeline)),
        Section(
            "environment",
            "Environment and earlier runs",
            compared::environment(facts),
        ),
        Section("reproduce", "How to reproduce it", reproduce::steps(facts)),
    ];
    let footer = html! {
        "Written by perfvalidation " (env!("CARGO_PKG_VERSION")) ". Every number is of the status or of the results of this run."
    };
    let title = format!("{}: {}", facts.title(), words::verdict(facts));
    document(&title, &verdict::header(facts), &sections, &footer)
}

/// Part of a page: anchor, heading and content.
pub(crate) struct Section<'a>(pub(crate) &'a str, pub(crate) &'a str, pub(crate) Markup);

/// A page with its parts. A name of the cluster cannot reorder its text.
pub(crate) fn document(title: &str, header: &Markup, sections: &[Section<'_>], footer: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "perfvalidation " (env!("CARGO_PKG_VERSION")) };
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (header)
                nav aria-label="Contents" {
                    @for Section(anchor, heading, _) in sections { a href={ "#" (anchor) } { (heading) } " " }
                }
                main {
                    @for Section(anchor, heading, content) in sections {
                        section id=(anchor) aria-labelledby={ (anchor) "-heading" } {
                            h2 id={ (anchor) "-heading" } { (heading) }
                            (content)
                        }
                    }
                }
                footer { p { (footer) } }
            }
        }
    };
    page.into_string().replace(reorders, "")
}
