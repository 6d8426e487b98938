//! Ownership and end of a Job.

use k8s_openapi::api::batch::v1::{Job, JobCondition};
use kube::core::ResourceExt as _;
use perfval_api::meta::RUN_LABEL;

use crate::diagnosis::pods::Trouble;
use crate::names::QUEUE_LABEL;
use crate::obstacle::Obstacle;
use crate::run::Run;

/// Condition of a Job that succeeded.
pub const COMPLETE: &str = "Complete";
/// Condition of a Job that failed.
pub const FAILED: &str = "Failed";

/// The object under the name of a run's Job.
#[derive(Clone, Copy, Debug)]
pub enum Standing<'a> {
    /// No object, and the run's Job was never seen: it may be created.
    Free,
    /// A Job that this run did not make.
    Taken(&'a Job),
    /// The run's Job was seen and is gone; its name may be free or have another Job.
    Lost,
    /// The Job that this run made.
    Ours(&'a Job),
}

/// Compares a Job with the uid that was recorded when the run's Job was first seen, or before that with its owner and
/// its run. A recorded Job is never created again.
pub fn standing<'a>(run: &Run<'_>, found: Option<&'a Job>, recorded: Option<&str>) -> Standing<'a> {
    match (found, recorded) {
        (None, None) => Standing::Free,
        (Some(job), None) if run.owns(job) && job.labels().get(RUN_LABEL) == Some(&run.id()) => Standing::Ours(job),
        (Some(job), None) => Standing::Taken(job),
        (Some(job), Some(uid)) if job.metadata.uid.as_deref() == Some(uid) => Standing::Ours(job),
        (_, Some(_)) => Standing::Lost,
    }
}

/// The uid of a trial's Job, once it was recorded.
pub fn recorded<'a>(run: &Run<'a>, trial: i64) -> Option<&'a str> {
    let mut trials = run.status().state.trials.iter();
    trials.find(|known| known.number == trial)?.job_uid.as_deref()
}

/// Returns true if a Job carries a condition.
pub fn has(job: &Job, condition: &str) -> bool {
    find(job, condition).is_some()
}

/// Returns true if a Job is over.
pub fn is_over(job: &Job) -> bool {
    has(job, COMPLETE) || has(job, FAILED)
}

/// The trouble of a Job that another controller suspended, as Kueue does until its queue has room. `part`: what the Job is for.
pub fn queued(job: &Job, part: &str) -> Option<Trouble> {
    let is_suspended = job.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true));
    let queue = job.labels().get(QUEUE_LABEL);
    let queue = queue.map_or(String::new(), |queue| format!(" in queue {queue}"));
    is_suspended.then(|| Trouble {
        obstacle: Obstacle::Queued,
        evidence: format!("the Job {} of {part} is suspended{queue}", job.name_any()),
    })
}

/// Returns true if a queue may stop a Job: it has one, or was suspended before.
pub fn may_be_stopped(job: &Job) -> bool {
    let status = job.status.iter();
    let mut conditions = status.flat_map(|status| status.conditions.iter().flatten());
    job.labels().contains_key(QUEUE_LABEL) || conditions.any(|condition| condition.type_ == "Suspended")
}

/// Reason why a Job failed, in the Job controller's words.
pub fn failure(job: &Job) -> String {
    let failed = find(job, FAILED);
    let reason = failed
        .and_then(|condition| condition.reason.as_deref())
        .unwrap_or("no reason given");
    match failed.and_then(|condition| condition.message.as_deref()) {
        Some(message) => format!("{reason}: {message}"),
        None => reason.to_owned(),
    }
}

fn find<'a>(job: &'a Job, condition: &str) -> Option<&'a JobCondition> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    conditions
        .iter()
        .find(|found| found.type_ == condition && found.status == "True")
}
