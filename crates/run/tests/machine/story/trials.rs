//! What trials show: their Jobs, their logs and what is saved of them.

use chrono::{DateTime, Utc};
use k8s_openapi::api::core::v1::ConfigMap;
use perfval_run::build::PackedTrial;
use perfval_run::observed::TrialSeen;
use perfval_run::secret::Redactor;
use perfval_run::{Observed, names};
use perfval_sizing::Seen;
use perfval_testkit::trial as recorded;
use perfval_verdict::frame::{Framed, Outcome, TrialRecord};
use perfval_verdict::workers::WorkerSpeed;
use rust_decimal::Decimal;
use serde_json::json;

use super::{Showing, Story};

impl Story {
    fn nonce(&self, trial: i64) -> String {
        names::nonce(self.uid(), &self.id(), trial)
    }

    fn record_of(&self, trial: i64) -> TrialRecord {
        let throughput = if self.showing == Showing::Slow { 900 } else { 2000 };
        let outcome = if self.showing == Showing::Crash {
            recorded::crash()
        } else {
            let starved = self.showing == Showing::Starved;
            Outcome::Report(Box::new(recorded::report(|_| Decimal::from(throughput), starved)))
        };
        let workers = [1, 2].map(|n| format!("10.0.0.{n}"));
        let mut record = recorded::record(self.nonce(trial), outcome, workers);
        for worker in &mut record.workers {
            worker.speed = self.token_ms.map(|token_ms| WorkerSpeed {
                token_ms: token_ms.into(),
                batch: Decimal::from(32),
                peers: None,
            });
        }
        TrialRecord {
            node_cpu: self.node_cpu.clone(),
            commit: self.commit.clone(),
            ..record
        }
    }

    pub(super) fn trial(&self) -> TrialSeen {
        let Some(number) = self.trial_job else {
            return TrialSeen::default();
        };
        if self.status().state.trials.last().map(|trial| trial.number) != Some(number) {
            return TrialSeen::default();
        }
        let end = match self.showing {
            Showing::Hang => "Running",
            Showing::TimedOut => "Failed",
            Showing::Fast | Showing::Slow | Showing::Starved | Showing::Crash => "Complete",
        };
        TrialSeen {
            job: Some(self.job(end, self.trial_ended_at)),
            pod: self.generator(),
            record: if self.trial_log_unreadable {
                Seen::Unknown("log: 500".into())
            } else if self.showing == Showing::TimedOut || self.trial_log_missing {
                Seen::Absent
            } else {
                Seen::Present(Framed::Complete(self.record_of(number)))
            },
            progress: self.progress.clone(),
        }
    }

    pub(super) fn saved_run(&self) -> Seen<ConfigMap> {
        if self.results_unreadable {
            return Seen::Unknown("GET configmaps: 403".into());
        }
        let saved = self.status().results_ref;
        let saved = saved.and_then(|saved| self.results.get(&saved.name).cloned());
        saved.map_or(Seen::Absent, Seen::Present)
    }

    /// A Job of this run, unless a switch says otherwise.
    pub(super) fn job(&self, end: &str, ended: DateTime<Utc>) -> k8s_openapi::api::batch::v1::Job {
        let owner = self.job_owner.unwrap_or(self.uid());
        let reason = if self.showing == Showing::TimedOut {
            "DeadlineExceeded"
        } else {
            "BackoffLimitExceeded"
        };
        let mut labels = self.object.spec.pod_template.metadata.labels.clone();
        labels.insert("perfvalidation.dev/run".into(), self.id());
        let ended = ended.to_rfc3339();
        let mut conditions =
            vec![json!({"type": end, "status": "True", "lastTransitionTime": ended, "reason": reason})];
        if self.jobs_were_suspended {
            conditions.push(json!({"type": "Suspended", "status": "False", "reason": "JobResumed"}));
        }
        serde_json::from_value(json!({
            "metadata": {
                "name": "j", "uid": format!("{}-{:?}", self.job_uid, self.trial_job),
                "labels": labels,
                "ownerReferences": [{
                    "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation", "name": "run", "uid": owner,
                    "controller": true,
                }],
            },
            "spec": {"suspend": self.queued, "template": {}},
            "status": {"conditions": conditions},
        }))
        .expect("well-formed")
    }

    pub(super) fn results(&self, seen: &mut Observed) {
        let trials = self.status().state.trials;
        for trial in trials.iter().filter(|trial| trial.outcome.is_some()) {
            let packed = if self.logs_unreadable {
                Seen::Unknown("logs: 500".into())
            } else {
                let log = recorded::log(self.record_of(trial.number));
                let (nonce, redactor) = (self.nonce(trial.number), Redactor::default());
                PackedTrial::from_log(&log, &nonce, &redactor).map_or(Seen::Absent, Seen::Present)
            };
            seen.packed_trials.insert(trial.number, packed);
        }
        seen.results = self.saved.clone().map_or(Seen::Absent, |sha| Seen::Present(Some(sha)));
    }
}
