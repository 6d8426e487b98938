//! Findings of a whole run: what its trials show together goes before what one of them shows.

use perfval_api::{Finding, PerfValidationStatus, TrialOutcome, Word};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use crate::diagnosis::cause::Cause;
use crate::diagnosis::speed::{self, Compared, SpeedSpread};
use crate::gate::show;
use crate::stats::rounded;
use crate::trial::JudgedTrial;
use crate::trials::Ruling;
use crate::workers::AgainstPeers;

/// Words of causes that explain the same miss in different ways: only those of the newest miss count for the run.
const OF_A_MISS: [Word; 2] = [Word::BalancedDegradation, Word::LatencyMissed];

/// Misses for each pass from which on jitter does not explain them.
const MISSES_FOR_A_PASS: usize = 4;

/// Words of causes that the metrics of a GPU show.
const OF_A_GPU: [Word; 2] = [Word::GPUDegraded, Word::GPUShared];

/// Averages the speed of each worker over the trials of the run, and reports the slow ones by that alone: of many
/// comparisons one is extreme by chance.
pub(crate) fn name_slow_workers(status: &mut PerfValidationStatus, judged: &mut JudgedTrial) {
    let known = &status.state.workers;
    for load in &mut judged.workers {
        let before = known.iter().find(|before| before.name == load.name);
        load.in_run = before.and_then(|before| before.in_run.clone());
    }
    if judged.compared.is_empty() {
        return;
    }
    let averaged: Vec<Compared> = judged.compared.iter().map(|one| averaged(one, status)).collect();
    // A worker that this trial did not compare stays what the trials before found it to be.
    let mut before = known.iter().filter(|load| load.in_run.is_some());
    let all = before.all(|load| averaged.iter().any(|worker| worker.name == load.name));
    for worker in &averaged {
        if let Some(load) = judged.workers.iter_mut().find(|load| load.name == worker.name) {
            load.in_run = Some(worker.peers.shown(worker.trials));
        }
    }
    let detectable = SpeedSpread::from_compared(&averaged).and_then(|spread| spread.detectable);
    judged.metrics.detectable_slowdown_percent = detectable.map(show);
    // A missed gate on the slowest worker reports it for its own trial.
    let by_gate = !speed::any_slow(&judged.compared);
    let slower = speed::slower(&averaged);
    let stays = by_gate && slower.is_none();
    judged
        .findings
        .retain(|(cause, _)| *cause != Cause::SlowWorker || stays);
    judged.slow_gpus = speed::slow_gpus(&averaged);
    if all {
        status
            .diagnosis
            .retain(|finding| finding.cause != Cause::SlowWorker.as_str());
        for trial in &mut status.state.trials {
            trial.slow_gpus.clear();
            if slower.is_none() && trial.outcome == Some(TrialOutcome::Pass) {
                trial.causes.retain(|cause| cause != Cause::SlowWorker.as_str());
            }
        }
    }
    if let Some(text) = slower {
        // The trial alone found all of them alike.
        if by_gate {
            judged.drop_cause(Cause::BalancedDegradation);
        }
        judged.add(Cause::SlowWorker, text);
    }
}

/// The speed of a worker in this trial and those before it.
fn averaged(now: &Compared, status: &PerfValidationStatus) -> Compared {
    let with_earlier = || {
        let load = status.state.workers.iter().find(|load| load.name == now.name)?;
        let before = load.in_run.as_ref()?;
        let number = |text: &str| text.parse::<Decimal>().ok()?.to_f64();
        let (percent, within) = (number(&before.percent)?, number(&before.within)?);
        let (own, interval) = (now.peers.percent.to_f64()?, now.peers.within.to_f64()?);
        let trials = Decimal::from(before.of).to_f64()?;
        let all = trials + 1.0;
        let peers = AgainstPeers {
            percent: rounded((trials * percent + own) / all, 2)?,
            within: rounded((trials * within).hypot(interval) / all, 2)?,
        };
        Some(Compared {
            peers,
            trials: before.of.saturating_add(1),
            ..now.clone()
        })
    };
    with_earlier().unwrap_or_else(|| now.clone())
}

/// Replaces [`Cause::KneeJitter`] while no trial of the run passed: a limit that every trial misses is not missed by jitter.
pub(crate) fn explain_without_jitter(status: &PerfValidationStatus, judged: &mut JudgedTrial) {
    let mut trials = status.state.trials.iter();
    let passed = trials.any(|trial| trial.outcome == Some(TrialOutcome::Pass));
    if !passed
        && judged.drop_cause(Cause::KneeJitter)
        && let Some((cause, text)) = judged.instead_of_jitter.clone()
    {
        judged.add(cause, text);
    }
}

/// Takes [`Cause::KneeJitter`] out of a run that nearly every trial missed, because jitter does not explain that; the result is
/// the finding in its place.
pub(crate) fn explain_many_misses(status: &mut PerfValidationStatus, judged: &JudgedTrial) -> Option<Finding> {
    let ended = |outcome| {
        let trials = status.state.trials.iter();
        trials.filter(|trial| trial.outcome == Some(outcome)).count()
    };
    if ended(TrialOutcome::Miss) < MISSES_FOR_A_PASS * ended(TrialOutcome::Pass) {
        return None;
    }
    let of_jitter = |finding: &Finding| Cause::from_finding(finding) == Some(Cause::KneeJitter);
    let at = status.diagnosis.iter().position(of_jitter)?;
    let instead = judged.instead_of_jitter.clone();
    let explains = |cause: Cause| cause != Cause::KneeJitter && cause.explains_an_outcome();
    let mut others = status.diagnosis.iter().filter_map(Cause::from_finding);
    if instead.is_some() || others.any(explains) {
        status.diagnosis.remove(at);
    }
    let (cause, text) = instead?;
    Some(cause.finding(text))
}

/// Adds the workers by which a gate on a baseline was missed to the slow worker that peers or the own past name, else to what all
/// share. The GPU of an only worker explains it already.
pub(crate) fn explain_by_baseline(judged: &mut JudgedTrial) {
    let Some(below) = judged.below_baseline.take() else {
        return;
    };
    let of_the_gpu = judged
        .findings
        .iter()
        .any(|(cause, _)| OF_A_GPU.contains(&cause.word()));
    if judged.workers.len() == 1 && of_the_gpu {
        return;
    }
    if !judged.append(Cause::SlowWorker, &below) && !judged.append(Cause::BalancedDegradation, &below) {
        judged.add(Cause::BalancedDegradation, below);
    }
}

/// Returns true if the finding explains a miss by the load, by tails, or by what all workers share.
pub(crate) fn explains_a_miss(finding: &Finding) -> bool {
    OF_A_MISS.iter().any(|word| word.as_str() == finding.cause)
}

/// Removes the explanations of earlier misses that a new miss explains otherwise.
pub(crate) fn forget_other_explanations(status: &mut PerfValidationStatus, judged: &JudgedTrial) {
    let explained = judged.findings.iter().any(|(_, finding)| explains_a_miss(finding));
    if explained {
        status.diagnosis.retain(|finding| !explains_a_miss(finding));
    } else if judged.has(Cause::SlowWorker) {
        let alike = Cause::BalancedDegradation.as_str();
        status.diagnosis.retain(|finding| finding.cause != alike);
    }
}

/// Removes the causes of misses and voided trials that a pass has absorbed. The trials keep them.
pub(crate) fn forget_absorbed(status: &mut PerfValidationStatus, ruling: Ruling) {
    let trials = &status.state.trials;
    // A run that lost a worker does not pass, even if its trials do.
    if ruling != Ruling::Pass || trials.iter().any(|trial| trial.worker_loss.is_some()) {
        return;
    }
    status.diagnosis.retain(|finding| {
        let named_by = |passed: bool| {
            let mut named = trials.iter().filter(|trial| trial.causes.contains(&finding.cause));
            named.any(|trial| (trial.outcome == Some(TrialOutcome::Pass)) == passed)
        };
        let of_a_trial = Cause::from_finding(finding).is_some_and(Cause::explains_an_outcome);
        !of_a_trial || named_by(true) || !named_by(false)
    });
}

#[cfg(test)]
mod tests {
    use perfval_api::WorkerLoad;

    use super::*;

    #[test]
    fn the_gpu_of_an_only_worker_explains_a_missed_baseline() {
        let causes = |cause, workers| {
            let mut trial = JudgedTrial {
                below_baseline: Some("below".to_owned()),
                workers: vec![WorkerLoad::default(); workers],
                ..JudgedTrial::unmeasured(cause, "seen", None)
            };
            explain_by_baseline(&mut trial);
            let causes = trial.findings.iter().map(|(cause, _)| *cause);
            causes.collect::<Vec<_>>()
        };
        assert_eq!(causes(Cause::GPUShared, 1), [Cause::GPUShared]);
        assert_eq!(
            causes(Cause::GPUShared, 2),
            [Cause::GPUShared, Cause::BalancedDegradation]
        );
        assert_eq!(
            causes(Cause::TransientStall, 1),
            [Cause::TransientStall, Cause::BalancedDegradation]
        );
    }
}
