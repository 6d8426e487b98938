//! Evaluating: the verdict is computed and everything that supports it is saved, before anything is deleted.

mod rejudging;

use std::collections::BTreeMap;
use std::time::Duration;

use perfval_api::{Phase, Reason, ResultsRef, TrialState, Verdict, Why};
use perfval_sizing::Seen;
use perfval_verdict::{conclusion, history};

use super::definition::{Definition, QUICK, Timed, give_up};
use crate::attendance::Limit;
use crate::build::PackedTrial;
use crate::decision::Effect;
use crate::diagnosis::error_logs;
use crate::observed::{Child, ChildRef, Need, Needs};
use crate::pass::{Pass, Step};
use crate::run::Run;
use crate::{build, names, norms};

/// Time in which a run that holds objects reads the saved trials.
const KEPT: Duration = Duration::from_mins(10);
/// The ConfigMap is not watched: it is looked for right after it was written.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Pause after a read that failed: each reads every trial's log again.
const READ_AGAIN: Duration = Duration::from_secs(2);
/// Earlier runs that are looked through for results: a forged run number must not make a pass long.
const LOOKED_THROUGH: usize = 10_000;
/// One text from the first pass to the last: the saved summary holds the status, and must not differ between passes.
pub(crate) const SAVING: &str = "the trials decide; saving the results";

pub(super) const PHASE: Definition = Definition {
    needs,
    step,
    timed: Some(Timed {
        limit: |_, status, began| match (status.state.judged_run, status.state.leftovers) {
            (None, _) => Some(Limit::new(began, QUICK)),
            // The objects of a kept run are removed only once it is over.
            (Some(_), Some(_)) => Some(Limit::new(began, KEPT)),
            // A run that judges saved trials again holds nothing: it waits for as long as they cannot be read.
            (Some(_), None) => None,
        },
        expired: |pass, why| match pass.status.state.judged_run {
            Some(_) => give_up(pass, why.reason, why, "the time to read them"),
            None => end_without_results(pass, why),
        },
    }),
};

fn needs(run: &Run<'_>) -> Needs {
    if run.status().state.judged_run.is_some() {
        return Needs::new([Need::SavedRun].into_iter().chain(norms::need(run)));
    }
    let trials = run.status().state.trials.iter();
    let finished = trials.filter(|trial| trial.outcome.is_some());
    let logs = (!error_logs::trials(run).is_empty()).then_some(Need::Workload);
    Needs {
        finished_trials: finished.map(|trial| trial.number).collect(),
        ..Needs::new([Need::Results].into_iter().chain(logs))
    }
}

fn step(pass: &mut Pass<'_>) -> Step {
    if let Some(judged_run) = pass.status.state.judged_run {
        return rejudging::step(pass, judged_run);
    }
    pass.look_again_in(READ_AGAIN);
    pass.status.state.comparison = history::compare(&pass.status);
    let (verdict, why) = match conclude(pass) {
        Ok(conclusion) => conclusion,
        Err(step) => return step,
    };
    if let Some(sha256) = pass.seen.written_results.clone() {
        return end(pass, verdict, why, sha256);
    }
    let trials = match packed_trials(pass) {
        Ok(trials) => trials,
        Err(unread) => return Step::wait(Reason::Running, format!("saving the results: {unread}")),
    };
    let logs = error_logs::texts(pass.run, &pass.seen.error_logs);
    let results = build::results(pass.run, verdict, &why, &trials, &logs);
    let sha256 = build::results_sha256(&results);
    match &pass.seen.results {
        Seen::Present(Some(saved)) if *saved == sha256 => end(pass, verdict, why, sha256),
        Seen::Present(_) | Seen::Absent => {
            pass.act(Effect::SaveResults(Box::new(results)));
            pass.look_again_in(LOOK_AGAIN);
            Step::wait(Reason::Running, SAVING)
        }
        unread => Step::unread(Reason::Running, "saving the results", unread),
    }
}

/// Ends the run, whose results are saved.
fn end(pass: &mut Pass<'_>, verdict: Verdict, why: Why, sha256: String) -> Step {
    if matches!(pass.seen.saved_results, Seen::NotAsked) {
        return pass.read([Need::SavedResults]);
    }
    let name = names::results(pass.run.name(), &pass.run.id());
    pass.status.results_ref = Some(ResultsRef { name, sha256 });
    for old in outdated(pass) {
        pass.act(Effect::Delete(old));
    }
    Step::End(verdict, why)
}

/// Every trial that left a complete frame. A log that cannot be read now may be readable in a moment. A trial is left
/// out if its log is gone or holds no frame.
fn packed_trials(pass: &Pass<'_>) -> Result<BTreeMap<i64, PackedTrial>, String> {
    let mut trials = BTreeMap::new();
    for TrialState { number, .. } in &pass.status.state.trials {
        match pass.seen.packed_trials.get(number) {
            Some(Seen::Present(packed)) => {
                trials.insert(*number, packed.clone());
            }
            Some(Seen::Unknown(why)) => return Err(format!("log of trial {number}: {why}")),
            Some(Seen::Absent | Seen::NotAsked) | None => {}
        }
    }
    Ok(trials)
}

/// Results of runs that are older than those that the spec keeps. What cannot be listed now is deleted by a later run.
fn outdated(pass: &Pass<'_>) -> Vec<ChildRef> {
    let saved = pass.seen.saved_results.present().into_iter().flatten();
    let saved: Vec<&Child> = saved.filter(|results| results.ours && !results.deleting).collect();
    let last = pass.run.status().run.as_ref().map_or(0, |run| run.number);
    let limit = usize::try_from(pass.run.spec().results_history_limit).unwrap_or_default();
    // A run that judged again or gave way has a number and no results.
    let earlier = (1..last).rev().take(LOOKED_THROUGH);
    // Its own id too: a status without its run, as an operator older than the CRD left it, made a run delete what it had
    // just saved (seen on the lab).
    let kept: Vec<String> = earlier
        .map(|number| names::run_id(pass.run.uid(), number))
        .filter(|id| saved.iter().any(|results| results.run == *id))
        .take(limit)
        .chain([pass.run.id()])
        .collect();
    let outdated = saved.into_iter().filter(|results| !kept.contains(&results.run));
    outdated.map(|results| results.id.clone()).collect()
}

/// The time limit passed: the numbers are in the status, so the verdict is valid without the full exports.
fn end_without_results(pass: &mut Pass<'_>, waited: &Why) -> Step {
    match conclude(pass) {
        Ok((verdict, why)) => {
            let message = format!("{} (full results not saved: {})", why.message, waited.message);
            Step::End(verdict, Why { message, ..why })
        }
        Err(step) => step,
    }
}

/// The verdict of the trials; `Err` if there is none any more, because the spec that they were made for changed.
fn conclude(pass: &Pass<'_>) -> Result<(Verdict, Why), Step> {
    let status = &pass.status;
    if let Some(failure) = &status.state.failure {
        return Ok(conclusion::conclude_early(status, failure));
    }
    conclusion::conclude(pass.run.spec(), status).ok_or_else(|| {
        let why = "the spec changed before the verdict was saved: this run stops, a new one follows";
        Step::go(Phase::CleaningUp, Reason::Interrupted, why)
    })
}
