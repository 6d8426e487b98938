use std::collections::BTreeMap;

use futures::stream::{self, StreamExt as _};
use k8s_openapi::api::batch::v1::{Job, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use kube::core::ResourceExt as _;
use perfval_run::build::PackedTrial;
use perfval_run::job::Standing;
use perfval_run::observed::TrialSeen;
use perfval_run::secret::Redactor;
use perfval_run::{Run, job, names, progress};
use perfval_sizing::Seen;
use perfval_verdict::frame::{self, Framed, TrialRecord};
use perfval_verdict::progress::find;

use super::log::LOGS_AT_ONCE;
use crate::Cluster;
use crate::call::{Read, Unread, read, seen, unless_absent};

const JOB_NAME_LABEL: &str = "batch.kubernetes.io/job-name";

impl Cluster {
    /// Job, pod and output of the open trial. Of a Job that this run did not make, nothing else is read. `pods`: those of
    /// the run, if they were read.
    pub(super) async fn trial(
        &self,
        run: &Run<'_>,
        number: i64,
        job: Read<Job>,
        pods: Option<&Vec<Pod>>,
    ) -> Read<TrialSeen> {
        let name = names::trial_job(&run.id(), number);
        let Some(job) = unless_absent(job)? else {
            // The pass creates it.
            return Ok(TrialSeen::default());
        };
        let Standing::Ours(ours) = job::standing(run, Some(&job), job::recorded(run, number)) else {
            return Ok(TrialSeen {
                job: Some(job),
                ..TrialSeen::default()
            });
        };
        let uid = ours.uid().unwrap_or_default();
        let pod = match pods.and_then(|pods| newest(pods.clone(), &uid)) {
            Some(pod) => Some(pod),
            // The Job controller has made none yet.
            None if has_no_pod(&job) => None,
            // Somebody took its label off, or it is gone.
            None => newest(self.pods_of_job(run, &name).await?, &uid),
        };
        let nonce = names::nonce(run.uid(), &run.id(), number);
        let record = match &pod {
            _ if !job::is_over(&job) => Seen::NotAsked,
            Some(pod) => seen(self.aiperf_log(pod, |log| record(log, &nonce)).await),
            None => Seen::Absent,
        };
        let progress = match &pod {
            Some(pod) if !job::is_over(&job) && progress::is_old(run.status(), number, self.now()) => {
                // It only shows how far the trial is: where the log cannot be read, nothing is shown.
                let log = self.recent_log(pod).await.unwrap_or_default();
                find(&log, &nonce).pop()
            }
            _ => None,
        };
        Ok(TrialSeen {
            job: Some(job),
            pod,
            record,
            progress,
        })
    }

    /// Every finished trial as its log holds it, by number.
    pub(super) async fn packed_trials(&self, run: &Run<'_>, numbers: &[i64]) -> BTreeMap<i64, Seen<PackedTrial>> {
        // Futures made here, not in the stream: a borrowing closure in it would not be Send for a spawned pass.
        let trials: Vec<_> = numbers
            .iter()
            .map(|&number| async move { (number, seen(self.packed_trial(run, number).await)) })
            .collect();
        stream::iter(trials).buffered(LOGS_AT_ONCE).collect().await
    }

    async fn packed_trial(&self, run: &Run<'_>, number: i64) -> Read<PackedTrial> {
        let name = names::trial_job(&run.id(), number);
        let uid = match job::recorded(run, number) {
            Some(uid) => uid.to_owned(),
            // An older CRD drops what it does not know.
            None => self.uid_of_job(run, &name).await?,
        };
        let pod = newest(self.pods_of_job(run, &name).await?, &uid).ok_or(Unread::Absent)?;
        let nonce = names::nonce(run.uid(), &run.id(), number);
        let redactor = Redactor::new(run.spec());
        let packed = self
            .aiperf_log(&pod, |log| PackedTrial::from_log(log, &nonce, &redactor))
            .await?;
        packed.ok_or(Unread::Absent)
    }

    async fn uid_of_job(&self, run: &Run<'_>, name: &str) -> Read<String> {
        let found = self.job(run, name).await?;
        match job::standing(run, Some(&found), None) {
            Standing::Ours(job) => job.uid().ok_or(Unread::Absent),
            _ => Err(Unread::Absent),
        }
    }

    /// Found by the Job controller's own label, which they have even if the operator's were taken off.
    async fn pods_of_job(&self, run: &Run<'_>, job: &str) -> Read<Vec<Pod>> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), run.namespace());
        let params = ListParams::default().labels(&format!("{JOB_NAME_LABEL}={job}"));
        let call = format!("list Pods of Job {}/{job}", run.namespace());
        read(&call, self.list(&api, params).await)
    }
}

/// Returns true if the status of a Job counts no pod, as before its controller made one.
fn has_no_pod(job: &Job) -> bool {
    let Some(status) = &job.status else { return true };
    let counts = [status.active, status.succeeded, status.failed, status.terminating];
    let is_none = counts.into_iter().flatten().all(|count| count == 0);
    let uncounted = status.uncounted_terminated_pods.as_ref();
    is_none && uncounted.is_none_or(|pods| *pods == UncountedTerminatedPods::default()) && !job::is_over(job)
}

/// The record without the samples that came with it.
fn record(log: &str, nonce: &str) -> Framed<TrialRecord> {
    match frame::find(log, nonce) {
        Framed::Complete(payload) => Framed::Complete(payload.record),
        Framed::Truncated => Framed::Truncated,
        Framed::Missing => Framed::Missing,
        Framed::Malformed(why) => Framed::Malformed(why),
    }
}

/// The newest pod of a Job, known by the Job's uid, because any client may write a label.
fn newest(pods: Vec<Pod>, uid: &str) -> Option<Pod> {
    let age = |pod: &Pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let of_job = |pod: &Pod| {
        let mut owners = pod.owner_references().iter();
        owners.any(|owner| owner.controller == Some(true) && owner.uid == uid)
    };
    pods.into_iter().filter(of_job).max_by_key(age)
}
