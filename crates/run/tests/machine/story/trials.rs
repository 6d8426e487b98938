//! What trials show: their Jobs, their logs and what is saved of them.

use chrono::{DateTime, Utc};
use k8s_openapi::api::core::v1::ConfigMap;
use perfval_run::observed::TrialSeen;
use perfval_run::{Observed, names};
use perfval_sizing::Seen;
use perfval_verdict::aiperf::Report;
use perfval_verdict::frame::{Failure, Outcome, Payload, TrialRecord, frame};
use perfval_verdict::workers::WorkerSummary;
use rust_decimal::Decimal;
use serde_json::json;

use super::{Showing, Story};

impl Story {
    fn nonce(&self, trial: i64) -> String {
        names::nonce(self.uid(), &self.id(), trial)
    }

    fn record(&self, trial: i64) -> TrialRecord {
        let throughput = if self.showing == Showing::Slow { 900 } else { 2000 };
        let outcome = if self.showing == Showing::Crash {
            Outcome::Failure(Failure::Exited {
                tail: "Traceback".into(),
            })
        } else {
            Outcome::Report(Box::new(report(throughput, self.showing == Showing::Starved)))
        };
        let worker = |n: usize| WorkerSummary {
            address: format!("10.0.0.{n}"),
            seconds: 10,
            samples: 10,
            served: 50,
            peak_in_flight: 8,
            rate_per_second: Decimal::from(5),
            seconds_per_request: Some(Decimal::ONE),
            ..WorkerSummary::default()
        };
        TrialRecord {
            nonce: self.nonce(trial),
            exit_code: 0,
            outcome,
            workers: vec![worker(1), worker(2)],
            scrape_errors: std::collections::BTreeMap::new(),
            gpus: None,
            abridged: std::collections::BTreeSet::new(),
        }
    }

    fn log_of(&self, trial: i64) -> String {
        frame(&Payload {
            record: self.record(trial),
            aiperf: None,
            workers: Vec::new(),
            gpus: Vec::new(),
        })
        .expect("well-formed")
    }

    pub(super) fn trial(&self) -> TrialSeen {
        let Some(number) = self.trial_job else {
            return TrialSeen::default();
        };
        if self.status().trials.last().map(|trial| trial.number) != Some(number) {
            return TrialSeen::default();
        }
        let end = match self.showing {
            Showing::Hang => "Running",
            Showing::TimedOut => "Failed",
            Showing::Fast | Showing::Slow | Showing::Starved | Showing::Crash => "Complete",
        };
        TrialSeen {
            job: Some(self.job(end, self.trial_ended_at)),
            pod: None,
            log: if self.trial_log_unreadable {
                Seen::Unknown("log: 500".into())
            } else if self.showing == Showing::TimedOut {
                Seen::Absent
            } else {
                Seen::Present(self.log_of(number))
            },
            progress: self.progress.clone(),
        }
    }

    pub(super) fn saved_run(&self) -> Seen<ConfigMap> {
        if self.results_unreadable {
            return Seen::Unknown("GET configmaps: 403".into());
        }
        let name = self
            .status()
            .results_ref
            .map(|results| results.name)
            .unwrap_or_default();
        self.results
            .get(&name)
            .map_or(Seen::Absent, |results| Seen::Present(results.clone()))
    }

    /// A Job of this run, unless a switch says otherwise.
    pub(super) fn job(&self, end: &str, ended: DateTime<Utc>) -> k8s_openapi::api::batch::v1::Job {
        let owner = self.job_owner.unwrap_or(self.uid());
        let reason = if self.showing == Showing::TimedOut {
            "DeadlineExceeded"
        } else {
            "BackoffLimitExceeded"
        };
        serde_json::from_value(json!({
            "metadata": {
                "name": "j", "uid": format!("{}-{:?}", self.job_uid, self.trial_job),
                "labels": {"perfvalidation.dev/run": self.id()},
                "ownerReferences": [{
                    "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation", "name": "run", "uid": owner,
                    "controller": true,
                }],
            },
            "status": {"conditions": [
                {"type": end, "status": "True", "lastTransitionTime": ended.to_rfc3339(), "reason": reason},
            ]},
        }))
        .expect("well-formed")
    }

    pub(super) fn results(&self, seen: &mut Observed) {
        for trial in self.status().trials.iter().filter(|trial| trial.outcome.is_some()) {
            let log = if self.logs_unreadable {
                Seen::Unknown("logs: 500".into())
            } else {
                Seen::Present(self.log_of(trial.number))
            };
            seen.trial_logs.insert(trial.number, log);
        }
        seen.results = self.saved.clone().map_or(Seen::Absent, |sha| Seen::Present(Some(sha)));
    }
}

fn report(throughput: i64, starved: bool) -> Report {
    let text = include_str!("../../../../verdict/tests/fixtures/aiperf-success.json");
    let mut report = perfval_verdict::aiperf::parse(text.as_bytes()).expect("well-formed");
    let metric = report
        .metrics
        .get_mut(&perfval_api::Metric::OutputTokenThroughput)
        .expect("well-formed");
    metric.insert(perfval_api::Statistic::Avg, Decimal::from(throughput));
    if starved {
        report.generator.effective_concurrency_p50 = Some(Decimal::ONE);
        report.generator.credit_to_start_p50_ms = Some(Decimal::from(100_000));
    }
    report
}
