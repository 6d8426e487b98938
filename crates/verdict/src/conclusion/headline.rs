//! A verdict in one line.

use std::str::FromStr as _;

use perfval_api::text::{HEADLINE, cut, number_of};
use perfval_api::{
    Finding, Gate, GateOperator, GateResult, GateStatus, PerfValidationSpec, PerfValidationStatus, Reason, Scaling,
    TrialOutcome, TrialState, Verdict, quantity,
};
use rust_decimal::Decimal;

use crate::diagnosis::cause::Cause;
use crate::diagnosis::missing;
use crate::trials::{claim, mean_near_gate};

/// Requirements of a spec, in one line.
pub fn asked(spec: &PerfValidationSpec) -> String {
    let gpus = spec.placement.max_gpus.map_or_else(
        || "all free GPUs".to_owned(),
        |max| format!("up to {}", number_of(max, "GPU")),
    );
    let gates: Vec<String> = spec
        .gates
        .iter()
        .map(|gate| {
            let scaled = match gate.scaling {
                Scaling::None => "",
                Scaling::PerGpu => " per GPU",
                Scaling::ByGpuShare => " by all GPUs of a node",
            };
            format!(
                "{} {} {} {}{scaled}",
                gate.name,
                gate.operator.sign(),
                gate.threshold,
                gate.metric.unit()
            )
        })
        .collect();
    let gates = Some(gates.join(", ")).filter(|gates| !gates.is_empty());
    format!(
        "{} on {gpus} of one node, {} requests in flight each; gates: {}",
        spec.model.name,
        spec.benchmark.concurrency_per_gpu,
        gates.as_deref().unwrap_or("none")
    )
}

/// The verdict in one line, the most important part first: for a pass the node and the measurements, otherwise the
/// gate, its distance and the cause. Only a pass may be longer than a headline.
pub fn message(
    spec: &PerfValidationSpec,
    status: &PerfValidationStatus,
    verdict: Verdict,
    reason: Reason,
    findings: &[&Finding],
) -> String {
    let placement = status.placement.as_ref();
    let missing = placement.and_then(|plan| missing::missing(plan, &status.state.plan));
    let missing = missing.as_ref().map(in_words);
    let place = placement.map_or(String::new(), |plan| {
        format!("{}/{} GPUs on {}", plan.gpus, plan.node_gpus, plan.node)
    });
    let change = status.state.comparison.as_ref().map(crate::history::in_words);
    let trials = counted(&status.state.trials);
    if verdict == Verdict::Passed {
        let gates: Vec<String> = judged(spec, status).map(|(gate, judged)| shown(gate, judged)).collect();
        // A slow GPU is always reported, even if all gates are met.
        let mut found = status.diagnosis.iter();
        let slow = found.find(|finding| finding.cause == Cause::SlowWorker.as_str());
        let parts: Vec<String> = [gates.join(", "), trials]
            .into_iter()
            .chain(slow.map(in_words))
            .chain(claim(spec, status).map(|claim| claim.in_words()))
            .chain(missing)
            .chain(change)
            .collect();
        return format!("{place}: {}", parts.join("; "));
    }
    let missed: Vec<String> = judged(spec, status)
        .filter(|(_, judged)| judged.result == GateResult::Missed)
        .map(|(gate, judged)| missed(gate, judged))
        .collect();
    let gates = (!missed.is_empty() && verdict != Verdict::Error).then(|| shortened(&missed));
    let (decisive, further) = match reason {
        Reason::GPUsMissing => (missing, None),
        _ => (None, missing),
    };
    let mean = || mean_near_gate(&status.state.trials);
    let near = match reason {
        Reason::TrialsDisagree => mean().map(|mean| (mean, ", too near to decide")),
        // The last trial met the gates that the mean over all trials misses.
        Reason::GatesMissed if missed.is_empty() => mean().filter(|mean| *mean < 0.0).map(|mean| (mean, "")),
        _ => None,
    };
    let near = near.map(|(mean, note)| {
        let soaks = status.state.trials.iter().any(|trial| trial.soak);
        let kind = if soaks { "soaks" } else { "trials" };
        let side = if mean < 0.0 { "worse" } else { "better" };
        format!("the {kind}' mean is {:.1} % {side} than the gate{note}", mean.abs())
    });
    let found = findings.iter().map(|finding| match findings {
        [_] => in_words(finding),
        // Both fit into the line without the details in brackets.
        _ => in_words(finding)
            .split(" (allowed")
            .next()
            .unwrap_or_default()
            .to_owned(),
    });
    let before = [near, gates, decisive].into_iter().flatten();
    let essential: Vec<String> = before.chain(found).chain(further).collect();
    within_a_line(essential.join("; "), change.into_iter().chain([trials, place]))
}

/// Adds parts as long as they fit into the line that conditions show.
fn within_a_line(essential: String, more: impl Iterator<Item = String>) -> String {
    let line = more.filter(|part| !part.is_empty()).fold(essential, |line, part| {
        if line.is_empty() {
            part
        } else if line.len() + 2 + part.len() <= HEADLINE {
            format!("{line}; {part}")
        } else {
            line
        }
    });
    cut(&line, HEADLINE)
}

fn judged<'a>(
    spec: &'a PerfValidationSpec,
    status: &'a PerfValidationStatus,
) -> impl Iterator<Item = (&'a Gate, &'a GateStatus)> {
    spec.gates.iter().filter_map(|gate| {
        let judged = status.gates.iter().find(|judged| judged.name == gate.name)?;
        Some((gate, judged))
    })
}

/// A gate of a run that passed: one of mode `Warn` may have been missed.
fn shown(gate: &Gate, judged: &GateStatus) -> String {
    match judged.result {
        GateResult::Met => met(gate, judged),
        GateResult::Missed => missed(gate, judged),
        GateResult::Warned => format!("{} (missed, only a warning)", missed(gate, judged)),
        GateResult::Unmeasured => format!(
            "{} not measured ({} {} {})",
            gate.name,
            gate.operator.sign(),
            judged.effective,
            gate.metric.unit()
        ),
    }
}

fn met(gate: &Gate, judged: &GateStatus) -> String {
    let observed = judged.observed.as_deref().unwrap_or("nothing");
    let (unit, sign) = (gate.metric.unit(), gate.operator.sign());
    format!("{} {observed} {unit} ({sign} {})", gate.name, judged.effective)
}

/// `throughput 900 tok/s, 10 % below 1000`.
fn missed(gate: &Gate, judged: &GateStatus) -> String {
    let observed = judged.observed.as_deref().unwrap_or("nothing");
    let near = near(observed, &judged.effective, gate.operator).unwrap_or_else(|| gate.operator.sign().to_owned());
    format!(
        "{} {observed} {}, {near} {}",
        gate.name,
        gate.metric.unit(),
        judged.effective
    )
}

/// Distance of a number from the threshold that it misses: `10 % below`.
fn near(observed: &str, effective: &str, operator: GateOperator) -> Option<String> {
    let (observed, effective) = (Decimal::from_str(observed).ok()?, Decimal::from_str(effective).ok()?);
    let percent = quantity::change_percent(effective, observed)?;
    // Both numbers are rounded, and may be equal.
    let side = match operator {
        GateOperator::AtLeast => "below",
        GateOperator::AtMost => "above",
    };
    let shown = percent.abs().round_dp(1).normalize();
    Some(if shown.is_zero() {
        format!("just {side}")
    } else {
        format!("{shown} % {side}")
    })
}

fn shortened(missed: &[String]) -> String {
    match missed {
        [first, second] => format!("{first}, {second}"),
        [first, more @ ..] if !more.is_empty() => format!("{first} (and {} more gates missed)", more.len()),
        missed => missed.concat(),
    }
}

fn counted(trials: &[TrialState]) -> String {
    let of = |outcome| trials.iter().filter(|trial| trial.outcome == Some(outcome)).count();
    let counts = [
        (of(TrialOutcome::Pass), "passed"),
        (of(TrialOutcome::Miss), "missed"),
        (of(TrialOutcome::Invalid), "invalid"),
    ];
    let some: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    format!("trials: {}", some.join(", "))
}

/// A cause with its evidence; what only repeats the gate's numbers is left out.
fn in_words(finding: &Finding) -> String {
    if Cause::from_finding(finding).is_some_and(Cause::repeats_gates) {
        return finding.cause.clone();
    }
    format!("{}: {}", finding.cause, finding.evidence)
}
