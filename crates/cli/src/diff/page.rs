//! The comparison for people.

use perfval_api::text::number_of;
use perfval_api::{GateStatus, Verdict};
use rust_decimal::Decimal;

use super::comparison::{MetricChange, RunComparison, Side, Spread};
use crate::draw::wrap_on;
use crate::table::{Table, dash};

/// The two as columns, and below what may be the reason; on a terminal within its columns.
pub fn text(comparison: &RunComparison<'_>, columns: Option<usize>) -> String {
    let RunComparison { before, after, .. } = comparison;
    let mut table = Table::new(["", before.run, after.run, "CHANGE"]);
    let row = |what: &str, of: fn(&Side<'_>) -> String| [what.to_owned(), of(before), of(after), String::new()];
    table.row(row("verdict", |side| dash(side.verdict.map(Verdict::as_str))));
    table.row(row("reason", |side| dash(side.reason)));
    for (what, change) in ["tok/s", "TTFT p99 (ms)"].into_iter().zip(&comparison.metrics) {
        let (one, other) = (shown(change.before.as_ref()), shown(change.after.as_ref()));
        table.row([what.to_owned(), one, other, changed(change)]);
    }
    for gate in &comparison.gates {
        let change = gate.change_percent.map_or_else(String::new, signed);
        let before = dash(gate.before.map(gate_text));
        table.row([format!("gate {}", gate.name), before, gate_text(gate.after), change]);
    }
    table.row(row("trials", |side| {
        format!("{} of {} measured", side.measured, side.trials)
    }));
    if [before, after].into_iter().any(|side| !side.causes.is_empty()) {
        table.row(row("causes", causes));
    }
    table.row(row("place", |side| {
        let place = side.placement;
        dash(place.map(|at| format!("{} of {}", number_of(at.gpus, "GPU"), at.node)))
    }));
    let head = match comparison.differs.as_deref() {
        None => "The environment of one of them is not known.",
        Some([]) => "Both ran on the same: model, image, settings, GPUs, driver, Dynamo and AIPerf are equal.",
        Some(_) => "What differs in what they ran on, and may be the reason:",
    };
    // In the words of the comparison in a status.
    let each = comparison.differs.iter().flatten();
    let each: String = each.map(|one| wrap_on(one, columns, "  ")).collect();
    format!("{}\n{}{each}", table.on(columns), wrap_on(head, columns, ""))
}

fn gate_text(gate: &GateStatus) -> String {
    format!("{} {:?}", gate.observed.as_deref().unwrap_or("-"), gate.result)
}

fn causes(side: &Side<'_>) -> String {
    match side.causes.is_empty() {
        true if side.trials == 0 => "-".to_owned(),
        true => "none".to_owned(),
        false => side.causes.iter().copied().collect::<Vec<_>>().join(", "),
    }
}

fn shown(spread: Option<&Spread>) -> String {
    match spread {
        None => "-".to_owned(),
        Some(Spread { mean, trials: 1, .. }) => format!("{mean:.1}"),
        Some(Spread { mean, least, most, .. }) => format!("{mean:.1} ({least:.1} to {most:.1})"),
    }
}

/// The change of the means, and whether the trials of two equal runs differ by as much.
fn changed(change: &MetricChange) -> String {
    let Some(percent) = change.change_percent else {
        return String::new();
    };
    let note = match (change.within_spread, change.chance_percent) {
        (Some(true), Some(most)) => format!("within the ± {most} % that equal runs differ by"),
        (Some(false), Some(most)) => format!("more than the ± {most} % that equal runs differ by"),
        _ => "too few trials to compare".to_owned(),
    };
    format!("{}, {note}", signed(percent))
}

fn signed(percent: Decimal) -> String {
    format!("{percent:+.1} %")
}
