//! Reading a Job's end.

use k8s_openapi::api::batch::v1::{Job, JobCondition};

/// Condition of a Job that succeeded.
pub const COMPLETE: &str = "Complete";
/// Condition of a Job that failed.
pub const FAILED: &str = "Failed";

/// Whether a Job carries a condition.
pub fn has(job: &Job, condition: &str) -> bool {
    find(job, condition).is_some()
}

/// Whether a Job is over.
pub fn is_over(job: &Job) -> bool {
    has(job, COMPLETE) || has(job, FAILED)
}

/// Why a Job failed, in the Job controller's words.
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
