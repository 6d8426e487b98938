//! Cases of the lab: every router under every fault of the engines, and every other fault under one router.

use perfval_api::RouterMode;
use perfval_e2e::quick;
use serde_json::{Value, json};

use crate::corpus::LabRun;
use crate::fault::{Fault, Truth};
use crate::setting::Place;

/// Routing modes that are compared.
pub const ROUTERS: [RouterMode; 5] = [
    RouterMode::LeastLoaded,
    RouterMode::RoundRobin,
    RouterMode::Random,
    RouterMode::PowerOfTwo,
    RouterMode::Kv,
];
/// Faults that every router meets.
const OF_ENGINES: [Fault; 5] = [
    Fault::SlowWorker,
    Fault::Dead,
    Fault::FrozenForGood,
    Fault::FrozenTenSeconds,
    Fault::AllSlow,
];
/// Faults that no router changes.
const OF_ANY_ROUTER: [Fault; 11] = [
    Fault::RequestErrors,
    Fault::Restart,
    Fault::StarvedGenerator,
    Fault::FrontendBound,
    Fault::ImagePull,
    Fault::CrashLoop,
    Fault::VersionSkew,
    Fault::StaleDraPlugin,
    Fault::Unschedulable,
    Fault::OutOfMemory,
    Fault::ColdStart,
];

/// Speed-up of the simulated engines: about 50 ms a token, so that two cores are not what is measured.
const SPEED: f64 = 0.12;
const GPUS: i64 = 4;
const CONCURRENCY_PER_GPU: i64 = 8;
const OUTPUT_TOKENS: i64 = 16;
/// Requests of a trial: twelve seconds on healthy workers.
const REQUESTS: i64 = 448;
/// Number of times every fault is injected.
const REPEATS: usize = 3;
/// Healthy trials of each router: twenty in all.
const HEALTHY_REPEATS: usize = 4;

/// One router under one fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Router of the frontend.
    pub router: RouterMode,
    /// Injected fault.
    pub fault: Fault,
    /// Trials that are wanted; runs, where the fault lets nothing be measured.
    pub repeats: usize,
}

/// Every case, the telling ones first: an interrupted matrix still has each fault under the default router.
pub fn cases() -> Vec<Case> {
    let case = |router, fault| Case {
        router,
        fault,
        repeats: if fault == Fault::Healthy {
            HEALTHY_REPEATS
        } else {
            REPEATS
        },
    };
    let healthy = ROUTERS.map(|router| case(router, Fault::Healthy));
    let engines = |routers: &[RouterMode]| -> Vec<Case> {
        let of = |router: &RouterMode| OF_ENGINES.map(|fault| case(*router, fault));
        routers.iter().flat_map(of).collect()
    };
    let of_any_router = OF_ANY_ROUTER.map(|fault| case(RouterMode::LeastLoaded, fault));
    let (first, others) = ROUTERS.split_at(2);
    healthy
        .into_iter()
        .chain(engines(first))
        .chain(of_any_router)
        .chain(engines(others))
        .collect()
}

/// The gates of the lab's healthy runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// Median throughput (tokens/s).
    pub throughput: f64,
    /// Median time to first token p99 (ms).
    pub ttft_p99_ms: f64,
}

impl Calibration {
    /// Gates as a user would set them: three quarters of the throughput, two and a half times the p99, 10 % tolerance.
    pub fn gates(self) -> Value {
        let rounded = |value: f64| format!("{value:.0}");
        json!([
            {"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=",
                "threshold": rounded(self.throughput * 0.75), "tolerancePercent": 10},
            {"name": "ttft-p99", "metric": "TimeToFirstToken", "statistic": "P99", "operator": "<=",
                "threshold": rounded(self.ttft_p99_ms * 2.5), "tolerancePercent": 10},
        ])
    }
}

impl Case {
    /// A name for its namespace and object.
    pub fn name(&self) -> String {
        format!("{}-{:?}", self.router.flag(), self.fault).to_lowercase()
    }

    /// Number of times that these runs repeat the case on the lab.
    pub fn repeats_in<'a>(&self, runs: impl IntoIterator<Item = &'a LabRun>) -> usize {
        let of_case = runs
            .into_iter()
            .filter(|run| (run.place, run.router, run.fault) == (Place::Lab, self.router, self.fault));
        let repeats = |run: &LabRun| {
            if self.fault.before_any_trial() {
                1
            } else {
                run.trials.len()
            }
        };
        of_case.map(repeats).sum()
    }

    /// Share of full speed of the first GPU where one worker is slow.
    pub fn slow_gpu(&self) -> Option<f64> {
        (self.fault == Fault::SlowWorker).then_some(0.1)
    }

    /// Finished requests after which a fault strikes: the warm-up is one wave, then a fifth of the trial.
    pub fn strikes_after(&self) -> i64 {
        GPUS * CONCURRENCY_PER_GPU + REQUESTS / 5
    }

    /// Manifest for the operator.
    pub fn manifest(&self, namespace: &str, gates: &Value) -> Value {
        let mut manifest = quick(&self.name(), namespace);
        let spec = &mut manifest["spec"];
        let speed = if self.fault == Fault::AllSlow {
            SPEED / 3.0
        } else {
            SPEED
        };
        spec["workload"]["dynamo"]["routerMode"] = json!(self.router);
        spec["workload"]["dynamo"]["worker"]["args"] = json!(["--max-num-seqs", "64"]);
        spec["workload"]["dynamo"]["env"] = json!([{"name": "LAB_SPEEDUP_RATIO", "value": speed.to_string()}]);
        spec["placement"]["maxGPUs"] = json!(GPUS);
        spec["benchmark"]["concurrencyPerGPU"] = json!(CONCURRENCY_PER_GPU);
        spec["benchmark"]["outputTokens"] = json!(OUTPUT_TOKENS);
        spec["benchmark"]["requestsPerConcurrency"] = json!(1);
        spec["benchmark"]["minRequests"] = json!(REQUESTS);
        // As on the rig and in what was recorded before.
        spec["benchmark"]["datasetEntries"] = json!(100);
        spec["gates"] = gates.clone();
        spec["trials"] = match self.fault.truth() {
            // The first miss ends it; a repeat then costs a deployment, which is what a false miss is worth.
            Truth::Healthy => json!({"rule": "All", "max": self.repeats}),
            // Three straight misses decide at this error bound: three trials on one deployment.
            Truth::Degraded | Truth::Open | Truth::Broken => {
                json!({"rule": "Sequential", "errorBoundPercent": 7, "max": REPEATS})
            }
        };
        self.break_manifest(spec);
        manifest
    }

    fn break_manifest(&self, spec: &mut Value) {
        match self.fault {
            // A request on a worker that never answers must not take the whole trial.
            Fault::FrozenForGood | Fault::Dead => spec["benchmark"]["requestTimeout"] = json!("20s"),
            Fault::StarvedGenerator => {
                spec["benchmark"]["resources"] = json!({"limits": {"cpu": "500m"}});
                spec["workload"]["dynamo"]["env"][0]["value"] = json!("2");
                spec["benchmark"]["concurrencyPerGPU"] = json!(64);
            }
            Fault::RequestErrors => {
                spec["benchmark"]["extraInputs"] = json!({"temperature": "9", "ignore_eos": "true"});
            }
            Fault::ColdStart => {
                spec["workload"]["dynamo"]["worker"]["args"] = json!(["--max-num-seqs", "64", "--startup-time", "30"]);
            }
            Fault::ImagePull => spec["workload"]["dynamo"]["image"] = json!("localhost/no-such-image:1.4.9"),
            Fault::CrashLoop => spec["workload"]["dynamo"]["worker"]["args"] = json!(["--no-such-flag"]),
            Fault::OutOfMemory => {
                spec["workload"]["dynamo"]["worker"]["resources"] = json!({"limits": {"memory": "48Mi"}});
            }
            Fault::VersionSkew => spec["workload"]["dynamo"]["image"] = json!("localhost/dynamo-lab:1.2.1"),
            // A cordoned node is waited for.
            Fault::Unschedulable => spec["timeouts"]["sizing"] = json!("20s"),
            Fault::Healthy
            | Fault::SlowWorker
            | Fault::SlowerWorker
            | Fault::SlowGpu
            | Fault::TwoOnOneGpu
            | Fault::AllSlow
            | Fault::FrozenTenSeconds
            | Fault::Restart
            | Fault::FrontendBound
            | Fault::CrowdedFrontend
            | Fault::StaleDraPlugin => {}
        }
        if self.fault.before_any_trial() {
            spec["timeouts"]["workloadReady"] = json!("3m");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perfval_api::PerfValidation;

    #[test]
    fn every_router_meets_every_fault_of_the_engines_and_no_case_is_there_twice() {
        let cases = cases();
        let trials: usize = cases
            .iter()
            .filter(|case| case.fault == Fault::Healthy)
            .map(|case| case.repeats)
            .sum();
        assert_eq!(trials, 20, "healthy trials");
        let mut names: Vec<String> = cases.iter().map(Case::name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), cases.len());
        assert_eq!(cases.len(), 5 + 25 + 11);
    }

    #[test]
    fn every_manifest_would_be_admitted() {
        let admission = perfval_api::admission::Admission::new().expect("the CRD's schema");
        let calibration = Calibration {
            throughput: 2000.0,
            ttft_p99_ms: 400.0,
        };
        for case in cases() {
            let manifest = case.manifest("n", &calibration.gates());
            let object: PerfValidation = admission
                .admit(&manifest)
                .unwrap_or_else(|refusals| panic!("{case:?}: {refusals:?}"));
            assert_eq!(object.spec.gates.len(), 2);
        }
    }
}
