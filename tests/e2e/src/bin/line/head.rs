//! The run at the head, followed by a watch of this one object.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use futures::StreamExt as _;
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use perfval_api::{PerfValidation, PerfValidationStatus, Phase};
use tokio::time::timeout;

use crate::LIMIT;
use perfval_e2e::process::{Cost, Meter, Reading};

/// Between two attempts to watch.
const RETRY: Duration = Duration::from_millis(500);

/// What became of the run at the head.
#[derive(Default)]
pub struct Head {
    /// From the end of whoever held the GPUs to Deploying (s).
    pub started_after: Option<f64>,
    /// From Deploying to Completed (s).
    pub took: Option<f64>,
    /// What operator and API server cost while its trial measured.
    pub benchmarking: Option<Cost>,
    /// From when until when that was.
    pub measured: Option<(DateTime<Utc>, DateTime<Utc>)>,
    /// Verdict, or the phase in which the limit found it.
    pub end: String,
    /// What the status said then.
    pub message: String,
}

/// Follows the run from now, when the GPUs become free, to its end or to the limit.
pub async fn follow(api: &Api<PerfValidation>, name: &str, meter: &Meter) -> Head {
    let mut follower = Follower {
        meter,
        began: Instant::now(),
        deploying: None,
        trial: None,
        head: Head::default(),
    };
    // A run that waits, deploys and ends has twice the time of any other wait.
    let _ = timeout(LIMIT * 2, follower.until_over(api, name)).await;
    follower.trial_over();
    follower.head
}

struct Follower<'a> {
    meter: &'a Meter,
    began: Instant,
    deploying: Option<Instant>,
    trial: Option<(DateTime<Utc>, Reading)>,
    head: Head,
}

impl Follower<'_> {
    async fn until_over(&mut self, api: &Api<PerfValidation>, name: &str) {
        let one = WatchParams::default().fields(&format!("metadata.name={name}"));
        loop {
            let Ok(events) = api.watch(&one, "0").await else {
                tokio::time::sleep(RETRY).await;
                continue;
            };
            let mut events = std::pin::pin!(events);
            while let Some(Ok(event)) = events.next().await {
                let (WatchEvent::Added(object) | WatchEvent::Modified(object)) = event else {
                    continue;
                };
                let status = object.status.unwrap_or_default();
                if self.see(&status) {
                    return;
                }
            }
        }
    }

    /// Notes what changed; whether the run is over.
    fn see(&mut self, status: &PerfValidationStatus) -> bool {
        let Some(phase) = status.phase else { return false };
        self.head.end = end(status, phase);
        self.head.message = status.message.clone().unwrap_or_default();
        if phase == Phase::Deploying && self.deploying.is_none() {
            self.deploying = Some(Instant::now());
            self.head.started_after = Some(self.began.elapsed().as_secs_f64());
        }
        if phase == Phase::Benchmarking {
            self.trial.get_or_insert_with(|| (Utc::now(), self.meter.read()));
        } else {
            self.trial_over();
        }
        let over = phase == Phase::Completed;
        if over {
            self.head.took = self.deploying.map(|began| began.elapsed().as_secs_f64());
        }
        over
    }

    /// Notes what a trial cost that is over, or that the limit cut short.
    fn trial_over(&mut self) {
        if let Some((since, began)) = self.trial.take() {
            self.head.benchmarking = Some(self.meter.since(&began));
            self.head.measured = Some((since, Utc::now()));
        }
    }
}

fn end(status: &PerfValidationStatus, phase: Phase) -> String {
    match status.verdict.filter(|_| phase == Phase::Completed) {
        Some(verdict) => verdict.as_str().to_owned(),
        None => phase.as_str().to_owned(),
    }
}
