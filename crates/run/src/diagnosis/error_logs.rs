//! Last lines of the frontend and the workers in a trial with errors. They are part of the results, because the pods
//! are gone by the time the user reads the verdict.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use k8s_openapi::api::core::v1::Pod;
use kube::core::ResourceExt as _;
use perfval_api::{Phase, TrialState};

use super::log::clean;
use crate::names::dynamo::MAIN;
use crate::observed::{ErrorLog, LogRequest};
use crate::readiness::{Pods, container_statuses};
use crate::run::Run;

/// Trials whose lines are kept, the last ones: earlier lines are the first that a node removes.
const TRIALS: usize = 2;
/// Bytes of one container in one trial: a traceback of vLLM has about a hundred lines.
const CONTAINER_BYTES: usize = 16 << 10;
/// Bytes of one trial. Two of them leave five sixths of a results ConfigMap to the measurements.
const TRIAL_BYTES: usize = 72 << 10;

/// Trials in which more requests failed than allowed, or a worker restarted or was lost.
pub fn trials<'a>(run: &Run<'a>) -> Vec<&'a TrialState> {
    let spec = &run.spec().trials;
    let had_errors = |trial: &&TrialState| {
        let share = trial.errors.zip(trial.requests);
        let too_many = share.is_some_and(|(bad, all)| spec.exceeds_allowed(bad, all));
        trial.completed_at.is_some() && (too_many || trial.worker_loss.is_some())
    };
    let mut found: Vec<&TrialState> = run.status().state.trials.iter().filter(had_errors).collect();
    found.drain(..found.len().saturating_sub(TRIALS));
    found
}

/// The logs that such a run keeps: of each frontend and worker, and of its container before, where that ended.
pub fn wanted(run: &Run<'_>, pods: &[Pod]) -> Vec<LogRequest> {
    let status = run.status();
    let saves = status.phase == Some(Phase::Evaluating) && status.state.judged_run.is_none();
    if !saves || trials(run).is_empty() {
        return Vec::new();
    }
    let of_pod = |pod: &Pod| {
        let restarted = container_statuses(pod).any(|container| container.name == MAIN && container.restart_count > 0);
        let request = |previous| LogRequest::new(pod.name_any(), MAIN, previous);
        let before = restarted.then(|| request(true));
        before.into_iter().chain([request(false)])
    };
    Pods::new(pods, &run.id()).all().flat_map(of_pod).collect()
}

/// The last lines of each of these trials in a log whose lines begin with their time. Lines printed after a trial are
/// left out: the text must be the same in every pass, because its digest decides if it is saved.
pub fn cut(run: &Run<'_>, log: &str) -> BTreeMap<i64, String> {
    let log = clean(run, log);
    let times: Vec<(DateTime<Utc>, &str)> = log.lines().filter_map(|line| Some((time_of(line)?, line))).collect();
    let of_trial = |trial: &TrialState| {
        let until = trial.completed_at?;
        let within = times
            .iter()
            .filter(|(time, _)| (trial.started_at..=until).contains(time));
        let lines: Vec<&str> = within.map(|(_, line)| *line).collect();
        Some((trial.number, last(&lines, CONTAINER_BYTES)))
    };
    trials(run).into_iter().filter_map(of_trial).collect()
}

fn time_of(line: &str) -> Option<DateTime<Utc>> {
    let (time, _) = line.split_once(' ')?;
    Some(DateTime::parse_from_rfc3339(time).ok()?.to_utc())
}

/// The last whole lines that fit.
fn last(lines: &[&str], bytes: usize) -> String {
    let mut room = bytes;
    let fits = |line: &&&str| {
        let left = room.checked_sub(line.len() + 1);
        room = left.unwrap_or(0);
        left.is_some()
    };
    let mut kept: Vec<&str> = lines.iter().rev().take_while(fits).copied().collect();
    kept.reverse();
    kept.iter().flat_map(|line| [*line, "\n"]).collect()
}

/// One text for each trial with errors, by its number; containers share the room.
pub fn texts(run: &Run<'_>, logs: &[ErrorLog]) -> BTreeMap<i64, String> {
    let share = TRIAL_BYTES.checked_div(logs.len()).unwrap_or(TRIAL_BYTES);
    let of_container = |trial: &TrialState, log: &ErrorLog| {
        let of = &log.of;
        let previous = if of.previous { ", before its restart" } else { "" };
        let head = format!("==> {}, container {}{previous} <==\n", of.pod, of.container);
        let text = match (log.trials.present(), log.trials.unknown()) {
            (Some(found), _) => found.get(&trial.number).map_or("", String::as_str).to_owned(),
            (None, Some(why)) => format!("not read: {why}\n"),
            (None, None) => "no longer on the node\n".to_owned(),
        };
        let lines: Vec<&str> = text.lines().collect();
        let text = last(&lines, share.saturating_sub(head.len()));
        let nothing = if text.is_empty() { "no line of this trial\n" } else { "" };
        format!("{head}{text}{nothing}")
    };
    let of_trial = |trial: &TrialState| -> String { logs.iter().map(|log| of_container(trial, log)).collect() };
    let trials = trials(run).into_iter().filter(|_| !logs.is_empty());
    trials.map(|trial| (trial.number, of_trial(trial))).collect()
}
