//! Result of a finished Job: the record of its trial, or the reason why there is none.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kube::core::ResourceExt as _;
use perfval_api::WorkerPod;
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::diagnosis::trial::changed;
use perfval_verdict::frame::{self, Failure, Framed, Outcome, TrialRecord};
use perfval_verdict::gate::Share;
use perfval_verdict::norms::Norms;
use perfval_verdict::trial::{self, Evidence, JudgedTrial, cpu_shortage};

use crate::attendance::Limit;
use crate::diagnosis::ended::removed;
use crate::observed::TrialSeen;
use crate::pass::Pass;
use crate::secret::Redactor;
use crate::{job, names, patience};

/// The kubelet may serve the end of a log a moment after the Job is over; this long a missing record is read again.
const LOG_GRACE: Duration = Duration::from_secs(15);

/// The workers as they were when a trial last began or ended.
pub(super) fn seen_last<'a>(pass: &Pass<'a>) -> &'a [WorkerPod] {
    &pass.run.status().state.worker_pods
}

pub(super) type Judge<'a> = Box<dyn Fn(&[WorkerPod], &Norms) -> JudgedTrial + 'a>;

/// Reads the record of a finished Job: the termination message, or the log if that contains more. A message that is only a part
/// counts once the log has had its time. `Err`: not yet, with the failure of the read if only the log can have the record.
pub(super) fn read<'a>(
    pass: &mut Pass<'a>,
    number: i64,
    trial: &TrialSeen,
    found: &Job,
) -> Result<Judge<'a>, Option<String>> {
    let nonce = names::nonce(pass.run.uid(), &pass.run.id(), number);
    let before = seen_last(pass);
    let timed_out = job::has(found, job::FAILED) && job::failure(found).starts_with("DeadlineExceeded");
    let mut read = record(trial, &nonce);
    if read.is_err() && !timed_out {
        let is_lost = || trial.pod.as_ref().and_then(removed).is_some();
        // Only the limit of the phase ends this wait.
        if let Some(unread) = trial.record.unknown()
            && short_record(trial, &nonce).is_none()
            && !is_lost()
        {
            return Err(Some(unread.to_owned()));
        }
        let since = patience::waits_since(pass, Cause::BenchmarkFailed.as_str(), &found.name_any());
        if !pass.has_passed(&Limit::new(since, LOG_GRACE)) {
            return Err(None);
        }
    }
    if read.is_err() {
        read = short_record(trial, &nonce).map_or(read, Ok);
    }
    let record = match read {
        Ok(mut record) => {
            Redactor::new(pass.run.spec()).redact_record(&mut record);
            record
        }
        Err(missing) => {
            let gone = || "its pod is gone: it was deleted or drained away".to_owned();
            // The Job controller deletes the pod of a Job whose deadline passed.
            let removed = trial.pod.as_ref().map_or_else(|| (!timed_out).then(gone), removed);
            let cause = match &removed {
                _ if timed_out => Cause::BenchmarkTimeout,
                Some(_) => Cause::LoadGeneratorEvicted,
                None => Cause::BenchmarkFailed,
            };
            let missing = removed.unwrap_or(missing);
            let evidence = format!("{missing}; the Job ended with {}", job::failure(found));
            return Ok(Box::new(move |after, _| {
                JudgedTrial::unmeasured(cause, evidence.clone(), changed(before, after, None))
            }));
        }
    };
    if let (Outcome::Failure(Failure::Cancelled { .. }), Some(removed)) =
        (&record.outcome, trial.pod.as_ref().and_then(removed))
    {
        let cause = Cause::LoadGeneratorEvicted;
        let shortage = cpu_shortage(&record);
        return Ok(Box::new(move |after, _| {
            JudgedTrial::unmeasured(cause, removed.clone(), changed(before, after, shortage.as_deref()))
        }));
    }
    let spec = pass.run.spec();
    let (plan, details) = (pass.run.placement(), &pass.run.status().state.plan);
    let share = plan.map_or(Share { gpus: 1, node_gpus: 1 }, |plan| Share::new(plan, details));
    let environment = pass.run.status().state.environment.as_ref();
    Ok(Box::new(move |after, norms| {
        trial::judge(
            Evidence {
                record: &record,
                before,
                after,
                share,
                devices: &details.device_ids,
                product: plan.and_then(|plan| plan.product.as_deref()),
                norm: norms.find(environment, &record),
            },
            spec,
        )
    }))
}

/// The record in a termination message, where the log has none. Without the workers it is no record: gates over the whole deployment
/// can be met with a worker that does nothing.
fn short_record(trial: &TrialSeen, nonce: &str) -> Option<TrialRecord> {
    let Framed::Complete(record) = message(trial, nonce) else {
        return None;
    };
    (!record.abridged.contains(&frame::Part::Workers)).then_some(record)
}

fn message(trial: &TrialSeen, nonce: &str) -> Framed<TrialRecord> {
    termination_message(trial).map_or(Framed::Missing, |message| frame::find_message(message, nonce))
}

/// The record of a trial, or the missing part of it.
fn record(trial: &TrialSeen, nonce: &str) -> Result<TrialRecord, String> {
    let message = message(trial, nonce);
    let log = trial.record.present().cloned().unwrap_or(Framed::Missing);
    match (message, log) {
        (Framed::Complete(record), _) if record.abridged.iter().all(|part| *part == frame::Part::Statistics) => {
            Ok(record)
        }
        (_, Framed::Complete(record)) => Ok(record),
        (message, log) => Err(format!(
            "no result: termination message {}, log {}",
            match &message {
                Framed::Complete(_) => "without the workers".to_owned(),
                message => state(message),
            },
            trial
                .record
                .unknown()
                .map_or_else(|| state(&log), |why| format!("unreadable ({why})"))
        )),
    }
}

fn state<T>(framed: &Framed<T>) -> String {
    match framed {
        Framed::Complete(_) => "complete".into(),
        Framed::Truncated => "truncated".into(),
        Framed::Missing => "without a result".into(),
        Framed::Malformed(why) => format!("malformed ({why})"),
    }
}

fn termination_message(trial: &TrialSeen) -> Option<&str> {
    let statuses = trial.pod.as_ref()?.status.as_ref()?.container_statuses.as_ref()?;
    let aiperf = statuses.iter().find(|status| status.name == names::AIPERF_CONTAINER)?;
    aiperf.state.as_ref()?.terminated.as_ref()?.message.as_deref()
}

#[cfg(test)]
mod tests {
    use perfval_sizing::Seen;
    use serde_json::json;

    use super::*;

    /// A trial whose log cannot be read now, with a termination message that left these parts out.
    fn trial(abridged: &[&str]) -> TrialSeen {
        let outcome = Outcome::Failure(Failure::TimedOut { seconds: 9 });
        let record = json!({"nonce": "n", "exitCode": 0, "outcome": outcome, "abridged": abridged});
        let message = record.to_string();
        let aiperf = json!({"name": names::AIPERF_CONTAINER, "image": "i", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": 0, "message": message}}});
        let pod = json!({"status": {"containerStatuses": [aiperf]}});
        TrialSeen {
            pod: serde_json::from_value(pod).expect("a pod"),
            record: Seen::Unknown("log: 500".into()),
            ..TrialSeen::default()
        }
    }

    #[test]
    fn a_message_without_the_workers_is_no_record() {
        for (abridged, at_once, later) in [
            (&[][..], true, true),
            (&["Statistics"], true, true),
            (&["Statistics", "Gpus"], false, true),
            (&["Statistics", "Gpus", "ErrorTexts", "Workers"], false, false),
        ] {
            let trial = trial(abridged);
            assert_eq!(record(&trial, "n").is_ok(), at_once, "{abridged:?}");
            assert_eq!(short_record(&trial, "n").is_some(), later, "{abridged:?}");
            assert!(short_record(&trial, "other").is_none());
        }
    }
}
