//! Words and numbers that more than one kind of report prints.

use chrono::{DateTime, TimeDelta, Utc};
use perfval_api::{GateStatus, TrialOutcome, TrialState};

use crate::facts::Facts;

/// A time that was recorded: the epoch means no time.
pub(crate) fn recorded(time: DateTime<Utc>) -> Option<DateTime<Utc>> {
    (time > DateTime::UNIX_EPOCH).then_some(time)
}

/// The verdict, or that the run continues.
pub(crate) fn verdict(facts: &Facts) -> String {
    match (facts.status.verdict, facts.status.phase) {
        (Some(verdict), _) => verdict.as_str().to_owned(),
        (None, Some(phase)) => format!("no verdict yet ({})", phase.as_str()),
        (None, None) => "no verdict yet".to_owned(),
    }
}

pub(crate) fn outcome(outcome: Option<TrialOutcome>) -> &'static str {
    outcome.map_or("running", TrialOutcome::as_str)
}

/// `≥`, `≤`, or the sign that follows from the margin if the spec is unknown.
pub(crate) fn sign(facts: &Facts, gate: &GateStatus) -> &'static str {
    if let Some(spec) = facts.gate(&gate.name) {
        return spec.operator.sign();
    }
    let number = |text: &str| text.parse::<f64>().ok();
    let observed = gate.observed.as_deref().and_then(number);
    let above = observed
        .zip(number(&gate.effective))
        .map(|(observed, effective)| observed - effective);
    let margin = gate.margin_percent.as_deref().and_then(number);
    match above.zip(margin).map(|(above, margin)| above * margin) {
        Some(same) if same > 0.0 => "≥",
        Some(same) if same < 0.0 => "≤",
        _ => "threshold",
    }
}

/// The unit of a gate, where the spec is known.
pub(crate) fn unit(facts: &Facts, gate: &GateStatus) -> &'static str {
    facts.gate(&gate.name).map_or("", |gate| gate.metric.unit())
}

/// A gate in one line: `observed 392.3 tok/s, ≥ 300, margin +30.76 %`.
pub(crate) fn gate(facts: &Facts, gate: &GateStatus) -> String {
    let unit = unit(facts, gate);
    let observed = match &gate.observed {
        Some(observed) => format!("observed {observed} {unit}").trim_end().to_owned(),
        None => "not measured".to_owned(),
    };
    let margin = gate
        .margin_percent
        .as_deref()
        .map_or(String::new(), |margin| format!(", margin {}", signed(margin)));
    format!("{observed}, {} {}{margin}", sign(facts, gate), gate.effective)
}

/// A percentage with its sign.
pub(crate) fn signed(percent: &str) -> String {
    if percent.starts_with(['-', '+']) {
        format!("{percent} %")
    } else {
        format!("+{percent} %")
    }
}

/// A trial in one line.
pub(crate) fn trial(trial: &TrialState) -> String {
    let mut parts = vec![outcome(trial.outcome).to_owned()];
    parts.extend(trial.throughput.as_ref().map(|value| format!("{value} tok/s")));
    parts.extend(trial.ttft_p99_ms.as_ref().map(|value| format!("TTFT p99 {value} ms")));
    parts.extend(errors(trial).map(|errors| format!("{errors} requests failed or came back short")));
    parts.extend(
        trial
            .margin_percent
            .as_ref()
            .map(|value| format!("margin {}", signed(value))),
    );
    if !trial.causes.is_empty() {
        parts.push(trial.causes.join(", "));
    }
    parts.join(", ")
}

/// `3 of 448`.
pub(crate) fn errors(trial: &TrialState) -> Option<String> {
    Some(format!("{} of {}", trial.errors?, trial.requests?))
}

/// `2 min 5 s`.
pub(crate) fn duration(length: TimeDelta) -> String {
    let seconds = length.num_seconds().max(0);
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// A time to the second, in UTC.
pub(crate) fn time(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// Number of trials by outcome: `2 passed, 1 missed`.
pub(crate) fn tally(facts: &Facts) -> String {
    let trials = &facts.status.state.trials;
    let count = |outcome| trials.iter().filter(|trial| trial.outcome == outcome).count();
    let parts: Vec<String> = [
        (Some(TrialOutcome::Pass), "passed"),
        (Some(TrialOutcome::Miss), "missed"),
        (Some(TrialOutcome::Invalid), "invalid"),
        (None, "running"),
    ]
    .into_iter()
    .filter(|(outcome, _)| count(*outcome) > 0)
    .map(|(outcome, word)| format!("{} {word}", count(outcome)))
    .collect();
    if parts.is_empty() {
        return "none".to_owned();
    }
    parts.join(", ")
}
