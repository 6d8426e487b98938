//! Healthy trials under gates that nothing can meet: what explains a missed gate is looked for only then, and nobody is at
//! fault.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use perfval_api::Gate;
use perfval_verdict::diagnosis::cause::Cause;
use serde_json::json;

use crate::corpus::LabRun;
use crate::fault::Fault;

/// Causes that say that gates are missed, and accuse nobody.
pub(super) const OF_NOBODY: [Cause; 3] = [Cause::BalancedDegradation, Cause::FarBelowGate, Cause::TailLatency];

/// A gate that nothing can meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forced {
    Throughput,
    FirstToken,
}

impl Forced {
    fn gates(self) -> Vec<Gate> {
        let gate = match self {
            Self::Throughput => {
                json!({"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1000000000"})
            }
            Self::FirstToken => {
                json!({"name": "ttft-p99", "metric": "TimeToFirstToken", "statistic": "P99", "operator": "<=", "threshold": "0.001"})
            }
        };
        serde_json::from_value(gate).into_iter().collect()
    }
}

/// Causes of each healthy trial once this gate is missed, with their evidence.
fn blamed(run: &LabRun, forced: Forced) -> Vec<Vec<String>> {
    let trials = run.judge(&forced.gates()).into_iter();
    let blamed = trials.map(|trial| {
        let found = trial.findings.iter().filter(|(cause, _)| !OF_NOBODY.contains(cause));
        found
            .map(|(cause, finding)| format!("{}: {}", cause.name(), finding.evidence))
            .collect()
    });
    blamed.collect()
}

/// Number of healthy trials that blame a part under either gate, and of all.
pub(super) fn counted(runs: &[LabRun]) -> (usize, usize) {
    let healthy = || runs.iter().filter(|run| run.fault == Fault::Healthy);
    let blames = healthy().map(|run| {
        let (one, other) = (blamed(run, Forced::Throughput), blamed(run, Forced::FirstToken));
        let either = one
            .iter()
            .zip(&other)
            .filter(|(one, other)| !one.is_empty() || !other.is_empty());
        either.count()
    });
    (blames.sum(), healthy().map(|run| run.trials.len()).sum())
}

/// Healthy trials that blame somebody, each with its evidence.
pub(super) fn list(page: &mut String, runs: &[LabRun]) {
    let mut texts: BTreeMap<String, usize> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.fault == Fault::Healthy) {
        for forced in [Forced::Throughput, Forced::FirstToken] {
            for blamed in blamed(run, forced).into_iter().filter(|blamed| !blamed.is_empty()) {
                let text = format!("{}, {}: {}", run.place.as_str(), run.router.flag(), blamed.join("; "));
                *texts.entry(text).or_default() += 1;
            }
        }
    }
    if texts.is_empty() {
        return;
    }
    page.push_str("\n### Healthy trials that blame somebody\n\nUnder gates that nothing can meet:\n\n");
    for (text, times) in texts {
        let _ = writeln!(page, "* {text} ({times})");
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use perfval_verdict::frame::Outcome;
    use rust_decimal::Decimal;

    use super::*;
    use crate::corpus;

    fn healthy() -> LabRun {
        let runs = corpus::read(Path::new("recorded.jsonl.gz")).expect("the recorded runs");
        let healthy = |run: &LabRun| run.fault == Fault::Healthy && !run.trials[0].series.is_empty();
        runs.into_iter().find(|run| healthy(run)).expect("a healthy one")
    }

    #[test]
    fn a_gate_that_nothing_can_meet_is_missed_by_a_healthy_trial() {
        let run = healthy();
        for forced in [Forced::Throughput, Forced::FirstToken] {
            let [gate] = &forced.gates()[..] else {
                panic!("{forced:?} is no gate")
            };
            let trial = &run.judge(std::slice::from_ref(gate))[0];
            assert_eq!(trial.outcome, perfval_api::TrialOutcome::Miss, "{forced:?}");
            assert!(blamed(&run, forced)[0].is_empty(), "{:?}", blamed(&run, forced));
        }
    }

    #[test]
    fn a_frontend_that_holds_requests_back_is_blamed() {
        let mut run = healthy();
        for trial in &mut run.trials {
            if let Outcome::Report(report) = &mut trial.record.outcome {
                report.frontend.request_ms = Some(Decimal::from(60_000));
            }
        }
        assert!(blamed(&run, Forced::Throughput)[0][0].starts_with("FrontendBound"));
        let runs = [run];
        assert_eq!(counted(&runs), (runs[0].trials.len(), runs[0].trials.len()));
        let mut page = String::new();
        list(&mut page, &runs);
        assert!(
            page.contains("* rig") || page.contains("* lab") || page.contains("* silicon"),
            "{page}"
        );
    }
}
