use maud::{Markup, html};
use perfval_api::{Finding, GpuMetrics, WorkerLoad};
use perfval_verdict::gpus::{Field, GpuRecord, GpuSummary};

use super::over_time::second;
use super::parts::{or_dash, scrolling};
use crate::chart::{Axis, Band, Chart, Drawn, absent, short};
use crate::facts::Facts;
use crate::timeline::{ChartLine, GPU_FIELDS, GpuTimeline, Timeline, WorkerTimeline};

const SIZE: (f64, f64) = (270.0, 145.0);

/// A column of the table of the workers.
type Column = (&'static str, fn(&WorkerLoad) -> Option<String>);

const COLUMNS: [Column; 9] = [
    ("Speed, % of its peers", |load| {
        let earlier = load.percent_of_earlier_runs.as_ref();
        load.percent_of_peers
            .as_ref()
            .map(ToString::to_string)
            .or_else(|| earlier.map(|speed| format!("{speed} of {} earlier runs", speed.of)))
    }),
    ("Token to token (ms)", |load| load.token_ms.clone()),
    ("Batch", |load| load.batch.clone()),
    ("Tokens/s", |load| load.tokens_per_second.clone()),
    ("Requests", |load| load.served.map(|served| served.to_string())),
    ("In flight, mean", |load| load.mean_in_flight.clone()),
    ("Request (s)", |load| load.seconds_per_request.clone()),
    ("Stood still (s)", |load| {
        load.still_seconds.map(|seconds| seconds.to_string())
    }),
    ("No answer", |load| load.timeouts.map(|count| count.to_string())),
];

pub(super) fn side_by_side(facts: &Facts, timeline: &Timeline) -> Markup {
    let per_second = timeline.unit.per_second();
    html! {
        @if timeline.workers.is_empty() {
            (absent("One chart per worker", "no samples of the workers are in the results"))
        } @else {
            p.legend { "One chart per worker, all on the same axes. Solid: the worker; dashed: the median of the others. A worker that a finding names has a frame and the name of the finding." }
            h3 { "Speed (" (per_second) ")" }
            div.small { @for (index, worker) in timeline.workers.iter().enumerate() {
                (one(facts, timeline, index, "rate", per_second, &|worker| &worker.rate, &named(facts, worker)))
            } }
            @if timeline.workers.iter().any(|worker| !worker.token_ms.is_empty()) {
                h3 { "Time from token to token (ms)" }
                div.small { @for (index, worker) in timeline.workers.iter().enumerate() {
                    (one(facts, timeline, index, "token", "ms", &|worker| &worker.token_ms, &named(facts, worker)))
                } }
            }
        }
        (table(facts))
    }
}

/// Findings whose evidence contains this worker or one of its GPUs.
fn named(facts: &Facts, worker: &WorkerTimeline) -> Vec<String> {
    let names = || worker.gpus.iter().chain([&worker.name]);
    let names_it = |finding: &&Finding| names().any(|name| holds(&finding.evidence, name));
    let found = facts.status.diagnosis.iter().filter(names_it);
    found.map(|finding| finding.cause.clone()).collect()
}

/// Returns true if a text contains a name as a whole: `w-1` is not in `w-10`.
fn holds(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let part = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '-');
        !part(text[at + name.len()..].chars().next()) && !part(text[..at].chars().next_back())
    })
}

fn one(
    facts: &Facts,
    timeline: &Timeline,
    index: usize,
    kind: &str,
    unit: &str,
    of: &dyn Fn(&WorkerTimeline) -> &ChartLine,
    findings: &[String],
) -> Markup {
    let worker = &timeline.workers[index];
    let points = timeline.workers.iter().flat_map(of).flatten();
    let largest = points.map(|point| point.1).fold(0.0, f64::max);
    let mut chart = small(
        timeline,
        &format!("{kind}-{index}"),
        &worker.name,
        Axis::from_zero(unit, largest),
    );
    let others: Vec<&ChartLine> = (timeline.workers.iter().enumerate())
        .filter(|(other, _)| *other != index)
        .map(|(_, worker)| of(worker))
        .collect();
    chart.lines = vec![
        Drawn {
            class: "line peers",
            line: median(&others),
        },
        Drawn {
            class: "line own",
            line: of(worker).clone(),
        },
    ];
    let load = facts.status.state.workers.iter().find(|load| load.name == worker.name);
    let speed = load.and_then(|load| load.percent_of_peers.as_ref());
    chart.description = format!(
        "{unit}; mean {} of this worker, {} of the others. {}",
        mean(of(worker)),
        mean(&others.iter().flat_map(|line| line.iter().cloned()).collect()),
        findings.join(", ")
    );
    html! {
        figure.odd[!findings.is_empty()] {
            figcaption {
                (worker.name)
                @if let Some(speed) = speed { span.sub { "speed " (speed) " % of its peers" } }
                @for cause in findings { " " span.flag { "⚑ " (cause) } }
            }
            (chart.svg())
        }
    }
}

fn small(timeline: &Timeline, id: &str, title: &str, y: Axis) -> Chart {
    let x = Axis::exactly("s", second(timeline.seconds));
    let mut chart = Chart::new(id, title, SIZE, x, y);
    chart.bands = (super::over_time::spans(timeline).into_iter())
        .map(|band| Band {
            label: String::new(),
            ..band
        })
        .collect();
    chart
}

fn mean(line: &ChartLine) -> String {
    let values: Vec<f64> = line.iter().flatten().map(|point| point.1).collect();
    let count = u32::try_from(values.len()).unwrap_or(u32::MAX);
    if count == 0 {
        return "nothing".to_owned();
    }
    short(values.iter().sum::<f64>() / f64::from(count))
}

/// The median of several lines, at the seconds of any of them. Nothing is drawn where no line goes on.
fn median(lines: &[&ChartLine]) -> ChartLine {
    let mut points: Vec<(f64, f64)> = lines.iter().flat_map(|line| line.iter().flatten().copied()).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let groups = points.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq());
    let middle = |group: &[(f64, f64)]| f64::midpoint(group[(group.len() - 1) / 2].1, group[group.len() / 2].1);
    let medians: Vec<(f64, f64)> = groups.map(|group| (group[0].0, middle(group))).collect();
    let goes_on = |from: &(f64, f64), to: &(f64, f64)| {
        let spans = |part: &Vec<(f64, f64)>| {
            part.first().is_some_and(|first| first.0 <= from.0) && part.last().is_some_and(|last| last.0 >= to.0)
        };
        lines.iter().any(|line| line.iter().any(spans))
    };
    medians.chunk_by(goes_on).map(<[_]>::to_vec).collect()
}

fn table(facts: &Facts) -> Markup {
    let workers = &facts.status.state.workers;
    if workers.is_empty() {
        return html! {};
    }
    let table = html! {
        table {
            caption { "What each worker did in the last valid trial, the slowest first" }
            thead { tr { th scope="col" { "Worker" } @for (name, _) in COLUMNS { th.number scope="col" { (name) } } } }
            tbody { @for load in workers {
                tr { th scope="row" { (load.name) } @for (_, value) in COLUMNS { td.number { (or_dash(value(load))) } } }
            } }
        }
    };
    scrolling("Workers", &table)
}

pub(super) fn gpus(facts: &Facts, timeline: &Timeline) -> Markup {
    let sampled = timeline.gpus.iter().any(|gpu| !gpu.lines.is_empty());
    let mut records = facts
        .trials
        .iter()
        .filter_map(|trial| Some((trial.status.number, trial.payload.as_ref()?.record.gpus.as_ref()?)));
    let last = records.rfind(|(_, record)| !record.gpus.is_empty());
    let deployment = facts.status.state.deployment.as_ref();
    let why: &str = match deployment.and_then(|deployment| deployment.gpu_metrics.as_ref()) {
        Some(GpuMetrics::Missing(why)) => why,
        _ => "no samples of the GPUs' exporter are in the results",
    };
    html! {
        @if sampled {
            p.legend { "The GPUs of the workers in the same seconds, all on the same axes; dashed: the median of the others." }
            @for (field, what, unit, per) in GPU_FIELDS { (field_chart(timeline, field, what, unit, per)) }
        } @else { (absent("Clocks, power and temperature over time", why)) }
        @if let Some((trial, record)) = last { (summaries(timeline, trial, record)) }
    }
}

fn field_chart(timeline: &Timeline, field: Field, what: &str, unit: &str, per: f64) -> Markup {
    let line = |gpu: &GpuTimeline| -> ChartLine {
        let found = gpu.lines.iter().find(|(known, _)| *known == field);
        let scaled = |part: &Vec<(f64, f64)>| part.iter().map(|point| (point.0, point.1 / per)).collect();
        found.map_or_else(Vec::new, |(_, line)| line.iter().map(scaled).collect())
    };
    let lines: Vec<ChartLine> = timeline.gpus.iter().map(line).collect();
    let points = lines.iter().flatten().flatten();
    let largest = points.map(|point| point.1).fold(0.0, f64::max);
    if lines.iter().all(Vec::is_empty) {
        return html! {};
    }
    html! {
        h3 { "GPU " (what) " (" (unit) ")" }
        div.small { @for (index, gpu) in timeline.gpus.iter().enumerate() {
            @let others = lines.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, line)| line).collect::<Vec<_>>();
            @let chart = {
                let mut chart = small(timeline, &format!("gpu-{what}-{index}"), &gpu.worker, Axis::from_zero(unit, largest));
                chart.lines = vec![
                    Drawn { class: "line peers", line: median(&others) },
                    Drawn { class: "line own", line: lines[index].clone() },
                ];
                chart.description = format!("GPU {what} in {unit}, mean {}", mean(&lines[index]));
                chart
            };
            figure {
                figcaption { (gpu.worker) span.sub { (gpu.uuid) } }
                (chart.svg())
            }
        } }
    }
}

/// A column of the table of the GPUs.
type GpuColumn = (&'static str, fn(&GpuSummary) -> Option<String>);

const GPU_COLUMNS: [GpuColumn; 9] = [
    ("Clock (MHz)", |gpu| text(gpu.sm_mhz)),
    ("Power (W)", |gpu| text(gpu.watts)),
    ("Hottest (°C)", |gpu| text(gpu.celsius)),
    ("In use (%)", |gpu| text(gpu.busy_percent)),
    ("Memory used (MiB)", |gpu| text(gpu.used_mib)),
    ("Throttle reasons", |gpu| gpu.reasons.map(|bits| format!("{bits:#x}"))),
    ("Held down (ms)", |gpu| text(gpu.held_back_ms.map(|mark| mark.value))),
    ("XID", |gpu| text(gpu.xid.map(|mark| mark.value))),
    ("PCIe", |gpu| {
        Some(format!("gen {} x{}", gpu.pcie_generation?, gpu.pcie_width?))
    }),
];

fn text(number: Option<i64>) -> Option<String> {
    number.map(|number| number.to_string())
}

fn summaries(timeline: &Timeline, trial: i64, record: &GpuRecord) -> Markup {
    let worker = |gpu: &GpuSummary| timeline.workers.iter().find(|worker| worker.gpus.contains(&gpu.uuid));
    // Without samples of the GPUs the GPU of each worker is unknown.
    let known = timeline.workers.iter().any(|worker| !worker.gpus.is_empty());
    let table = html! {
        table {
            caption { "The GPUs under load in trial " (trial) ": means, highest temperatures, errors" }
            thead { tr { th scope="col" { "GPU" } @for (name, _) in GPU_COLUMNS { th.number scope="col" { (name) } } } }
            tbody { @for gpu in &record.gpus {
                tr {
                    th scope="row" { @if let Some(index) = gpu.index { "GPU " (index) " " } @match worker(gpu) { Some(worker) => { "of " (worker.name) }, None if known => "not of this run", None => "" } span.sub { (gpu.uuid) } }
                    @for (_, value) in GPU_COLUMNS { td.number { (or_dash(value(gpu))) } }
                }
            } }
        }
    };
    scrolling("GPUs", &table)
}
