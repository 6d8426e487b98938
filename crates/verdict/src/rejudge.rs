//! Saved trials judged again, after what judges them changed.

use chrono::{DateTime, Utc};
use perfval_api::{
    Finding, PerfValidationSpec, PerfValidationStatus, TrialOutcome, TrialState, TrialsSpec, Verdict, Why,
};

use crate::close::{close, keep};
use crate::conclusion;
use crate::diagnosis::cause::Cause;
use crate::frame::TrialRecord;
use crate::gate::Share;
use crate::in_run;
use crate::norms::{Norm, Norms};
use crate::saved::SavedRun;
use crate::trial::{self, Evidence, JudgedTrial};
use crate::trials::{self, Ruling};

/// Saved trials of a run that were judged again, as far as the rule of the spec needs them.
#[derive(Clone, Debug)]
pub struct JudgedAgain {
    /// Status of the run with these trials and their findings.
    pub status: PerfValidationStatus,
    /// The trials, in the order of the status.
    pub trials: Vec<JudgedTrial>,
    /// Verdict with its reason; `None` if the rule needs more trials than were saved.
    pub conclusion: Option<(Verdict, Why)>,
}

/// Judges the saved trials of a run in order, until the rule of the spec decides, and writes them into a status that
/// holds the run's placement, workload and environment. Gates on a baseline are judged by `norms`. Fails with the reason
/// if the trials do not suffice; the status is unchanged then.
pub fn rejudge(
    spec: &PerfValidationSpec,
    status: &mut PerfValidationStatus,
    saved: &SavedRun,
    norms: &Norms,
    now: DateTime<Utc>,
) -> Result<(Verdict, Why), String> {
    let again = judge_again(spec, status, saved, norms, now)?;
    let conclusion = again.conclusion.ok_or_else(|| {
        format!(
            "the rule {:?} (max {}) asks for more trials than the {} that were saved",
            spec.trials.rule,
            spec.trials.max,
            again.trials.len()
        )
    })?;
    *status = again.status;
    Ok(conclusion)
}

/// Judges saved trials as [`rejudge`] does. Fails with the reason if a trial that was measured is not among the saved ones.
pub fn judge_again(
    spec: &PerfValidationSpec,
    status: &PerfValidationStatus,
    saved: &SavedRun,
    norms: &Norms,
    now: DateTime<Utc>,
) -> Result<JudgedAgain, String> {
    let mut next = status.clone();
    next.diagnosis = beside_the_trials(saved);
    // Each trial adds to the numbers of its workers.
    next.state.workers.clear();
    let mut trials = Vec::new();
    let measured = || saved.trials.iter().filter(|trial| trial.outcome.is_some());
    for before in measured() {
        if trials::ruling(spec, &next.state.trials) != Ruling::Continue {
            break;
        }
        match saved.records.get(&before.number) {
            Some(record) => {
                let norm = norms.find(status.state.environment.as_ref(), record);
                let judged = judged(spec, status, saved, before, (record, norm));
                next.state.trials.push(TrialState {
                    number: before.number,
                    seed: before.seed,
                    soak: before.soak,
                    started_at: before.started_at,
                    worker_loss: before.worker_loss,
                    ..TrialState::default()
                });
                let ended = before.completed_at.unwrap_or(now);
                close(spec, &mut next, before.number, &judged, ended);
                trials.push(judged);
            }
            None if left_no_measurement(before) => {
                next.state.trials.push(before.clone());
                for finding in findings(saved, &before.causes) {
                    keep(&mut next.diagnosis, finding.clone());
                }
                trials.push(unmeasured(before, saved));
            }
            None => return Err(format!("trial {} is not in the saved results", before.number)),
        }
    }
    keep_losses(&mut next, saved, measured().skip(trials.len()));
    Ok(JudgedAgain {
        conclusion: conclusion::conclude(spec, &next),
        status: next,
        trials,
    })
}

/// Causes that only the cluster showed when a trial ended; no record holds them.
fn losses() -> impl Iterator<Item = Cause> {
    Cause::ALL.into_iter().filter(|cause| cause.worker_loss().is_some())
}

/// Keeps the losses of workers in trials that the rule left out: no gate makes them undone.
fn keep_losses<'a>(
    status: &mut PerfValidationStatus,
    saved: &SavedRun,
    left_out: impl Iterator<Item = &'a TrialState>,
) {
    let Some(last) = status.state.trials.last_mut() else {
        return;
    };
    for trial in left_out.filter(|trial| trial.worker_loss.is_some()) {
        last.worker_loss = last.worker_loss.max(trial.worker_loss);
        let seen: Vec<String> = losses().map(|cause| cause.as_str().to_owned()).collect();
        let of_trial = findings(saved, &seen).filter(|finding| trial.causes.contains(&finding.cause));
        for finding in of_trial {
            keep(&mut status.diagnosis, finding.clone());
        }
    }
}

/// Returns true if a trial without a saved record is complete: no gates can judge it, because it left no measurement.
pub fn left_no_measurement(trial: &TrialState) -> bool {
    trial.outcome == Some(TrialOutcome::Invalid)
}

/// A trial that left no measurement, with the findings that the run saved about it.
fn unmeasured(before: &TrialState, saved: &SavedRun) -> JudgedTrial {
    let explained = findings(saved, &before.causes)
        .filter_map(|finding| Some((Cause::from_finding(finding)?, finding.clone())))
        .collect();
    JudgedTrial {
        findings: explained,
        worker_loss: before.worker_loss,
        ..JudgedTrial::unmeasured(Cause::BenchmarkFailed, "no measurement was saved", None)
    }
}

fn judged(
    spec: &PerfValidationSpec,
    status: &PerfValidationStatus,
    saved: &SavedRun,
    before: &TrialState,
    (record, norm): (&TrialRecord, Option<&Norm>),
) -> JudgedTrial {
    // For the names of the workers' pods. Equal pods before and after do not exclude a restart.
    let workers = &status.state.worker_pods;
    let plan = status.placement.as_ref();
    let evidence = Evidence {
        record,
        before: workers,
        after: workers,
        share: plan.map_or(Share::UNSCALED, |plan| Share::new(plan, &status.state.plan)),
        devices: &status.state.plan.device_ids,
        product: plan.and_then(|plan| plan.product.as_deref()),
        norm,
    };
    let mut judged = trial::judge(evidence, spec);
    for cause in losses() {
        if before.causes.iter().any(|known| known == cause.as_str()) {
            still_void(&mut judged, cause, saved, &spec.trials);
        }
    }
    judged
}

/// A worker that restarted voids the trial under any gates. Only errors come before it, as when it was first judged, unless
/// the node had no CPU for it.
fn still_void(judged: &mut JudgedTrial, cause: Cause, saved: &SavedRun, spec: &TrialsSpec) {
    if !judged.has(cause) {
        let word = [cause.as_str().to_owned()];
        let seen = findings(saved, &word).next().cloned();
        let finding = seen.unwrap_or_else(|| cause.finding("seen when the trial was measured"));
        judged.findings.insert(0, (cause, finding));
    }
    let too_many_errors = judged.requests.is_some_and(|(bad, all)| spec.exceeds_allowed(bad, all));
    if !too_many_errors || cause == Cause::NodeCPUPressure {
        judged.outcome = TrialOutcome::Invalid;
        // What it showed of the gates counts no more.
        judged.margins.clear();
        judged.far = false;
    }
}

/// Saved findings of these causes.
fn findings<'a>(saved: &'a SavedRun, causes: &'a [String]) -> impl Iterator<Item = &'a Finding> {
    saved.diagnosis.iter().filter(|finding| causes.contains(&finding.cause))
}

/// Findings apart from the trials, such as a slow start: no gate changes them. A baseline may have been
/// approved meanwhile. What explains many misses together is in no trial.
fn beside_the_trials(saved: &SavedRun) -> Vec<Finding> {
    let of_a_trial = |finding: &&Finding| saved.trials.iter().any(|trial| trial.causes.contains(&finding.cause));
    let others = saved.diagnosis.iter().filter(|finding| !of_a_trial(finding));
    let others = others.filter(|finding| !in_run::explains_a_miss(finding));
    let others = others.filter(|finding| finding.remedy != Cause::BaselineMissing.remedy());
    others.cloned().collect()
}

#[cfg(test)]
mod tests {
    use perfval_api::{Metric, Statistic};
    use rust_decimal::Decimal;
    use serde_json::json;

    use super::*;
    use crate::aiperf::Report;
    use crate::frame::Outcome;

    #[test]
    fn a_restart_voids_a_trial_again_unless_it_has_too_many_errors() {
        let seen = Cause::WorkerRestarted.finding("worker w0 restarted");
        let saved = SavedRun {
            diagnosis: vec![seen.clone()],
            ..SavedRun::default()
        };
        for (cause, allowed, outcome) in [
            (Cause::WorkerRestarted, "4.9", TrialOutcome::Miss),
            (Cause::WorkerRestarted, "5", TrialOutcome::Invalid),
            (Cause::NodeCPUPressure, "4", TrialOutcome::Invalid),
        ] {
            let mut judged = JudgedTrial {
                outcome: TrialOutcome::Miss,
                requests: Some((5, 100)),
                ..JudgedTrial::unmeasured(Cause::RequestErrors, "5 failed", None)
            };
            let spec = TrialsSpec {
                max_failed_requests_percent: allowed.to_owned(),
                ..TrialsSpec::default()
            };
            still_void(&mut judged, cause, &saved, &spec);
            assert_eq!(judged.outcome, outcome, "{cause:?}, {allowed} % allowed");
            assert_eq!(judged.findings[0].0, cause);
            if cause == Cause::WorkerRestarted {
                assert_eq!(judged.findings[0].1, seen);
            }
        }
    }

    #[test]
    fn a_saved_soak_stays_one() {
        let record = TrialRecord::new(Outcome::Report(Box::new(Report {
            succeeded: 10,
            complete: true,
            metrics: [(
                Metric::OutputTokenThroughput,
                [(Statistic::Avg, Decimal::ONE_THOUSAND)].into(),
            )]
            .into(),
            ..Report::default()
        })));
        let trial = |number| TrialState {
            number,
            seed: Some(99 + number),
            soak: number == 3,
            outcome: Some(TrialOutcome::Pass),
            ..TrialState::default()
        };
        let saved = SavedRun {
            trials: (1..=3).map(trial).collect(),
            records: (1..=3).map(|number| (number, record.clone())).collect(),
            ..SavedRun::default()
        };
        let spec: PerfValidationSpec = serde_json::from_value(json!({
            "model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1"}}, "benchmark": {"soak": "10m"},
            "gates": [{"name": "g", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "800"}],
        }))
        .unwrap();
        let mut status = PerfValidationStatus::default();
        let (verdict, _) = rejudge(&spec, &mut status, &saved, &Norms::default(), DateTime::UNIX_EPOCH).unwrap();
        let kept = status.state.trials.iter().map(|trial| (trial.soak, trial.seed));
        let expected = [(false, Some(100)), (false, Some(101)), (true, Some(102))];
        assert_eq!(
            (verdict, kept.collect::<Vec<_>>()),
            (Verdict::Passed, expected.to_vec())
        );
        assert_eq!(status.state.trials[0].margin_percent.as_deref(), Some("25"));
        // 1 - 1 / (1 + 3.078 × 0.1) / 1.25
        assert_eq!(status.state.detectable_loss_percent.as_deref(), Some("38.9"));
    }
}
