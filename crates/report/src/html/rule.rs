use maud::{Markup, html};
use perfval_api::{TrialOutcome, TrialRule};
use perfval_verdict::trials::{Path, PathStep, Ruling, path};

use super::parts::scrolling;
use crate::chart::{Axis, Chart, ChartShape, Drawn, Rule, RulePosition, short};
use crate::facts::Facts;
use crate::words;

pub(super) fn path_of_the_run(facts: &Facts) -> Markup {
    let Some(spec) = &facts.spec else {
        return html! { p { strong { "Not recorded" } ": the trial rule is in the manifest, and only the results were given." } };
    };
    let path = path(spec, &facts.status.state.trials);
    let (rule, max, error) = (spec.trials.rule, spec.trials.max, spec.trials.error_bound_percent);
    html! {
        p {
            @match rule {
                TrialRule::Sequential => {
                    "Rule Sequential: trials repeat, at most " (max) ", until a healthy deployment and a degraded one are told apart with an error of at most "
                    (error) " %. Evidence is the logarithm of how much likelier the trials are of the healthy one."
                },
                TrialRule::All => { "Rule All: " (max) " passes are needed, and the first miss fails." },
                TrialRule::Single => "Rule Single: one trial decides, or the majority of trials.min.",
            }
        }
        @if path.steps.is_empty() { p { "No trial has ended." } } @else {
            @if let Some(boundary) = path.boundary { (chart(&path, boundary).figure()) }
            (table(&path))
        }
    }
}

fn chart(path: &Path, boundary: f64) -> Chart {
    let deciding: Vec<&PathStep> = path.steps.iter().filter(|step| !step.soak).collect();
    let evidence = deciding
        .iter()
        .flat_map(|step| [Some(step.by_outcomes), step.by_distances])
        .flatten();
    let farthest = evidence.map(f64::abs).fold(boundary, f64::max);
    let last = path.steps.iter().map(|step| step.trial).max().unwrap_or(1);
    let x = |step: &PathStep| f64::from(i32::try_from(step.trial).unwrap_or(i32::MAX));
    let mut chart = Chart::new(
        "path",
        "Evidence after each trial",
        (720.0, 240.0),
        Axis::numbers("trial", last),
        Axis::between("evidence", -farthest, farthest),
    );
    let described: Vec<String> = deciding
        .iter()
        .map(|step| format!("trial {}: {}", step.trial, short(step.by_outcomes)))
        .collect();
    chart.description = format!(
        "Above {} it is healthy, below -{} degraded. {}.",
        short(boundary),
        short(boundary),
        described.join(", ")
    );
    let rule = |at, label: &str| Rule {
        at: RulePosition::Y(at),
        class: "boundary",
        label: label.to_owned(),
    };
    chart.rules = vec![rule(boundary, "healthy above"), rule(-boundary, "degraded below")];
    let line = |class, value: &dyn Fn(&PathStep) -> Option<f64>| Drawn {
        class,
        line: vec![
            deciding
                .iter()
                .filter_map(|step| Some((x(step), value(step)?)))
                .collect(),
        ],
    };
    chart.lines = vec![
        line("line own", &|step| Some(step.by_outcomes)),
        line("line peers", &|step| step.by_distances),
    ];
    chart.shapes = deciding
        .iter()
        .map(|step| match step.outcome {
            TrialOutcome::Pass => ChartShape::Dot(x(step), step.by_outcomes, "pass"),
            TrialOutcome::Miss => ChartShape::Cross(x(step), step.by_outcomes, "miss"),
            TrialOutcome::Invalid => ChartShape::Square(x(step), step.by_outcomes, "invalid"),
        })
        .collect();
    chart
}

fn table(path: &Path) -> Markup {
    let weighed = path.boundary.is_some();
    let distances = path.steps.iter().any(|step| step.by_distances.is_some());
    let table = html! {
        table {
            caption { "What the rule knew after each trial" }
            thead { tr {
                th.number scope="col" { "Trial" } th scope="col" { "Outcome" }
                @if weighed { th.number scope="col" { "Evidence of passes and misses" } }
                @if weighed && distances { th.number scope="col" { "Evidence of the distances from the gate" } }
                th scope="col" { "Then" }
            } }
            tbody { @for step in &path.steps {
                tr {
                    th.number scope="row" { (step.trial) @if step.soak { span.sub { "soak" } } }
                    td { (words::outcome(Some(step.outcome))) }
                    @if weighed { td.number { (short(step.by_outcomes)) } }
                    @if weighed && distances { td.number { @if let Some(evidence) = step.by_distances { (short(evidence)) } } }
                    td { (then(step.ruling)) }
                }
            } }
        }
    };
    html! {
        @if weighed { p.legend { "Solid line: passes (points), misses (crosses) and invalid trials (squares)." @if distances { " Dashed line: distances from a gate on an average; near such a gate both have to agree." } } }
        (scrolling("The rule's path", &table))
    }
}

fn then(ruling: Ruling) -> &'static str {
    match ruling {
        Ruling::Continue => "another trial",
        Ruling::Pass => "healthy",
        Ruling::Fail => "degraded",
        Ruling::Undecided => "cannot be decided",
        Ruling::Unmeasurable => "cannot be measured",
    }
}
