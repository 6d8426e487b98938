use std::collections::BTreeMap;

use maud::{Markup, html};
use perfval_api::{Metric, Statistic, TrialOutcome};
use perfval_verdict::requests::{CdfPoint, RequestTimes};

use super::parts::{or_dash, scrolling};
use super::requests::{TIMES, request_distribution, thousandth};
use crate::chart::{Axis, Chart, ChartShape, Drawn, Rule, RulePosition, absent, short};
use crate::facts::{Facts, Trial};

/// Quantiles that AIPerf exports, as parts of the requests.
const QUANTILES: [(Statistic, f64); 11] = [
    (Statistic::Min, 0.0),
    (Statistic::P1, 0.01),
    (Statistic::P5, 0.05),
    (Statistic::P10, 0.10),
    (Statistic::P25, 0.25),
    (Statistic::P50, 0.50),
    (Statistic::P75, 0.75),
    (Statistic::P90, 0.90),
    (Statistic::P95, 0.95),
    (Statistic::P99, 0.99),
    (Statistic::Max, 1.0),
];

const COLUMNS: [(Statistic, &str); 5] = [
    (Statistic::Avg, "mean"),
    (Statistic::P50, "p50"),
    (Statistic::P90, "p90"),
    (Statistic::P99, "p99"),
    (Statistic::Max, "max"),
];

struct TrialDistribution {
    trial: i64,
    class: &'static str,
    /// By AIPerf's export.
    values: BTreeMap<Statistic, f64>,
    /// By its record of requests: each time (ms), and how many of them took at most so long (percent).
    shares: Vec<(f64, f64)>,
}

pub(super) fn all(facts: &Facts) -> Markup {
    html! {
        h3 { "Distributions" }
        p.legend {
            "The successful requests: shares by AIPerf's record of each, where the results hold that, otherwise by the quantiles that it exports. Solid: trials that passed; dashed: missed; dotted: invalid. "
            "In each trial's box: 25 to 75 % of the requests and the median; its stroke: 5 to 95 %; its point: 99 %."
        }
        @for (metric, title) in TIMES { (metric_section(facts, metric, title)) }
        details { summary { "The numbers" }
            @for (metric, title) in TIMES { (table(&distributions(&facts.trials, metric), title)) }
        }
    }
}

fn distributions(trials: &[Trial], metric: Metric) -> Vec<TrialDistribution> {
    let of = |trial: &Trial| {
        let values = trial.report()?.metrics.get(&metric)?;
        let read = values
            .iter()
            .filter_map(|(statistic, value)| Some((*statistic, value.to_string().parse().ok()?)));
        Some(TrialDistribution {
            trial: trial.status.number,
            class: match trial.status.outcome {
                Some(TrialOutcome::Miss) => "line miss",
                Some(TrialOutcome::Invalid) => "line invalid",
                Some(TrialOutcome::Pass) | None => "line pass",
            },
            values: read.collect(),
            shares: trial.requests.as_ref().map_or_else(Vec::new, |all| shares(all, metric)),
        })
    };
    trials.iter().filter_map(of).collect()
}

fn shares(requests: &RequestTimes, metric: Metric) -> Vec<(f64, f64)> {
    let point = |CdfPoint(per_mille, us): &CdfPoint| (thousandth(*us), 100.0 * thousandth(*per_mille));
    request_distribution(requests, metric).map_or_else(Vec::new, |found| found.cdf.iter().map(point).collect())
}

fn metric_section(facts: &Facts, metric: Metric, title: &str) -> Markup {
    let found = distributions(&facts.trials, metric);
    let all = || {
        found
            .iter()
            .flat_map(|found| found.values.iter())
            .filter(|(statistic, _)| **statistic != Statistic::Std)
    };
    let largest = all().map(|(_, value)| *value).fold(0.0, f64::max);
    // One request that is far too fast would take half of a logarithmic axis.
    let low = |TrialDistribution { values, .. }: &TrialDistribution| {
        let low = values.get(&Statistic::P1).or(values.get(&Statistic::Min));
        low.copied().filter(|value| *value > 0.0)
    };
    let smallest = found.iter().filter_map(low).fold(f64::MAX, f64::min);
    if found.iter().all(|found| found.values.len() < 3) || largest <= 0.0 {
        return absent(title, "no trial reported a distribution of it");
    }
    let anchor = metric.as_str();
    let mut cdf = Chart::new(
        format!("cdf-{anchor}"),
        format!("{title}: share of requests at most so long"),
        (360.0, 210.0),
        Axis::spanning("ms", smallest, largest),
        Axis::from_zero("% of requests", 100.0),
    );
    let points = |found: &TrialDistribution| {
        let exported = QUANTILES
            .iter()
            .filter_map(|(statistic, part)| Some((*found.values.get(statistic)?, part * 100.0)));
        let line = if found.shares.is_empty() {
            exported.collect()
        } else {
            found.shares.clone()
        };
        Drawn {
            class: found.class,
            line: vec![line],
        }
    };
    cdf.lines = found.iter().map(points).collect();
    cdf.description = described(&found);
    let (rules, beyond) = gates(facts, metric, &cdf.x);
    cdf.rules = rules;
    html! {
        div.pair {
            div { (cdf.figure()) @for text in beyond { p.legend { (text) } } }
            (by_trial(&found, metric, title).figure())
        }
    }
}

fn described(found: &[TrialDistribution]) -> String {
    let one = |found: &TrialDistribution| {
        let value = |statistic| {
            let value = found.values.get(&statistic);
            value.map_or("unknown".to_owned(), |value| short(*value))
        };
        format!(
            "trial {}: median {} ms, p99 {} ms",
            found.trial,
            value(Statistic::P50),
            value(Statistic::P99)
        )
    };
    found.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// The thresholds on this axis, and in words those that lie beyond it.
fn gates(facts: &Facts, metric: Metric, axis: &Axis) -> (Vec<Rule>, Vec<String>) {
    let (mut rules, mut beyond) = (Vec::new(), Vec::new());
    for judged in &facts.status.gates {
        let gate = facts.gate(&judged.name).filter(|gate| gate.metric == metric);
        let Some((gate, value)) = gate.zip(judged.effective.parse::<f64>().ok()) else {
            continue;
        };
        let label = format!(
            "{}: {:?} {} {}",
            gate.name,
            gate.statistic,
            gate.operator.sign(),
            judged.effective
        );
        if axis.holds(value) {
            rules.push(Rule {
                at: RulePosition::X(value),
                class: "boundary",
                label,
            });
        } else {
            beyond.push(format!("Gate {label} ms lies beyond this axis."));
        }
    }
    (rules, beyond)
}

/// The trials side by side, in order of time.
fn by_trial(found: &[TrialDistribution], metric: Metric, title: &str) -> Chart {
    let value = |found: &TrialDistribution, statistic| found.values.get(&statistic).copied();
    let tails = found.iter().filter_map(|found| value(found, Statistic::P99));
    let largest = tails.fold(0.0, f64::max);
    let last = found.iter().map(|found| found.trial).max().unwrap_or(1);
    let mut chart = Chart::new(
        format!("trials-{}", metric.as_str()),
        format!("{title}: trial by trial"),
        (360.0, 210.0),
        Axis::numbers("trial", last),
        Axis::from_zero("ms", largest),
    );
    chart.description = described(found);
    for found in found {
        let x = f64::from(i32::try_from(found.trial).unwrap_or(i32::MAX));
        let five = [
            Statistic::P5,
            Statistic::P25,
            Statistic::P50,
            Statistic::P75,
            Statistic::P95,
        ];
        if let [Some(lowest), Some(low), Some(middle), Some(high), Some(highest)] = five.map(|part| value(found, part))
        {
            chart
                .shapes
                .push(ChartShape::Spread(x, [lowest, low, middle, high, highest], found.class));
        }
        chart
            .shapes
            .extend(value(found, Statistic::P99).map(|p99| ChartShape::Dot(x, p99, "tail")));
    }
    chart
}

fn table(found: &[TrialDistribution], title: &str) -> Markup {
    let table = html! {
        table {
            caption { (title) " (ms)" }
            thead { tr { th.number scope="col" { "Trial" } @for (_, name) in COLUMNS { th.number scope="col" { (name) } } } }
            tbody { @for found in found {
                tr {
                    th.number scope="row" { (found.trial) }
                    @for (statistic, _) in COLUMNS {
                        td.number { (or_dash(found.values.get(&statistic).map(|value| short(*value)))) }
                    }
                }
            } }
        }
    };
    scrolling(title, &table)
}
