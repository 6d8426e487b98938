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

/// The sections below the verdict, by anchor and heading.
const SECTIONS: [(&str, &str); 8] = [
    ("trials", "Trials"),
    ("rule", "How the trials became a verdict"),
    ("throughput", "Throughput over time"),
    ("latency", "Latency"),
    ("workers", "Workers side by side"),
    ("gpus", "GPUs"),
    ("environment", "Environment and earlier runs"),
    ("reproduce", "How to reproduce it"),
];

pub(crate) fn page(facts: &Facts) -> String {
    let timeline = Timeline::new(facts);
    let title = format!("{}: {}", facts.title(), words::verdict(facts));
    let body = html! {
        (verdict::header(facts))
        nav aria-label="Contents" {
            @for (anchor, heading) in SECTIONS { a href={ "#" (anchor) } { (heading) } " " }
        }
        main {
            (section(0, &trials::table(facts)))
            (section(1, &rule::path_of_the_run(facts)))
            (section(2, &over_time::throughput(&timeline)))
            (section(3, &html! { (distributions::all(facts)) (requests::over_time(facts)) (over_time::latency(&timeline)) }))
            (section(4, &workers::side_by_side(facts, &timeline)))
            (section(5, &workers::gpus(facts, &timeline)))
            (section(6, &compared::environment(facts)))
            (section(7, &reproduce::steps(facts)))
        }
        footer { p { "Written by perfvalidation " (env!("CARGO_PKG_VERSION")) ". Every number is of the status or of the results of this run." } }
    };
    document(&title, &body)
}

/// A page around its body. A name of the cluster cannot reorder its text.
pub(crate) fn document(title: &str, body: &Markup) -> String {
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
            body { (body) }
        }
    };
    page.into_string().replace(reorders, "")
}

fn section(index: usize, content: &Markup) -> Markup {
    let (anchor, heading) = SECTIONS[index];
    html! {
        section id=(anchor) aria-labelledby={ (anchor) "-heading" } {
            h2 id={ (anchor) "-heading" } { (heading) }
            (content)
        }
    }
}
