//! The page as text; how it looks and sounds is tested in a browser.

use std::collections::BTreeSet;

use perfval_report::RunReport;

use super::sources::edited;
use super::{recorded, report};

#[test]
fn verdict_causes_remedies_and_gates_are_on_the_first_screen() {
    for run in recorded::all() {
        let page = report(&run).html();
        let (first, rest) = page.split_once("<nav").expect("a table of contents");
        let status = run.object.status.as_ref().expect("a status");
        let message = escaped(status.message.as_deref().expect("a message"));
        assert!(first.contains(&message), "{message} is not in {first}");
        for finding in &status.diagnosis {
            for text in [&finding.cause, &finding.evidence, &finding.remedy] {
                assert!(first.contains(&escaped(text)), "{text}");
            }
        }
        for gate in &status.gates {
            let margin = gate.margin_percent.as_deref().expect("a margin");
            assert!(
                first.contains(&gate.name) && first.contains(&format!("{margin} %")),
                "{gate:?}"
            );
        }
        let headings = rest.matches("<h2").count();
        assert_eq!(headings, 8, "the sections below");
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[test]
fn a_page_holds_everything_it_needs() {
    for run in recorded::all() {
        let page = report(&run).html();
        for outside in [
            "href=\"http",
            "url(",
            "src=",
            "@import",
            "<script",
            "<iframe",
            "<object",
            "<form",
        ] {
            let found = page.find(outside).map(|at| &page[at.saturating_sub(60)..at + 40]);
            assert_eq!(found, None, "{outside}");
        }
        assert!(page.contains("default-src 'none'"));
        assert!(page.contains("The load generator's own command") && page.contains("http://127.0.0.1:8000"));
    }
}

#[test]
fn every_drawing_is_described_and_every_table_has_a_caption() {
    for run in recorded::all() {
        let page = report(&run).html();
        let mut known = BTreeSet::new();
        for drawing in page.split("<svg").skip(1) {
            let (start, content) = drawing.split_once('>').expect("a tag");
            if start.contains("aria-hidden") {
                continue;
            }
            let ids = start
                .split("aria-labelledby=\"")
                .nth(1)
                .and_then(|rest| rest.split('"').next());
            let ids: Vec<&str> = ids.expect("a label").split(' ').collect();
            assert_eq!(ids.len(), 2, "{start}");
            for (id, tag) in ids.iter().zip(["title", "desc"]) {
                assert!(known.insert((*id).to_owned()), "{id} is there twice");
                let element = format!("<{tag} id=\"{id}\">");
                let text = content.split(&element).nth(1).and_then(|rest| rest.split('<').next());
                assert!(text.is_some_and(|text| !text.trim().is_empty()), "{element}");
            }
        }
        assert!(known.len() >= 20, "{} drawings", known.len() / 2);
        assert_eq!(page.matches("<table").count(), page.matches("<caption").count());
    }
}

#[test]
fn a_chart_without_data_shows_not_recorded() {
    let run = recorded::shared();
    let page = report(&run).html();
    // An older engine did not count the time between tokens.
    assert!(page.contains("From token to token in the engine</figcaption><p><strong>Not recorded</strong>"));
    assert!(
        page.contains("GPU clock (MHz)") && page.contains("GPU power (W)"),
        "telemetry"
    );
    let page = report(&recorded::healthy()).html();
    assert!(page.contains("Clocks, power and temperature over time</figcaption><p><strong>Not recorded</strong>"));
    assert!(page.contains("Time from token to token (ms)"));
}

#[test]
fn a_gpu_is_another_ones_only_where_the_workers_gpus_are_known() {
    let page = report(&recorded::slow()).html();
    assert!(
        page.contains("The GPUs under load") && !page.contains("not of this run"),
        "no worker's GPU is recorded"
    );
}

#[test]
fn the_odd_worker_is_framed_and_named() {
    let page = report(&recorded::slow()).html();
    let odd: Vec<&str> = page.split("<figure class=\"odd\">").skip(1).collect();
    assert_eq!(odd.len(), 2, "one drawing of its speed, one of its time per token");
    for figure in odd {
        assert!(
            figure.starts_with("<figcaption>worker-1") && figure.contains("⚑ SlowWorker"),
            "{}",
            &figure[..200]
        );
    }
}

#[test]
fn thinned_samples_are_drawn_as_lines_too() {
    for run in [recorded::slow(), recorded::shared()] {
        let results = edited(&run.results, |payload| {
            for worker in &mut payload.workers {
                worker.thin(worker.samples.len() / 4);
            }
            for gpu in &mut payload.gpus {
                gpu.thin(gpu.samples.len() / 4);
            }
        });
        let page = RunReport::new(&run.object, Some(&results)).expect("a report").html();
        let peers: Vec<&str> = page.split("class=\"line peers\" d=\"").skip(1).collect();
        assert!(peers.len() >= 2, "two workers");
        for rest in peers {
            let path = rest.split('"').next().expect("a path");
            assert!(path.contains('L') && !path.contains("h1"), "a point is no line: {path}");
        }
    }
}

#[test]
fn faults_are_marked_in_the_throughput() {
    let marks = |page: &str| {
        let rest = page.split("<ol class=\"marks\">").nth(1).expect("marks");
        rest.split("</ol>").next().expect("their end").to_owned()
    };
    let frozen = marks(&report(&recorded::frozen()).html());
    assert!(frozen.contains("gave no answer in time for up to 9 s"), "{frozen}");
    assert!(frozen.contains("stood still for"), "{frozen}");
    let broken = marks(&report(&recorded::broken()).html());
    assert!(broken.contains(" restarted"), "{broken}");
}

#[test]
fn a_silence_in_merged_samples_ends_with_the_next_answer() {
    let run = recorded::frozen();
    // A worker of the first trial was silent from second 13 to second 21.
    for (merged, seconds) in [(1, 9), (2, 10), (4, 14)] {
        let results = edited(&run.results, |payload| {
            for worker in &mut payload.workers {
                worker.thin(worker.samples.len().div_ceil(merged));
            }
        });
        let page = RunReport::new(&run.object, Some(&results)).expect("a report").html();
        let text = format!("gave no answer in time for up to {seconds} s");
        assert!(page.contains(&text), "{text}: {page}");
    }
}

#[test]
fn the_rule_s_path_ends_beyond_its_boundary() {
    let page = report(&recorded::healthy()).html();
    let path = page
        .split("id=\"rule\"")
        .nth(1)
        .and_then(|rest| rest.split("</section>").next())
        .expect("a path");
    assert!(
        path.contains("Above 2.94 it is healthy, below -2.94 degraded. trial 1: 2.48, trial 2: 4.97."),
        "{path}"
    );
    assert!(path.contains("another trial") && path.contains("healthy</td>"));
}

#[test]
fn a_page_runs_the_manifest_again_if_it_has_one() {
    let run = recorded::slow();
    let (of_manifest, of_object) = (
        "kubectl perfval run -f perfvalidation.yaml",
        "kubectl perfval rerun -n perf h200-slow-gpu --watch",
    );
    let own = "-f perfvalidation.yaml   # your manifest";
    let page = report(&run).html();
    assert!(page.contains(of_manifest) && !page.contains(of_object), "{page}");
    assert!(!page.contains(own), "{page}");
    let page = RunReport::from_results(&run.results).expect("a report").html();
    assert!(page.contains(of_object) && !page.contains(of_manifest), "{page}");
    assert!(page.contains(own), "{page}");
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    for (one, other) in recorded::all().iter().zip(recorded::all()) {
        assert_eq!(report(one).files(), report(&other).files());
    }
}

#[test]
fn twenty_trials_of_eight_workers_stay_below_a_megabyte() {
    let run = recorded::large();
    assert_eq!(
        run.object.status.as_ref().map(|status| status.state.trials.len()),
        Some(20)
    );
    for file in report(&run).files() {
        assert!(
            file.content.len() < 1 << 20,
            "{}: {} bytes",
            file.name,
            file.content.len()
        );
    }
}
