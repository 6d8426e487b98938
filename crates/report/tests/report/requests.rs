//! What is drawn of single requests, wherever they were read.

use std::collections::BTreeSet;

use perfval_report::{Export, RequestTimes, RunReport};
use perfval_verdict::gate::Share;
use serde_json::json;

use super::recorded::{self, record, requests};
use super::report;
use super::sources::{asking, export};

const TITLES: [&str; 3] = ["Time to first token", "Inter-token latency", "Request latency"];

/// A page of as many trials of AIPerf's exports, each with this record of requests.
fn of_exports(trials: usize, all: &RequestTimes) -> String {
    let bytes = export("aiperf-success.json");
    let one = |name| Export {
        name,
        bytes: &bytes,
        requests: Some(all.clone()),
    };
    let exports: Vec<Export<'_>> = ["1.json", "2.json", "3.json"]
        .into_iter()
        .take(trials)
        .map(one)
        .collect();
    let mut object = asking("Sequential");
    object.spec.trials = serde_json::from_value(json!({"rule": "All", "max": trials})).expect("trials");
    let share = Some(Share { gpus: 1, node_gpus: 8 });
    RunReport::from_exports(&object, share, &exports)
        .expect("a report")
        .html()
}

/// The drawing with this caption.
fn figure<'a>(page: &'a str, caption: &str) -> &'a str {
    let all = page.split("<figure>").skip(1);
    let mut named = all.filter(|figure| figure.starts_with(&format!("<figcaption>{caption}</")));
    let found = named.next().unwrap_or_else(|| panic!("{caption} is drawn"));
    found.split("</figure>").next().expect("its end")
}

/// The lines of a drawing, as what stands in the page.
fn lines(figure: &str) -> Vec<&str> {
    let all = figure.split("<path class=\"line ").skip(1);
    all.filter_map(|line| line.split("></path>").next()).collect()
}

#[test]
fn every_request_of_large_exports_is_drawn_and_the_page_stays_below_a_megabyte() {
    let page = of_exports(3, &requests(10_000));
    assert!(page.len() < 1 << 20, "{} bytes", page.len());
    for (title, said) in TITLES.into_iter().zip([
        "trial 3: median 110 ms, p90 150 ms, p99 159 ms",
        "trial 1: median 7.53 ms, p90 7.94 ms, p99 8.03 ms",
        "trial 2: median 532 ms, p90 573 ms, p99 582 ms",
    ]) {
        let figure = figure(&page, title);
        assert!(figure.contains(said), "{said}: {figure}");
        let shapes: BTreeSet<&str> = lines(figure)
            .iter()
            .filter_map(|line| line.split(" d=").nth(1))
            .collect();
        assert_eq!(shapes.len(), 3, "{title}: three lines, each its own");
    }
    assert!(page.contains("began in each second of the measured phase"));
    let long = of_exports(1, &requests(13_000));
    assert!(long.contains("began in each 2 s of the measured phase"), "130 s");
}

#[test]
fn a_run_in_a_cluster_is_drawn_as_its_export_is() {
    let (run, exports) = (recorded::with_requests(), of_exports(2, &requests(3000)));
    let page = report(&run).html();
    for title in TITLES {
        let in_cluster = lines(figure(&page, title));
        assert_eq!(in_cluster.len(), 3, "{title}");
        assert_eq!(in_cluster, lines(figure(&exports, title)), "{title}");
        let cdf = format!("{title}: share of requests at most so long");
        let points = |page| lines(figure(page, &cdf)).first().map(|line| line.matches('L').count());
        assert_eq!(
            points(&page),
            Some(26),
            "{cdf}: more than the eleven quantiles that AIPerf exports"
        );
    }
    let alone = RunReport::from_results(&run.results).expect("a report").html();
    for title in TITLES {
        assert_eq!(figure(&alone, title), figure(&page, title));
    }
}

#[test]
fn a_page_shows_that_single_requests_are_absent() {
    let page = report(&recorded::healthy()).html();
    let said = "Single requests</figcaption><p><strong>Not recorded</strong>: there is no record of requests";
    assert!(page.contains(said), "{page}");
    for title in TITLES {
        assert!(!page.contains(&format!("<figcaption>{title}</")), "{title}");
        let cdf = format!("{title}: share of requests at most so long");
        let points = lines(figure(&page, &cdf)).first().map(|line| line.matches('L').count());
        assert_eq!(points, Some(10), "{cdf}: by the quantiles that AIPerf exports");
    }
}

#[test]
fn seconds_in_which_no_request_began_are_a_gap() {
    let text = record(1000);
    let kept = text
        .split_inclusive('\n')
        .enumerate()
        .filter(|(n, _)| !(300..500).contains(n));
    let with_gap: String = kept.map(|(_, line)| line).collect();
    let strokes = |text: &str| {
        let page = of_exports(1, &RequestTimes::read(text.as_bytes()).expect("read"));
        let figure = figure(&page, TITLES[0]);
        lines(figure)
            .iter()
            .map(|line| line.matches('M').count())
            .collect::<Vec<_>>()
    };
    assert_eq!(strokes(&text), [1, 1, 1]);
    assert_eq!(strokes(&with_gap), [2, 2, 2]);
}

#[test]
fn lines_of_a_record_that_are_not_understood_are_noted() {
    let wild = record(1)
        .replace("\"value\": 60", "\"value\": 1e300")
        .replace("\"value\": 480", "\"value\": -1");
    let cut = record(3) + &wild + "{\"metadata\"";
    let page = of_exports(1, &RequestTimes::read(cut.as_bytes()).expect("read"));
    let note = "Trial 1: lines of AIPerf's record of requests that are not understood, and not drawn: 1.";
    assert!(page.contains(note), "{page}");
    assert!(!of_exports(1, &requests(3)).contains("not understood"));
}
