//! Runs that are played: how long their pods take, and what their trials measure.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use perfval_testkit::api_server::ApiServer;
use perfval_testkit::trial;
use perfval_testkit::world::{Measured, Play};
use perfval_verdict::frame::Outcome;
use perfval_verdict::workers::{AgainstPeers, Pace, Unit, WorkerSpeed, WorkerSummary};
use rust_decimal::Decimal;
use rust_decimal::prelude::FromPrimitive as _;
use serde_json::Value;

use super::hardware::{Fault, Hardware, index, normal, random};

/// Standard deviations of logarithms, those of the prior for H100: of a deployment, of a trial, and of a GPU in a trial.
const PASS: f64 = 0.010;
const TRIAL: f64 = 0.015;
const NOISE: f64 = 0.014;
/// Half of the interval beside the peers (percentage points), as long trials have it.
const WITHIN: f64 = 1.0;
/// Time from one token to the next of the usual GPU (ms).
const TOKEN_MS: f64 = 8.0;
/// Simulated times (s): a worker with the weights on its node, another pod, a trial.
const WORKER: std::ops::Range<i64> = 60..91;
const OTHER: i64 = 10;
const MEASURES: std::ops::Range<i64> = 55..66;

/// The runs of a fleet.
pub struct Runs {
    server: ApiServer,
    hardware: Hardware,
    /// Simulated seconds in one second.
    speedup: f64,
    saved: Saved,
}

/// Time that each validation would take longer without the speed-up (s), by name, with the number of its trials.
pub type Saved = Arc<Mutex<HashMap<String, (f64, usize)>>>;

impl Runs {
    pub fn new(server: &ApiServer, hardware: &Hardware, speedup: f64) -> Self {
        Self {
            server: server.clone(),
            hardware: hardware.clone(),
            speedup,
            saved: Saved::default(),
        }
    }

    /// Times that were saved until now.
    pub fn saved(&self) -> Saved {
        self.saved.clone()
    }

    /// The world has whole seconds.
    fn played(&self, simulated: i64) -> i64 {
        let played = Duration::from_secs(simulated.unsigned_abs()).div_f64(self.speedup);
        let rounded = played.saturating_add(Duration::from_millis(500)).as_secs();
        i64::try_from(rounded).unwrap_or(i64::MAX).max(1)
    }

    fn fault(&self, pod: &Value) -> Option<Fault> {
        self.hardware.fault(index(pod["spec"]["nodeName"].as_str()?)?)
    }

    /// Number of the GPU of a worker.
    fn gpu(&self, worker: &Value) -> Option<usize> {
        let text = |field: &str| worker["metadata"][field].as_str().unwrap_or_default();
        // The stub's claims have no other name.
        let claim = worker["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
            .as_str()
            .map_or_else(|| format!("{}-gpu", text("name")), str::to_owned);
        let claim = self.server.get("resourceclaims", text("namespace"), &claim)?;
        let device = &claim["status"]["allocation"]["devices"]["results"][0]["device"];
        device.as_str()?.strip_prefix("gpu-")?.parse().ok()
    }

    fn save(&self, pod: &Value, workers: &[Arc<Value>]) {
        let trial = simulated_trial(pod);
        let mut simulated = vec![OTHER, trial];
        if number(pod) == 1 {
            simulated.extend(workers.iter().map(|worker| simulated_start(worker)).max());
        }
        let longer: i64 = simulated.iter().map(|seconds| seconds - self.played(*seconds)).sum();
        let name = text(pod, "perfvalidation.dev/name").to_owned();
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let known = saved.entry(name).or_default();
        known.0 += f64::from(i32::try_from(longer).unwrap_or_default());
        known.1 += 1;
    }
}

impl Play for Runs {
    fn starts_after(&self, pod: &Value) -> i64 {
        self.played(simulated_start(pod))
    }

    fn trial_lasts(&self, pod: &Value) -> i64 {
        self.played(simulated_trial(pod))
    }

    fn measure(&self, pod: &Value, workers: &[Arc<Value>]) -> Measured {
        self.save(pod, workers);
        // The load generator may be on another node.
        let Some(measured) = workers.first() else {
            return Measured {
                outcome: trial::crash(),
                workers: Vec::new(),
            };
        };
        if self.fault(measured) == Some(Fault::GeneratorCrashes) && is_first(pod) {
            return Measured {
                outcome: trial::crash(),
                workers: Vec::new(),
            };
        }
        let run = text(pod, "perfvalidation.dev/run");
        let common = PASS * normal(&("pass", run)) + TRIAL * normal(&("trial", run, number(pod)));
        let node = measured["spec"]["nodeName"]
            .as_str()
            .and_then(index)
            .unwrap_or_default();
        let speeds: Vec<(String, f64)> = workers
            .iter()
            .filter_map(|worker| {
                let gpu = self.gpu(worker)?;
                let noise = NOISE * normal(&("noise", run, number(pod), gpu));
                let address = worker["status"]["podIP"].as_str()?.to_owned();
                Some((address, self.hardware.speed(node, gpu) + common + noise))
            })
            .collect();
        let all: Vec<f64> = speeds.iter().map(|(_, speed)| *speed).collect();
        let whole =
            all.iter().map(|speed| speed.exp()).sum::<f64>() / f64::from(u32::try_from(all.len().max(1)).unwrap_or(1));
        Measured {
            outcome: Outcome::Report(Box::new(trial::report(|recorded| recorded * decimal(whole, 4), false))),
            workers: (0..speeds.len())
                .map(|own| summary(&speeds[own].0, own, &all))
                .collect(),
        }
    }

    fn crashes(&self, pod: &Value) -> bool {
        self.fault(pod) == Some(Fault::WorkersCrash) && is_first(pod)
    }
}

/// Simulated time from the binding of a pod to its start (s).
fn simulated_start(pod: &Value) -> i64 {
    match text(pod, "perfvalidation.dev/component") {
        "worker" => random(&("start", name(pod))).i64(WORKER),
        _ => OTHER,
    }
}

fn simulated_trial(pod: &Value) -> i64 {
    random(&("length", text(pod, "perfvalidation.dev/run"), number(pod))).i64(MEASURES)
}

/// Work of a worker that is as fast as this beside the others.
fn summary(address: &str, own: usize, all: &[f64]) -> WorkerSummary {
    let mut others: Vec<f64> = all.to_vec();
    let speed = others.remove(own);
    others.sort_by(f64::total_cmp);
    let median = others.get(others.len() / 2).copied().unwrap_or(speed);
    WorkerSummary {
        address: address.to_owned(),
        seconds: 60,
        samples: 60,
        served: 300,
        peak_in_flight: 32,
        mean_in_flight: Decimal::from(30),
        rate_per_second: decimal(5.0 * speed.exp(), 3),
        seconds_per_request: Some(decimal(6.0 * (-speed).exp(), 3)),
        pace: Some(Pace {
            unit: Unit::Tokens,
            mean: decimal(555.0 * speed.exp(), 1),
            best: decimal(700.0 * speed.exp(), 1),
        }),
        speed: Some(WorkerSpeed {
            token_ms: decimal(TOKEN_MS * (-speed).exp(), 3),
            batch: Decimal::from(30),
            peers: Some(AgainstPeers {
                percent: decimal(100.0 * (speed - median).exp(), 1),
                within: decimal(WITHIN, 1),
            }),
        }),
        ..WorkerSummary::default()
    }
}

/// Whether a pod belongs to the first validation of its node.
fn is_first(pod: &Value) -> bool {
    text(pod, "perfvalidation.dev/name").ends_with("-1")
}

/// Number of a trial, from its Job.
fn number(pod: &Value) -> i64 {
    let job = text(pod, "batch.kubernetes.io/job-name");
    job.rsplit_once("-t")
        .and_then(|(_, number)| number.parse().ok())
        .unwrap_or(1)
}

fn text<'a>(pod: &'a Value, label: &str) -> &'a str {
    pod["metadata"]["labels"][label].as_str().unwrap_or_default()
}

fn name(pod: &Value) -> &str {
    pod["metadata"]["name"].as_str().unwrap_or_default()
}

fn decimal(value: f64, places: u32) -> Decimal {
    Decimal::from_f64(value).unwrap_or_default().round_dp(places)
}
