use maud::{Markup, html};

use crate::chart::{Axis, Band, Chart, Drawn, Rule, RulePosition, absent, short};
use crate::timeline::{ChartLine, Span, Timeline, WorkerTimeline};

/// Marks that get a line of their own; more hide the drawing.
const MARKS: usize = 20;
/// Text for trials without samples.
const UNSAMPLED: &str = "no samples of the workers are in the results";

/// Latency that the engines count, its anchor and its heading.
type EngineLatency = (&'static str, &'static str, fn(&WorkerTimeline) -> &ChartLine);

const LATENCIES: [EngineLatency; 3] = [
    (
        "first",
        "Before the first token: queue and prefill in the engine",
        |worker| &worker.first_token_ms,
    ),
    ("token", "From token to token in the engine", |worker| &worker.token_ms),
    ("request", "A whole request in its worker", |worker| &worker.request_ms),
];

pub(super) fn throughput(timeline: &Timeline) -> Markup {
    let title = format!("All workers together, {}", timeline.unit.per_second());
    if timeline.spans.is_empty() {
        return absent(&title, UNSAMPLED);
    }
    let line = together(timeline, |sum, _| sum, |worker| &worker.rate);
    let mut chart = wide(timeline, "throughput-chart", &title, timeline.unit.per_second(), &line);
    let shown = timeline.marks.iter().take(MARKS);
    let rules = (1..).zip(shown.clone()).map(|(number, mark): (usize, _)| Rule {
        at: RulePosition::X(second(mark.at)),
        class: "mark",
        label: number.to_string(),
    });
    chart.rules.extend(rules);
    let more = timeline.marks.len().saturating_sub(MARKS);
    html! {
        (chart.figure())
        p.legend { "Trials one after another, each with its warm-up (darker) before the measured phase." @if timeline.marks.is_empty() { " Nothing else was noticed while they ran." } }
        @if !timeline.marks.is_empty() {
            p { "What happened meanwhile, by its number in the drawing:" }
            ol.marks { @for mark in shown { li { "second " (mark.at) ", trial " (mark.trial) ": " (mark.text) } } }
            @if more > 0 { p { "And " (more) " more." } }
        }
    }
}

pub(super) fn latency(timeline: &Timeline) -> Markup {
    html! {
        h3 { "Engines over time" }
        p.legend { "Means over all workers by the engines' own counters: requests over 5 s, tokens over 1 s. They show the part of a wait that lies in the workers." }
        @for (anchor, title, of) in LATENCIES {
            @let line = together(timeline, |sum, workers| sum / workers, of);
            @if line.iter().all(Vec::is_empty) {
                (absent(title, if timeline.spans.is_empty() { UNSAMPLED } else { "the engines do not export it" }))
            } @else {
                (wide(timeline, anchor, title, "ms", &line).figure())
            }
        }
    }
}

/// All workers as one line, second by second. `join` takes the sum of their values and the number of them.
fn together(timeline: &Timeline, join: fn(f64, f64) -> f64, of: impl Fn(&WorkerTimeline) -> &ChartLine) -> ChartLine {
    let points: Vec<Vec<(f64, f64)>> = timeline
        .workers
        .iter()
        .map(|worker| of(worker).iter().flatten().copied().collect())
        .collect();
    let at = |span: &Span, at: i64| {
        let at = second(at);
        // A reading covers the seconds since the one before it.
        let value = |points: &Vec<(f64, f64)>| {
            let next = points.partition_point(|point| point.0 < at);
            let point = points.get(next).filter(|point| point.0 <= second(span.until));
            point.map(|point| point.1)
        };
        let values: Vec<f64> = points.iter().filter_map(value).collect();
        let count = u32::try_from(values.len()).ok().filter(|count| *count > 0)?;
        Some((at, join(values.iter().sum(), f64::from(count))))
    };
    let part = |span: &Span| {
        (span.from + 1..=span.until)
            .filter_map(|second| at(span, second))
            .collect()
    };
    timeline.spans.iter().map(part).collect()
}

/// A drawing over all seconds of the run.
fn wide(timeline: &Timeline, id: &str, title: &str, unit: &str, line: &ChartLine) -> Chart {
    let values = || line.iter().flatten().map(|point| point.1);
    let largest = values().fold(0.0, f64::max);
    let mut chart = Chart::new(
        id,
        title,
        (960.0, 230.0),
        Axis::exactly("s", second(timeline.seconds)),
        Axis::from_zero(unit, largest),
    );
    chart.bands = spans(timeline);
    chart.lines = vec![Drawn {
        class: "line own",
        line: line.clone(),
    }];
    let means = timeline
        .spans
        .iter()
        .zip(line)
        .filter(|(_, part)| !part.is_empty())
        .map(|(span, part)| {
            let measured = part.iter().filter(|point| point.0 > second(span.measured));
            let measured: Vec<f64> = measured.map(|point| point.1).collect();
            let count = u32::try_from(measured.len()).unwrap_or(1).max(1);
            format!(
                "trial {}: {} on average",
                span.trial,
                short(measured.iter().sum::<f64>() / f64::from(count))
            )
        });
    chart.description = format!(
        "{unit}; {}; at most {}.",
        means.collect::<Vec<_>>().join(", "),
        short(largest)
    );
    chart
}

/// Positions of trials and their warm-ups.
pub(super) fn spans(timeline: &Timeline) -> Vec<Band> {
    // Twenty names do not fit side by side.
    let label = |trial: i64| {
        if timeline.spans.len() > 8 {
            trial.to_string()
        } else {
            format!("trial {trial}")
        }
    };
    let of = |span: &Span| {
        let band = |from, to, class, label| Band {
            from: second(from),
            to: second(to),
            class,
            label,
        };
        [
            band(span.from, span.until, "trial", label(span.trial)),
            band(span.from, span.measured, "warmup", String::new()),
        ]
    };
    timeline.spans.iter().flat_map(of).collect()
}

#[expect(clippy::cast_precision_loss, reason = "seconds of one run")]
pub(super) fn second(second: i64) -> f64 {
    second as f64
}
