//! The runner's own lines of progress, read from the log of the trial: they come every five seconds, the status is
//! written less often.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, LogParams};
use kube::{Api, ResourceExt as _};
use perfval_api::{PerfValidation, Phase};
use perfval_run::names;
use perfval_verdict::progress::{Progress, find};
use tokio::time::{Instant, timeout};

use crate::session::Session;

/// Between two looks into the log.
const PAUSE: Duration = Duration::from_secs(3);
/// Time-out of a look: the picture stands still meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);
/// Lines of the log: an hour of progress is 720 of them.
const LINES: i64 = 400;
const BYTES: i64 = 256 << 10;
/// The Job controller's own label.
const JOB_NAME_LABEL: &str = "batch.kubernetes.io/job-name";

/// Progress in the log of the open trial.
pub struct Live {
    pods: Api<Pod>,
    /// Number of the trial.
    trial: i64,
    samples: Vec<Progress>,
    next: Instant,
    /// Without the right to read logs, users see the progress in the status.
    allowed: bool,
}

impl Live {
    /// Nothing is known yet.
    pub fn new(session: &Session) -> Self {
        Self {
            pods: Api::namespaced(session.client.clone(), &session.namespace),
            trial: 0,
            samples: Vec::new(),
            next: Instant::now(),
            allowed: true,
        }
    }

    /// The samples of a trial, in order.
    pub fn samples(&self, trial: i64) -> &[Progress] {
        if self.trial == trial { &self.samples } else { &[] }
    }

    /// Looks into the log, if it is time to.
    pub async fn read(&mut self, object: &PerfValidation) {
        let Some(status) = &object.status else { return };
        let open = status.state.trials.last().filter(|trial| trial.outcome.is_none());
        let (Some(open), Some(run), Some(Phase::Benchmarking)) = (open, &status.run, status.phase) else {
            return;
        };
        if !self.allowed || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + PAUSE;
        let uid = object.metadata.uid.as_deref().unwrap_or_default();
        let id = names::run_id(uid, run.number);
        let job = names::trial_job(&id, open.number);
        match timeout(PATIENCE, self.log(&job)).await {
            Ok(Ok(log)) => {
                self.trial = open.number;
                self.samples = find(&log, &names::nonce(uid, &id, open.number));
            }
            Ok(Err(kube::Error::Api(status))) if status.code == 403 => self.allowed = false,
            // The pod may not have begun.
            _ => {}
        }
    }

    async fn log(&self, job: &str) -> kube::Result<String> {
        let params = ListParams::default().labels(&format!("{JOB_NAME_LABEL}={job}"));
        let pods = self.pods.list(&params).await?;
        // A second pod replaces a dead one.
        let newest = pods.items.iter().max_by_key(|pod| pod.creation_timestamp());
        let Some(pod) = newest else {
            return Ok(String::new());
        };
        let params = LogParams {
            container: Some(names::AIPERF_CONTAINER.to_owned()),
            tail_lines: Some(LINES),
            limit_bytes: Some(BYTES),
            ..LogParams::default()
        };
        self.pods.logs(&pod.name_any(), &params).await
    }
}
